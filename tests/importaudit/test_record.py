"""The Record as a file: lossless, atomic, small, and refused with its problems named."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.records import tiny

from importaudit import record as records
from importaudit.errors import OutputError, RecordError
from importaudit.record import PHASES, Cost, Edge, Event, Process, Record, Spread

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def parts_of(kind: Any) -> set[type[Any]]:
    """KIND and every struct that it consists of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return {kind}.union(*(parts_of(field.type) for field in fields))
    return set().union(*(parts_of(argument) for argument in get_args(kind)))


PARTS = sorted(parts_of(Record), key=lambda part: part.__name__)

SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
}


def any_of(part: type[Any]) -> st.SearchStrategy[Any]:
    """Instances of PART, every field drawn from its annotation."""
    fields = msgspec.structs.fields(part)
    return st.builds(part, **{field.name: drawn(field.type) for field in fields})


def drawn(kind: Any) -> st.SearchStrategy[Any]:
    if kind in SIMPLE:
        return SIMPLE[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return any_of(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        return st.lists(drawn(arguments[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(drawn(arguments[0]), drawn(arguments[1]), max_size=2)
    return st.one_of([drawn(argument) for argument in arguments])  # an optional field


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Apply CHANGE to the file of a Record, as JSON."""
    content = msgspec.json.decode(path.read_bytes())
    change(content)
    path.write_bytes(msgspec.json.encode(content))
    return path


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "record.json"
    records.write(tiny(), path)
    return path


# --- lossless ----------------------------------------------------------------------------


@settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(any_of(Record))
def test_what_was_written_is_read_back(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "record.json"
    path.unlink(missing_ok=True)
    record.format, record.version = records.FORMAT, records.VERSION
    records.write(record, path)

    assert records.read(path) == record


def test_names_that_are_not_ascii_are_readable_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "größe.json"
    records.write(tiny(target="größe"), path)

    assert '"größe"' in path.read_text("utf-8")
    assert records.read(path).target == "größe"


def test_what_is_no_unicode_is_spelled_out() -> None:
    assert records.text(os.fsdecode(b"caf\xe9.py")) == r"caf\udce9.py"
    assert records.text("café") == "café"


def test_own_cost_is_without_collections_and_the_probe() -> None:
    phases = {phase: Cost(1 << n, 0, 0) for n, phase in enumerate(PHASES)}
    event = Event(1, 0, "m", start=0, phases=phases)

    assert event.own.wall == sum(1 << n for n, p in enumerate(PHASES) if p not in ("gc", "probe"))


def test_ten_thousand_events_stay_under_ten_megabytes(tmp_path: Path) -> None:
    def path_of(n: int) -> str:
        return f"/srv/venv/lib/python3.11/site-packages/package/module_{n:07}.py"

    def name_of(n: int) -> str:
        return f"package.subpackage.module_{n:07}"

    took = {phase: Cost(1_234_567, 1_123_456, 12_345) for phase in PHASES[:6]}
    events = [
        Event(n, n // 2, name_of(n), start=9_876_543_210, wall=123_456_789, phases=took, line=123,
              origin=path_of(n))
        for n in range(10_000)
    ]  # fmt: skip
    edges = {
        name_of(n): [Edge(name_of(n + k), 123, 2, "name, another") for k in range(6)]
        for n in range(10_000)
    }
    median = [1_234_567, 1_123_456, 1_345_678]
    record = tiny(
        processes=[Process(7, events=events)],
        edges=edges,
        spreads={name_of(n): Spread(median, median) for n in range(10_000)},
        distributions={"package 1.2.3": [name_of(n) for n in range(10_000)]},
    )
    path = tmp_path / "large.json"
    records.write(record, path)

    assert len(path_of(0)) > 60
    assert path.stat().st_size < 10_000_000
    assert records.read(path) == record


# --- written whole or not at all ---------------------------------------------------------


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(written: Path) -> None:
    before = written.read_bytes()
    # The limit makes write(2) fail half-way, as a full disk does; the signal is ignored.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OutputError) as caught:
            records.write(tiny(notes=["x" * 10_000]), written)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert str(written) in caught.value.problem
    assert "File too large" in caught.value.problem
    assert "another place" in caught.value.hint
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]


def test_a_write_that_is_interrupted_leaves_nothing(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    before = written.read_bytes()
    monkeypatch.setattr(records, "current_umask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        records.write(tiny(), written)

    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="No such file or directory"):
        records.write(tiny(), tmp_path / "missing" / "record.json")


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_the_mode_of_the_file_follows_the_umask(tmp_path: Path, mask: int) -> None:
    path = tmp_path / "record.json"
    previous = os.umask(mask)
    try:
        records.write(tiny(), path)
        assert os.umask(mask) == mask  # reading it has not changed it
    finally:
        os.umask(previous)

    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_a_link_stays_a_link(written: Path) -> None:
    link = written.with_name("link.json")
    link.symlink_to(written.name)
    records.write(tiny(target="other"), link)

    assert link.is_symlink()
    assert records.read(written).target == "other"


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = "import sys; from importaudit.record import read; print(read(__import__('pathlib')"
    code += ".Path(sys.argv[1])).target)"
    with subprocess.Popen([sys.executable, "-c", code, pipe], stdout=subprocess.PIPE) as reader:
        records.write(tiny(), pipe)
        out, _ = reader.communicate(timeout=60)

    assert out == b"one\n"
    assert pipe.is_fifo()


# --- refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not a Record"),
        (b"\x80\x81", "is not a Record"),
        (b"{", "is not a Record"),
        (b"[1, 2]", "is not a Record"),
        (b'{"format": "\xff"}', "is not a Record"),
        (b"{}", "its format is not 'importaudit-record'"),
        (b'{"format": "another", "version": 1}', "its format is not 'importaudit-record'"),
        (b'{"format": "importaudit-record", "version": 1}', "version 1; this importaudit reads 3"),
        (b'{"format": "importaudit-record", "version": "1"}', "version '1'"),
        (b'{"format": "importaudit-record"}', "version None"),
    ],
)
def test_what_is_no_record_of_this_version_is_refused(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(content)
    with pytest.raises(RecordError) as caught:
        records.read(path)

    assert str(path) in caught.value.problem
    assert problem in caught.value.problem
    assert caught.value.hint


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"cannot read .*: Is a directory"):
        records.read(tmp_path)
    with pytest.raises(RecordError, match=r"cannot read .*: No such file"):
        records.read(tmp_path / "missing.json")


def test_a_newer_version_may_have_any_fields(written: Path) -> None:
    edit(written, lambda content: content.update(version=99, runs="another shape"))

    with pytest.raises(RecordError, match="version 99") as caught:
        records.read(written)
    assert "malformed" not in caught.value.problem


def test_everything_that_is_wrong_is_named_at_once(written: Path) -> None:
    def spoil(content: dict[str, Any]) -> None:
        content["surprise"] = 1
        content["another"] = 2
        content["modules"] = "one"
        content["runs"][0]["wall"] = "long"
        content["environment"]["colour"] = "blue"
        del content["created"]

    with pytest.raises(RecordError) as caught:
        records.read(edit(written, spoil))
    problem = caught.value.problem
    assert "unknown field 'another'" in problem
    assert "unknown field 'surprise'" in problem
    assert "no field 'created'" in problem
    assert "field 'modules': Expected `array`" in problem
    assert "field 'runs': Expected `int`, got `str` - at `$[0].wall`" in problem
    assert "field 'environment': Object contains unknown field `colour`" in problem
    assert problem.count("field '") == 6


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_no_part_swallows_what_it_does_not_know(part: type[Any]) -> None:
    assert part.__struct_config__.forbid_unknown_fields


# --- schema ------------------------------------------------------------------------------


def test_the_schema_describes_every_field_of_every_part() -> None:
    schema = records.schema()
    definitions = schema["$defs"]

    assert schema["$ref"] == "#/$defs/Record"
    structs = {name for name, described in definitions.items() if "enum" not in described}
    assert structs == {part.__name__ for part in PARTS}
    for part in PARTS:
        fields = [field.encode_name for field in msgspec.structs.fields(part)]
        described = definitions[part.__name__]
        if part.__struct_config__.array_like:
            assert len(described["prefixItems"]) == len(fields)
        else:
            assert list(described["properties"]) == fields


def test_a_written_record_satisfies_the_schema(written: Path) -> None:
    schema = records.schema()

    assert conforms(msgspec.json.decode(written.read_bytes()), schema, schema["$defs"])
    spoiled = edit(written, lambda content: content["runs"][0].update(wall="long"))
    assert not conforms(msgspec.json.decode(spoiled.read_bytes()), schema, schema["$defs"])


def conforms(value: Any, schema: Any, definitions: dict[str, Any]) -> bool:
    """Whether VALUE satisfies SCHEMA, as far as the keywords go that ours uses."""
    if "$ref" in schema:
        return conforms(value, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return any(conforms(value, choice, definitions) for choice in schema["anyOf"])
    if not isinstance(value, KINDS[schema["type"]]):
        return False
    if isinstance(value, dict):
        known, other = schema.get("properties", {}), schema.get("additionalProperties")
        missing = set(schema.get("required", ())) - set(value)
        return not missing and all(
            conforms(item, known.get(key) or other or NEVER, definitions)
            for key, item in value.items()
        )
    if isinstance(value, list):
        places = [*schema.get("prefixItems", []), *[schema.get("items")] * len(value)]
        return all(
            conforms(item, place or NEVER, definitions)
            for item, place in zip(value, places, strict=False)
        )
    return True


NEVER: dict[str, Any] = {"anyOf": []}
KINDS: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float),
    "boolean": bool, "null": type(None),
}  # fmt: skip
