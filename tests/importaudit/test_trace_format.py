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

from importaudit.measure import launch, replay, wire
from importaudit.measure import trace as reader
from importaudit.measure.machine import PROBE
from importaudit.record import PHASES

OUTPUT: dict[str, Any] = runpy.run_path(str(PROBE / "output.py"))
CLOCK: dict[str, Any] = runpy.run_path(str(PROBE / "clock.py"))
# Any text that a guest may write, lone surrogates included.
TEXT = st.text(st.one_of(st.characters(), st.sampled_from("\0\n\ud800")))
INTEGER = st.one_of(st.integers(), st.integers(-(2**31) - 2, 2**31 + 2))
VALUES = st.one_of(TEXT, INTEGER)


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
        patch.setattr(launch, "parse", parse)
        audit(Path(sys.executable), root, "größe", detail=True)
    (data,) = found
    return data


def record(*fields: Any) -> bytes:
    """A record that is no mark, as `Output.put` writes it."""
    payload = OUTPUT["encode"](fields)
    return bytes(wire.HEAD.pack(replay.RECORD, len(payload), 0, 0) + payload)


def mark(what: int, wall: int = 0, *, key: int = 1, payload: bytes = b"") -> bytes:
    """A mark of the thread KEY."""
    return wire.HEAD.pack(key << wire.KIND_BITS | what, len(payload), wall, wall) + payload


def border(what: int, number: int, said: str = "", wall: int = 0) -> bytes:
    """A mark where an import begins or ends."""
    return mark(what, wall, payload=wire.NUMBER.pack(number) + said.encode())


def records(data: bytes) -> list[list[Any]]:
    """The records of DATA that are no marks."""
    return [wire.values(e.payload) for e in wire.entries(data) if e.what == replay.RECORD]


def spelled(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if type(value) is str else value


# --- values ------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.lists(VALUES)))
def test_records_come_back_as_they_were_but_for_what_is_no_text(
    written: list[list[Any]],
) -> None:
    data = b"".join(record(*fields) for fields in written)

    assert records(data) == [[spelled(value) for value in one] for one in written]


@settings(deadline=None)
@given(st.lists(VALUES))
def test_the_decoder_agrees_with_the_interpreter(fields: list[Any]) -> None:
    data = OUTPUT["encode"](tuple(fields))

    assert marshal.loads(data) == tuple(fields)
    assert wire.values(data) == [spelled(value) for value in fields]


def test_guest_and_host_have_the_same_numbers() -> None:
    names = [name.upper() for name in PHASES]
    names += ["BEGIN", "WAITED", "RECORD", "LOADED", "PRESENT", "FAILED", "ABANDONED"]

    assert [CLOCK[name] for name in names] == [getattr(replay, name) for name in names]
    assert [CLOCK[name] for name in names] == list(wire.KINDS)
    assert (CLOCK["THREAD"], OUTPUT["RECORD"]) == (1 << wire.KIND_BITS, replay.RECORD)
    assert OUTPUT["HEAD"] == wire.HEAD.size


def test_subclasses_are_written_as_what_they_are() -> None:
    class Name(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "another"

    class Number(int):
        pass

    assert records(record("H", Number(7), Name("größe"), True)) == [["H", 7, "größe", 1]]


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

    assert {fields[0] for fields in records(sample())} == set(reader.READERS)
    assert {e.what for e in wire.entries(sample())} >= {
        replay.BEGIN, replay.RECORD, replay.LOADED, replay.FAILED, replay.READ, replay.BODY
    }  # fmt: skip
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

    ends = [*(entry.place for entry in wire.entries(whole)), len(whole)][1:]
    complete = [e for e, end in zip(wire.entries(whole), ends, strict=True) if end <= cut]
    assert len(trace.events) == sum(map(begins, complete))
    begun = max([0, *(end for end in ends if end <= cut)])
    assert trace.malformed == any(whole[begun:cut])  # zeros alone are nothing


def begins(entry: wire.Entry) -> bool:
    if entry.what == replay.RECORD:
        return wire.values(entry.payload)[0] == "R"
    return entry.what == replay.BEGIN


def test_what_the_guest_has_reserved_and_not_used_is_no_cut() -> None:
    assert reader.parse(sample() + b"\0" * 4096) == reader.parse(sample())


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**9), st.binary(min_size=1, max_size=40))
def test_overwritten_bytes_never_stop_the_reading(where: int, noise: bytes) -> None:
    whole = sample()
    where %= len(whole)
    trace = reader.parse(whole[:where] + noise + whole[where + len(noise) :])

    places = [entry.place for entry in wire.entries(whole) if entry.what == replay.BEGIN]
    ends = [entry.place for entry in wire.entries(whole)][1:]
    begun = sum(any(place < end <= where for end in ends) for place in places)
    assert len(trace.events) >= begun


@given(st.binary(max_size=200))
@settings(deadline=None, max_examples=300)
def test_noise_is_no_trace_and_no_error(noise: bytes) -> None:
    reader.parse(noise)
    reader.parse(mark(replay.RECORD, payload=noise))
    reader.parse(mark(replay.RECORD, payload=b"(\x01\0\0\0u" + noise))
    reader.parse(mark(replay.BEGIN, payload=noise))


ROOT = record("R", 1, 9, 1, 2, 3)


@pytest.mark.parametrize(
    "spoilt",
    [
        record(),
        record("?", "unknown"),
        record(7, 8),
        record("V", 99),
        record("A", 77, "file", 1),
        record("E", 0, "ImportError"),
        record("F", "path", 5),
        record("H", 77, "m"),
        record("H", 0, 5),
        record("I", 0, "m", "p", 5, "f", 1, 1),
        record("N", "m", 5),
        record("X", 1, 2),
        record("R", "1", 9, 1, 2, 3),
        mark(replay.RECORD, payload=OUTPUT["encode"](("C", 1)) + b"i"),
        mark(replay.BODY, key=2),
        mark(replay.WAITED, key=2),
        mark(replay.BEGIN, payload=b"short"),
        border(replay.BEGIN, 77, "m"),
        border(replay.LOADED, 77),
        mark(replay.LOADED, payload=wire.NUMBER.pack(0) + b"\xff"),
    ],
    ids=repr,
)
def test_a_record_that_makes_no_sense_is_counted_and_changes_nothing(spoilt: bytes) -> None:
    trace = reader.parse(ROOT + spoilt)

    assert trace.malformed == 1
    trace.malformed = 0
    assert trace == reader.parse(ROOT)


def test_an_import_that_has_ended_does_not_end_again() -> None:
    begun = ROOT + border(replay.BEGIN, 0, "m", 5)
    ended = begun + border(replay.LOADED, len(ROOT), "Loader\0/m.py", 9)
    trace = reader.parse(ended + border(replay.FAILED, len(ROOT), "", 11))

    assert (trace.malformed, trace.events[1].outcome, trace.events[1].end) == (1, "loaded", 9)


# --- adding up ---------------------------------------------------------------------------


def test_marks_add_up_by_import_and_phase() -> None:
    inner = len(ROOT) + len(border(replay.BEGIN, 0, "outer"))
    data = ROOT + border(replay.BEGIN, 0, "outer", 10) + border(replay.BEGIN, len(ROOT), "in", 15)
    data += mark(replay.READ, 20) + mark(replay.GC, 22) + mark(replay.READ, 30)
    data += mark(replay.BODY, 33) + border(replay.LOADED, inner, "L\0", 40)
    data += mark(replay.BODY, 50) + border(replay.LOADED, len(ROOT), "L\0", 70)
    _, outer, event = reader.parse(data).events.values()

    walls = {name: cost.wall for name, cost in event.phases.items()}
    assert walls == {"find": 5, "read": 2 + 3, "gc": 8, "body": 7}
    assert {n: c.wall for n, c in outer.phases.items()} == {"find": 5 + 10, "body": 20}
    assert (event.parent, event.costs.opened, event.costs.compiled) == (1, 1, 0)


def test_what_an_exception_left_open_ends_with_the_import_around_it() -> None:
    data = ROOT + border(replay.BEGIN, 0, "outer", 10) + border(replay.BEGIN, len(ROOT), "in", 15)
    trace = reader.parse(data + border(replay.LOADED, len(ROOT), "L\0", 40))

    assert [event.outcome for event in trace.events.values()] == ["running", "loaded", "running"]
    assert [number for number, _, _ in trace.clocks_of[1].open] == [0]


# --- storage -----------------------------------------------------------------------------


def test_records_that_fill_more_than_one_segment_are_all_there(tmp_path: Path) -> None:
    output = OUTPUT["create"](str(tmp_path / "trace"))
    names = [f"{n}" + "ä" * 300_000 for n in range(60)]  # 36 MB, three segments
    for name in names:
        output.put("M", name)
    trace = reader.parse(Path(output.path).read_bytes())

    assert trace.before == names
    assert trace.malformed == 0


def test_a_record_longer_than_a_segment_is_left_out(tmp_path: Path) -> None:
    output = OUTPUT["create"](str(tmp_path / "trace"))
    output.put("M", "before")
    output.put("M", "x" * OUTPUT["SEGMENT"])
    output.put("M", "after")

    assert reader.parse(Path(output.path).read_bytes()).before == ["before", "after"]


def test_without_space_records_are_dropped_and_the_closing_one_is_missing(tmp_path: Path) -> None:
    # A limit on the size of files refuses the next segment, as a full disk does.
    output = OUTPUT["create"](str(tmp_path / "trace"))
    third = "x" * (OUTPUT["SEGMENT"] // 3)
    output.put("M", "before")
    output.put("M", third)
    output.put("M", third)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT["SEGMENT"], hard))
    try:
        output.put("M", third)
        output.put("X", 1, 2, 3)
        for _ in range(4):  # what is written for nobody wraps around
            output.put("M", third)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    trace = reader.parse(Path(output.path).read_bytes())

    assert output.full
    assert trace.before == ["before", third, third]
    assert (trace.closed, trace.malformed) == (None, 0)


def test_no_place_at_all_is_no_error_to_the_guest(tmp_path: Path) -> None:
    output = OUTPUT["create"](str(tmp_path / "missing" / "trace"))
    output.put("M", "m")

    assert output.full
    assert list(tmp_path.iterdir()) == []


def test_without_mmap_each_record_is_appended(tmp_path: Path) -> None:
    output = OUTPUT["AppendOutput"](str(tmp_path / "trace"))
    output.put("M", "größe\n")
    output.put("M", os.fsdecode(b"\xff"))

    assert reader.parse(Path(output.path).read_bytes()).before == ["größe\n", r"\udcff"]
