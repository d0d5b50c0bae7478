"""A Record as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing: when was what imported?

The Trace Event Format, in its object form. Each traced process of the run that the report shows
is a process, each thread that imported a track, each import a slice on it, from 0, when the
target was spawned. Of an import the Record has the sums of its phases, not when each was: those
before the body follow each other from its beginning, and are drawn so where they fit before the
first import inside it, with the body from there to the end. Where they do not (a finder that
imports), the sums are in the arguments alone; so are collections, which may come at any time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from importaudit.record import Event, Process, Record, text

BEFORE_BODY = ("import", "find", "read", "unmarshal", "compile", "dlopen")


@dataclass(frozen=True)
class Slice:
    """What happened on a track; nanoseconds from when the target was spawned."""

    pid: int
    thread: int
    name: str
    category: str
    start: int
    length: int
    arguments: Mapping[str, Any]

    def event(self) -> dict[str, Any]:
        """The same in the format, which counts microseconds."""
        return {
            "ph": "X", "pid": self.pid, "tid": self.thread, "name": text(self.name),
            "cat": self.category, "ts": self.start / 1000, "dur": self.length / 1000,
            "args": self.arguments,
        }  # fmt: skip


def render(record: Record) -> bytes:
    """The trace, as JSON."""
    events = [event for process in record.processes for event in names(process, record)]
    events += [one.event() for one in slices(record)]
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}).encode() + b"\n"


def names(process: Process, record: Record) -> Iterator[dict[str, Any]]:
    """What the tracks of PROCESS are called."""
    what = f"child ({process.started_by})" if process.started_by else text(record.target)
    yield metadata(process, "process_name", 0, name=what)
    yield metadata(process, "process_sort_index", 0, sort_index=process.pid)
    for thread in sorted({event.thread for event in process.events}):
        name = f"thread {thread}" if thread else "main thread"
        yield metadata(process, "thread_name", thread, name=name)


def metadata(process: Process, what: str, thread: int, **arguments: Any) -> dict[str, Any]:
    return {"ph": "M", "pid": process.pid, "tid": thread, "name": what, "args": arguments}


def slices(record: Record) -> Iterator[Slice]:
    """Every slice: of each process its imports, and of the target its beginning and end."""
    home = {module: name for name, found in record.distributions.items() for module in found}
    for process in record.processes:
        first: dict[int, int] = defaultdict(lambda: 1 << 62)  # import inside each, by its start
        for event in process.events:
            first[event.parent] = min(first[event.parent], event.start)
        for event in process.events:
            yield imported(process, event, home)
            yield from phases(process, event, first[event.number])
    if record.processes:
        run, pid = record.runs[record.representative], record.processes[0].pid
        for row, at_the_end in (("start", False), ("shutdown", True)):
            if row in run.rows:
                length = run.rows[row].wall
                start = run.wall - length if at_the_end else 0
                yield Slice(pid, 0, f"interpreter {row}", "interpreter", start, length, {})


def imported(process: Process, event: Event, home: Mapping[str, str]) -> Slice:
    """The slice of one import."""
    told: dict[str, Any] = {
        "outcome": event.outcome,
        "self ms": event.own.wall / 1e6,
        "self CPU ms": event.own.cpu / 1e6,
        **{f"{phase} ms": cost.wall / 1e6 for phase, cost in event.phases.items()},
        "distribution": home.get(event.module, ""),
        "origin": event.origin,
        "asked for at": f"{event.file}:{event.line}" if event.file else f"line {event.line}",
        "error": f"{event.error}: {event.message}" if event.error else "",
    }
    told = {key: text(v) if isinstance(v, str) else v for key, v in told.items() if v != ""}
    return Slice(
        process.pid, event.thread, event.module, event.outcome, event.start, event.wall, told
    )


def phases(process: Process, event: Event, first: int) -> Iterator[Slice]:
    """The phases of EVENT, where it is known when they were; FIRST is when it began to import."""
    costs = [(phase, event.phases[phase].wall) for phase in BEFORE_BODY if phase in event.phases]
    end = event.start + event.wall
    body = event.start + sum(wall for _, wall in costs)
    if not event.number or body > min(first, end) or any(wall < 0 for _, wall in costs):
        return
    at = event.start
    for phase, wall in costs:
        if wall:
            yield Slice(process.pid, event.thread, phase, "phase", at, wall, {})
        at += wall
    if "body" in event.phases and end > body:
        yield Slice(process.pid, event.thread, "body", "phase", body, end - body, {})
