"""The trace between guest and host: what one writes the other reads, wherever it is cut off."""

from __future__ import annotations

import ast
import marshal
import os
import resource
import runpy
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.targets import trace as audit
from support.targets import write_tree

from importaudit.measure import trace as reader
from importaudit.measure import wire
from importaudit.measure.launch import PROBE
from importaudit.record import PHASES

OUTPUT: dict[str, Any] = runpy.run_path(str(PROBE / "output.py"))
# Any text that a guest may write, lone surrogates included.
TEXT = st.text(st.one_of(st.characters(), st.sampled_from("\0\n\ud800")))
INTEGER = st.one_of(st.integers(), st.integers(-(2**31) - 2, 2**31 + 2))
VALUES = st.one_of(TEXT, INTEGER, st.lists(INTEGER))


@cache
def sample() -> bytes:
    """The trace of a detail run, as a real interpreter wrote it: every kind of line is in it."""
    files = {
        "größe/__init__.py": "import sys, types\nimport json.decoder\nfrom . import a, a as again\n"
        "sys.modules['by_hand'] = types.ModuleType('by_hand')\n"
        "try:\n    import missing\nexcept ImportError:\n    pass\n",
        "größe/a.py": "import time, threading\nend = time.time() + 0.1\n"
        "while time.time() < end: pass\n"
        "threading.Thread(target=lambda: __import__('slow'), daemon=True).start()\n"
        "time.sleep(0.3)\n",
        "slow.py": "import time\ntime.sleep(60)\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        return trace_of(write_tree(Path(folder), files)).rstrip(b"\0")


def trace_of(root: Path) -> bytes:
    """What auditing ``größe`` in ROOT leaves behind."""
    found: list[bytes] = []
    original = reader.parse

    def parse(data: bytes) -> reader.Trace:
        found.append(data)
        return original(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "parse", parse)
        audit(Path(sys.executable), root, "größe", detail=True)
    (data,) = found
    return data


def spelled(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if type(value) is str else value


# --- values ------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.lists(VALUES)))
def test_records_come_back_as_they_were_but_for_what_is_no_text(
    written: list[list[Any]],
) -> None:
    data = b"".join(OUTPUT["encode"](tuple(fields)) for fields in written)

    assert list(wire.records(data)) == [[spelled(value) for value in one] for one in written]


@settings(deadline=None)
@given(st.lists(VALUES))
def test_the_decoder_agrees_with_the_interpreter(fields: list[Any]) -> None:
    data = OUTPUT["encode"](tuple(fields))

    assert marshal.loads(data) == tuple(fields)
    assert next(wire.records(data)) == [spelled(value) for value in fields]


def test_subclasses_are_written_as_what_they_are() -> None:
    class Name(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "another"

    class Number(int):
        pass

    data = OUTPUT["encode"](("H", Number(7), Name("größe"), True))

    assert list(wire.records(data)) == [["H", 7, "größe", 1]]


# --- kinds of records --------------------------------------------------------------------


def kinds_written() -> set[str]:
    """The first field of every record that the probe's source writes."""
    calls = [
        node
        for path in PROBE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("output.put")
    ]
    return {ast.literal_eval(call.args[0]) for call in calls}


def test_the_probe_writes_exactly_the_kinds_that_are_read() -> None:
    assert kinds_written() == set(reader.READERS)


def test_the_kinds_are_documented() -> None:
    documented = {
        line.split()[0] for line in str(reader.__doc__).splitlines() if line.startswith("    ")
    }

    assert documented == set(reader.READERS)


def test_a_real_trace_has_every_kind_and_is_read_without_loss() -> None:
    trace = reader.parse(sample())

    assert {record[0] for record in wire.records(sample())} == set(reader.READERS)
    assert trace.malformed == 0
    assert trace.closed is not None
    assert [name for _, name in trace.by_hand] == ["by_hand"]
    assert {e.name: e.outcome for e in trace.events.values() if e.name in ("missing", "slow")} == {
        "missing": "failed",
        "slow": "running",
    }
    assert [trace.events[number].name for _, number in trace.running] == ["slow"]


# --- cut off or spoilt -------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_a_trace_cut_anywhere_gives_what_was_whole(data: st.DataObject) -> None:
    whole = sample()
    cut = data.draw(st.integers(0, len(whole)))
    trace = reader.parse(whole[:cut])

    ends = [*starts(whole)[1:], len(whole)]
    complete = [record for record, end in zip(wire.records(whole), ends, strict=True) if end <= cut]
    assert len(trace.events) == sum(record[0] in ("B", "R") for record in complete)
    assert trace.malformed == (cut not in {0, *ends})


def test_what_the_guest_has_reserved_and_not_used_is_no_cut() -> None:
    assert reader.parse(sample() + b"\0" * 4096) == reader.parse(sample())


def starts(data: bytes) -> list[int]:
    """Where each record of DATA begins."""
    found, position = [], 0
    while position < len(data):
        found.append(position)
        _, position = wire.sequence(data, position, b"(")
    return found


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**9), st.binary(min_size=1, max_size=40))
def test_overwritten_bytes_never_stop_the_reading(where: int, noise: bytes) -> None:
    whole = sample()
    where %= len(whole)
    trace = reader.parse(whole[:where] + noise + whole[where + len(noise) :])

    before = [record for record, at in zip(wire.records(whole), starts(whole)[1:], strict=False)
              if at <= where]  # fmt: skip
    begun = {record[1] for record in before if record[0] == "B"}
    assert begun <= set(trace.events)


@given(st.binary(max_size=200))
@settings(deadline=None, max_examples=300)
def test_noise_is_no_trace_and_no_error(noise: bytes) -> None:
    reader.parse(noise)
    reader.parse(b"(" + noise)
    reader.parse(b"(\x01\0\0\0u" + noise)


CELLS = [0] * 3 * len(PHASES)


@pytest.mark.parametrize(
    "record",
    [
        (),
        ("?", "unknown"),
        (7, 8),
        ("V", 99),
        ("B", 1, 0),
        ("B", "one", 0, 9, 5, 1, "m", ""),
        ("B", 1, 0, 9, 5, 1, 77, ""),
        ("E", 77, "loaded", 1, CELLS, "", "", "", ""),
        ("E", 0, "loaded", 1, CELLS[:3], "", "", "", ""),
        ("E", 0, "loaded", 1, [*CELLS, 0], "", "", "", ""),
        ("E", 0, "loaded", 1, CELLS, ""),
        ("E", 0, "loaded", "late", CELLS, "", "", "", ""),
        ("E", 0, "loaded", 1, CELLS, "", 5, "", ""),
        ("F", "path", 5),
        ("H", 1, 5),
        ("I", 1, "m", "p", 5, "f", 1, 1),
        ("N", "m", 5),
        ("X", 1, 2),
    ],
    ids=repr,
)
def test_a_record_that_makes_no_sense_is_counted_and_changes_nothing(
    record: tuple[Any, ...],
) -> None:
    root = OUTPUT["encode"](("R", 9, 1, 2, 3))
    trace = reader.parse(root + OUTPUT["encode"](record))

    assert trace.malformed == 1
    trace.malformed = 0
    assert trace == reader.parse(root)


# --- storage -----------------------------------------------------------------------------


def test_records_that_fill_more_than_one_segment_are_all_there(tmp_path: Path) -> None:
    output = OUTPUT["create"](str(tmp_path / "trace"))
    names = [f"{n}" + "ä" * 300_000 for n in range(60)]  # 36 MB, three segments
    for n, name in enumerate(names):
        output.put("H", n, name)
    trace = reader.read(Path(output.path))

    assert [n for n, _ in trace.by_hand] == list(range(60))
    assert all(name == names[n] for n, name in trace.by_hand)
    assert trace.malformed == 0


def test_a_record_longer_than_a_segment_is_left_out(tmp_path: Path) -> None:
    output = OUTPUT["create"](str(tmp_path / "trace"))
    output.put("H", 1, "before")
    output.put("H", 2, "x" * OUTPUT["SEGMENT"])
    output.put("H", 3, "after")

    assert [n for n, _ in reader.read(Path(output.path)).by_hand] == [1, 3]


def test_without_space_records_are_dropped_and_the_closing_one_is_missing(tmp_path: Path) -> None:
    # A limit on the size of files refuses the next segment, as a full disk does.
    output = OUTPUT["create"](str(tmp_path / "trace"))
    output.put("H", 1, "before")
    output.put("H", 2, "x" * (OUTPUT["SEGMENT"] - 1000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT["SEGMENT"], hard))
    try:
        output.put("H", 3, "y" * 2000)
        output.put("X", 1, 2, 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    trace = reader.read(Path(output.path))

    assert output.full
    assert [n for n, _ in trace.by_hand] == [1, 2]
    assert (trace.closed, trace.malformed) == (None, 0)


def test_no_place_at_all_is_no_error_to_the_guest(tmp_path: Path) -> None:
    output = OUTPUT["create"](str(tmp_path / "missing" / "trace"))
    output.put("H", 1, "m")

    assert output.full
    assert list(tmp_path.iterdir()) == []


def test_without_mmap_each_record_is_appended(tmp_path: Path) -> None:
    output = OUTPUT["AppendOutput"](str(tmp_path / "trace"))
    output.put("H", 1, "größe\n")
    output.put("H", 2, os.fsdecode(b"\xff"))

    assert reader.read(Path(output.path)).by_hand == [(1, "größe\n"), (2, r"\udcff")]
