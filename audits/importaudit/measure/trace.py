"""Reading the guest's trace files.

A trace is records (see ``wire``), tuples of strings and integers; the first field of each says
what it is:

    V version                                   of this format
    P pid parent wall cpu                       the process, and the clocks before the probe
    F key value                                 a fact of the interpreter
    M name...                                   sys.modules before the target ran
    R thread wall cpu waited                    the main thread starts with the target's code
    B number parent thread wall line name file  an import begins
    E number outcome wall cells loader origin error message    and ends
    T thread number                             a thread was still importing at the end
    N name...                                   sys.modules at the end
    C count count count                         collections, by generation
    D wall cpu waited                           the target's code has ended
    H number name                               in sys.modules by hand, during that import
    L number line ns                            samples of a line of that import's body
    I number name package names file line count an import statement, run during that import
    X wall process-cpu thread-cpu               the last record

A trace may end anywhere: the process crashed, was killed, or left by ``os._exit``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from importaudit.measure import wire
from importaudit.record import PHASES, Cost

FORMAT_VERSION = 1


@dataclass
class RawEvent:
    """An import as the guest wrote it; ``end`` is 0 while it runs."""

    number: int
    parent: int
    thread: int
    start: int
    line: int
    name: str
    file: str
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


def parse(data: bytes) -> Trace:
    """Read a trace, whole or cut off; records that make no sense are counted, not guessed at."""
    trace = Trace()
    try:
        for kind, *fields in wire.records(data):
            try:
                READERS[str(kind)](trace, fields)
            except (ValueError, IndexError, KeyError, TypeError):
                trace.malformed += 1
    except ValueError:  # wire.Damaged, or a tuple of nothing
        trace.malformed += 1
    return trace


def read(path: Path) -> Trace:
    """Read the trace at PATH."""
    return parse(path.read_bytes())


def read_version(_: Trace, fields: list[Any]) -> None:
    if fields != [FORMAT_VERSION]:
        raise ValueError(fields)


def read_process(trace: Trace, fields: list[Any]) -> None:
    trace.pid, trace.parent, wall, cpu = map(int, fields)
    trace.clocks = (wall, cpu)


def read_fact(trace: Trace, fields: list[Any]) -> None:
    key, value = fields
    if key == "path":
        trace.path.append(value)
    elif key == "final_path":
        trace.final_path.append(value)
    else:
        trace.facts[key] = value


def read_root(trace: Trace, fields: list[Any]) -> None:
    thread, wall, cpu, waited = map(int, fields)
    trace.root = (thread, wall, cpu, waited)
    trace.events[0] = RawEvent(0, -1, thread, wall, 0, "__main__", "")


def read_begin(trace: Trace, fields: list[Any]) -> None:
    number, parent, thread, wall, line = map(int, fields[:5])
    trace.events[number] = RawEvent(number, parent, thread, wall, line, fields[5], fields[6])


def read_end(trace: Trace, fields: list[Any]) -> None:
    number, outcome, end, numbers, loader, origin, error, message = fields
    event = trace.events[int(number)]
    cells = list(numbers)
    phases = {
        phase: Cost(*cells[i : i + 3])
        for i, phase in zip(range(0, len(cells), 3), PHASES, strict=True)
        if any(cells[i : i + 3])
    }
    event.end, event.outcome, event.phases = int(end), outcome, phases
    event.loader, event.origin, event.error, event.message = loader, origin, error, message


def read_statement(trace: Trace, fields: list[Any]) -> None:
    number, name, package, names, file, line, count = fields
    statement = Statement(int(number), name, package, names, file, int(line), int(count))
    trace.statements.append(statement)


def integers(fields: list[Any]) -> tuple[int, int, int]:
    first, second, third = map(int, fields)
    return first, second, third


READERS: dict[str, Callable[[Trace, list[Any]], None]] = {
    "V": read_version,
    "P": read_process,
    "F": read_fact,
    "R": read_root,
    "B": read_begin,
    "E": read_end,
    "I": read_statement,
    "M": lambda trace, fields: setattr(trace, "before", fields),
    "N": lambda trace, fields: setattr(trace, "after", fields),
    "T": lambda trace, fields: trace.running.append((int(fields[0]), int(fields[1]))),
    "C": lambda trace, fields: setattr(trace, "collections", [int(f) for f in fields]),
    "D": lambda trace, fields: setattr(trace, "done", integers(fields)),
    "X": lambda trace, fields: setattr(trace, "closed", integers(fields)),
    "H": lambda trace, fields: trace.by_hand.append((int(fields[0]), fields[1])),
    "L": lambda trace, fields: trace.samples.append(integers(fields)),
}
