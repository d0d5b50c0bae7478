"""The trace: every import once, at its time, and slices that lie inside each other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.command import audit, importaudit
from support.records import tiny
from support.targets import write_tree

from importaudit import record as records
from importaudit.record import Cost, Event, Process, Record
from importaudit.views.trace import BEFORE_BODY, Slice, render, slices


def check(found: list[Slice]) -> None:
    """Slices of a track are beside or inside each other."""
    tracks: dict[tuple[int, int], list[Slice]] = {}
    for one in found:
        assert one.length >= 0
        tracks.setdefault((one.pid, one.thread), []).append(one)
    for track in tracks.values():
        ends: list[int] = []
        for one in sorted(track, key=lambda s: (s.start, -s.length)):
            while ends and ends[-1] <= one.start:
                ends.pop()
            assert not ends or one.start + one.length <= ends[-1], one
            ends.append(one.start + one.length)


def imports(found: list[Slice]) -> list[tuple[str, int, int]]:
    kinds = ("phase", "interpreter")
    return sorted((s.name, s.start, s.length) for s in found if s.category not in kinds)


@st.composite
def chains(draw: st.DrawFn) -> list[Event]:
    """Imports inside imports, each with phases that it may or may not have had time for."""
    events = [Event(0, -1, "__main__", start=10, wall=1 << 20)]

    def inside(parent: int, start: int, end: int, depth: int) -> None:
        at = start
        while at < end and draw(st.booleans()):
            begin = draw(st.integers(at, end))
            stop = draw(st.integers(begin, end))
            number = len(events)
            had = draw(st.sets(st.sampled_from([*BEFORE_BODY, "body"])))
            longest = 1 + (stop - begin) // 3
            phases = {phase: Cost(draw(st.integers(0, longest))) for phase in had}
            events.append(Event(number, parent, f"m{number}", start=begin, wall=stop - begin,
                                phases=phases))  # fmt: skip
            if depth < 4:
                inside(number, begin, stop, depth + 1)
            at = stop + 1

    inside(0, 10, 10 + (1 << 20), 0)
    return events


@given(chains())
def test_slices_nest_and_every_import_is_there_once(events: list[Event]) -> None:
    found = list(slices(tiny(processes=[Process(7, events=events)])))

    check([one for one in found if one.category != "interpreter"])
    assert imports(found) == sorted((e.module, e.start, e.wall) for e in events)


def test_phases_are_drawn_in_order_up_to_the_body() -> None:
    phases = {"body": Cost(50), "read": Cost(20), "find": Cost(10)}
    events = [
        Event(0, -1, "__main__", start=0, wall=1000),
        Event(1, 0, "m", start=100, wall=500, phases=phases),
        Event(2, 1, "inner", start=140, wall=100),
    ]
    record = tiny(processes=[Process(7, events=events)])
    drawn = [(s.name, s.start, s.length) for s in slices(record) if s.category == "phase"]

    assert drawn == [("find", 100, 10), ("read", 110, 20), ("body", 130, 470)]
    events[2].start = 120  # while it was still being read
    assert [s for s in slices(record) if s.category == "phase"] == []


def test_what_is_no_unicode_and_what_failed() -> None:
    events = [Event(0, -1, "__main__", start=0, wall=9), Event(
        1, 0, "caf\udce9", start=1, wall=2, outcome="failed", error="E", message="no")]  # fmt: skip
    content = json.loads(render(tiny(processes=[Process(7, events=events)])))
    (found,) = (e for e in content["traceEvents"] if e.get("cat") == "failed")

    assert found["name"] == r"caf\udce9"
    assert (found["ts"], found["dur"], found["args"]["error"]) == (0.001, 0.002, "E: no")


def drawn(record: Record) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(render(record))["traceEvents"]
    return found


def test_a_real_target_with_threads_and_children(tmp_path: Path) -> None:
    code = (
        "import os, threading\nt = threading.Thread(target=__import__, args=('wave',))\n"
        "t.start(); t.join()\npid = os.fork()\nif not pid:\n    import calendar\n    os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
    )
    root = write_tree(tmp_path / "target", {"busy.py": code})
    record = audit("busy", "--python", sys.executable, cwd=root).record
    check(list(slices(record)))
    events = drawn(record)

    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {
        "busy", "child (fork)"}  # fmt: skip
    (wave,) = (e for e in events if e["name"] == "wave")
    assert wave["tid"] != 0
    assert {e["name"] for e in events} >= {"calendar", "interpreter start", "interpreter shutdown"}


def test_the_command_writes_it(tmp_path: Path) -> None:
    records.write(tiny(), tmp_path / "record.json")
    done = importaudit("show", "record.json", "--trace", "trace.json", cwd=tmp_path)

    assert (done.code, (tmp_path / "trace.json").read_bytes()) == (0, render(tiny()))
