"""Reading the guest's trace files.

A trace is records (see ``wire``), tuples of strings and integers; the first field of each says
what it is:

    V version                                   of this format
    P pid parent wall cpu                       the process, and the clocks before the probe
    F key value                                 a fact of the interpreter
    M name...                                   sys.modules before the target ran
    R thread wall cpu waited                    the main thread starts with the target's code
    B number parent thread name marks file line      an import begins
    E number outcome marks loader origin error message    and ends
    T thread number                             a thread was still importing at the end
    N name...                                   sys.modules at the end
    C count count count                         collections, by generation
    D wall cpu waited                           the target's code has ended
    H number name                               in sys.modules by hand, during that import
    L number line ns                            samples of a line of that import's body
    I number name package names file line count an import statement, run during that import
    X wall process-cpu thread-cpu               the last record

Marks are what ``probe.clock`` takes, three integers each (see ``replay``). The code that asked
for an import, FILE and LINE, is known in a detail run only.

A trace may end anywhere: the process crashed, was killed, or left by ``os._exit``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from importaudit.measure import wire
from importaudit.measure.replay import BODY, Clock
from importaudit.record import Cost

FORMAT_VERSION = 1


@dataclass
class RawEvent:
    """An import as the guest wrote it; ``end`` is 0 while it runs."""

    number: int
    parent: int
    thread: int
    name: str
    file: str = ""
    line: int = 0
    start: int = 0
    end: int = 0
    outcome: str = "running"
    phases: dict[str, Cost] = field(default_factory=dict)
    loader: str = ""
    origin: str = ""
    error: str = ""
    message: str = ""


@dataclass
class Statement:
    """An import statement or call, as often as it ran during one import."""

    number: int
    name: str
    package: str
    names: str
    file: str
    line: int
    count: int


@dataclass
class Trace:
    """One process."""

    pid: int = 0
    parent: int = 0
    facts: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    final_path: list[str] = field(default_factory=list)
    clocks: tuple[int, int] = (0, 0)
    root: tuple[int, int, int, int] | None = None
    events: dict[int, RawEvent] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    running: list[tuple[int, int]] = field(default_factory=list)
    collections: list[int] = field(default_factory=list)
    done: tuple[int, int, int] | None = None
    closed: tuple[int, int, int] | None = None
    by_hand: list[tuple[int, str]] = field(default_factory=list)
    samples: list[tuple[int, int, int]] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    malformed: int = 0
    clocks_of: dict[int, Clock] = field(default_factory=dict)  # by thread


def parse(data: bytes) -> Trace:
    """Read a trace, whole or cut off; records that make no sense are counted, not guessed at."""
    trace = Trace()
    try:
        for record in wire.records(data):
            try:
                take(trace, record)
            except (ValueError, KeyError):
                trace.malformed += 1
    except wire.Damaged:
        trace.malformed += 1
    return trace


def read(path: Path) -> Trace:
    """Read the trace at PATH."""
    return parse(path.read_bytes())


def take(trace: Trace, record: Sequence[wire.Value]) -> None:
    """Add RECORD to TRACE; raises ValueError or KeyError, with TRACE unchanged, if it is none."""
    kind, *fields = record
    shape, reader = READERS[str(kind)]
    if shape.endswith("*"):
        shape = shape[0] * len(fields)
    types = [TYPES[letter] for letter in shape]
    if [type(value) for value in fields] != types:
        raise ValueError(kind)
    reader(trace, *fields)


def read_version(_: Trace, version: int) -> None:
    if version != FORMAT_VERSION:
        raise ValueError(version)


def read_process(trace: Trace, pid: int, parent: int, wall: int, cpu: int) -> None:
    trace.pid, trace.parent, trace.clocks = pid, parent, (wall, cpu)


def read_fact(trace: Trace, key: str, value: str) -> None:
    if key == "path":
        trace.path.append(value)
    elif key == "final_path":
        trace.final_path.append(value)
    else:
        trace.facts[key] = value


def read_root(trace: Trace, thread: int, wall: int, cpu: int, waited: int) -> None:
    trace.root = (thread, wall, cpu, waited)
    root = trace.events[0] = RawEvent(0, -1, thread, "__main__", start=wall)
    clock = trace.clocks_of[thread] = Clock()
    clock.begin(root.phases, wall, cpu, BODY)


def read_begin(
    trace: Trace, number: int, parent: int, thread: int, name: str, marks: list[int], file: str,
    line: int,
) -> None:  # fmt: skip
    event = RawEvent(number, parent, thread, name, file, line)
    clock = trace.clocks_of.setdefault(thread, Clock())
    event.start = clock.replay(marks, event.phases)
    trace.events[number] = event


def read_end(
    trace: Trace, number: int, outcome: str, marks: list[int], loader: str, origin: str,
    error: str, message: str,
) -> None:  # fmt: skip
    event = trace.events[number]
    when = trace.clocks_of[event.thread].replay(marks, event.phases)
    if event.end:  # said again, since a signal's exception came between this and the next step
        return
    event.end = when
    event.outcome, event.loader, event.origin = outcome, loader, origin
    event.error, event.message = error, message


# What the fields of each kind of record are (i integer, s string, l list, * any number of them),
# and what becomes of them.
TYPES = {"i": int, "s": str, "l": list}
READERS: dict[str, tuple[str, Callable[..., None]]] = {
    "V": ("i", read_version),
    "P": ("iiii", read_process),
    "F": ("ss", read_fact),
    "R": ("iiii", read_root),
    "B": ("iiislsi", read_begin),
    "E": ("islssss", read_end),
    "I": ("issssii", lambda trace, *fields: trace.statements.append(Statement(*fields))),
    "M": ("s*", lambda trace, *names: trace.before.extend(names)),
    "N": ("s*", lambda trace, *names: trace.after.extend(names)),
    "T": ("ii", lambda trace, *fields: trace.running.append(fields)),
    "C": ("i*", lambda trace, *counts: trace.collections.extend(counts)),
    "D": ("iii", lambda trace, *clocks: setattr(trace, "done", clocks)),
    "X": ("iii", lambda trace, *clocks: setattr(trace, "closed", clocks)),
    "H": ("is", lambda trace, *fields: trace.by_hand.append(fields)),
    "L": ("iii", lambda trace, *fields: trace.samples.append(fields)),
}
