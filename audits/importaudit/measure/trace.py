"""Reading the guest's trace files.

A trace is records (see ``wire``). Most are marks (see ``replay``). The payload of the mark where
an import begins is the number of the import around it and the module's name; of that where
it ends, its own number and the loader's type and the origin, with a zero byte between. The number
of an import is the place in the trace where it begins, and 0 is ``__main__``. The other records
are tuples of strings and integers, the first of which says what it is:

    V version                                   of this format
    P pid parent wall cpu                       the process, and the clocks before the probe
    F key value                                 a fact of the interpreter
    M name...                                   sys.modules before the target ran
    R key thread wall cpu waited                the main thread starts with the target's code
    K key thread                                another thread imports; its marks carry KEY
    A number file line                          the code that asked for an import (detail run)
    E number error message                      the import that ends next has failed
    T thread number                             a thread was still importing at the end
    N name...                                   sys.modules at the end
    C count count count                         collections, by generation
    D wall cpu waited                           the target's code has ended
    O path...                                   files that were opened (detail run)
    H number name                               in sys.modules by hand, during that import
    L number line ns                            samples of a line of that import's body
    I number name package names file line count an import statement, run during that import
    X wall process-cpu thread-cpu               the last record

A trace may end anywhere: the process crashed, was killed, or left by ``os._exit``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from importaudit.measure import wire
from importaudit.measure.replay import (
    BEGIN,
    BODY,
    FAILED,
    FIND,
    IMPORT,
    OUTCOMES,
    PRESENT,
    RECORD,
    WAITED,
    Clock,
    Costs,
)
from importaudit.measure.wire import Damaged, Entry
from importaudit.record import NOTHING, PHASES, Cost

FORMAT_VERSION = 2


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
    costs: Costs = field(default_factory=Costs)
    loader: str = ""
    origin: str = ""
    error: str = ""
    message: str = ""

    @property
    def phases(self) -> dict[str, Cost]:
        """What each phase cost."""
        return self.costs.phases


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
    opened: list[str] = field(default_factory=list)
    by_hand: list[tuple[int, str]] = field(default_factory=list)
    samples: list[tuple[int, int, int]] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    malformed: int = 0
    clocks_of: dict[int, Clock] = field(default_factory=dict)  # by key of the thread
    threads: dict[int, int] = field(default_factory=dict)  # by key
    numbers: dict[int, int] = field(default_factory=dict)  # of imports, by place in the trace


def parse(data: bytes) -> Trace:
    """Read a trace, whole or cut off; records that make no sense are counted, not guessed at."""
    trace = Trace()
    try:
        for entry in wire.entries(data):
            try:
                take(trace, entry)
            except (ValueError, KeyError):
                trace.malformed += 1
    except Damaged:
        trace.malformed += 1
    return trace


def take(trace: Trace, entry: Entry) -> None:
    """Add ENTRY to TRACE; raises ValueError or KeyError, with TRACE unchanged, if it is none."""
    if entry.what == RECORD:
        take_record(trace, wire.values(entry.payload))
    elif entry.what == WAITED:
        trace.clocks_of[entry.thread].waited += entry.wall
    elif entry.what == BEGIN:
        take_begin(trace, entry)
    elif entry.what in OUTCOMES:
        take_end(trace, entry)
    else:
        trace.clocks_of[entry.thread].enter(entry.what, entry.wall, entry.cpu)


def take_begin(trace: Trace, entry: Entry) -> None:
    above, name = wire.border(entry.payload)
    number, parent = len(trace.events), trace.numbers[above]
    event = RawEvent(number, parent, trace.threads[entry.thread], name, start=entry.wall)
    trace.clocks_of[entry.thread].begin(number, event.costs, entry.wall, entry.cpu)
    trace.numbers[entry.place] = number
    trace.events[number] = event


def take_end(trace: Trace, entry: Entry) -> None:
    place, said = wire.border(entry.payload)
    event = trace.events[trace.numbers[place]]
    trace.clocks_of[entry.thread].end(event.number, entry.wall, entry.cpu)
    event.end = entry.wall
    event.outcome = OUTCOMES[entry.what]
    event.loader, _, event.origin = said.partition("\0")
    if entry.what != FAILED:
        event.error = event.message = ""
    if entry.what == PRESENT:  # what looked like a search was a wait for another thread
        searched = event.phases.pop(PHASES[FIND - 1], NOTHING)
        event.phases[PHASES[IMPORT - 1]] = searched


def take_record(trace: Trace, record: Sequence[wire.Value]) -> None:
    kind, *fields = record
    shape, reader = READERS[str(kind)]
    if shape.endswith("*"):
        shape = shape[0] * len(fields)
    types = [TYPES[letter] for letter in shape]
    if [type(value) for value in fields] != types:
        raise ValueError(kind)
    for place, letter in enumerate(shape):
        if letter == "n":
            fields[place] = trace.numbers[int(fields[place])]
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


def read_root(trace: Trace, key: int, thread: int, wall: int, cpu: int, waited: int) -> None:
    trace.root = (thread, wall, cpu, waited)
    root = trace.events[0] = RawEvent(0, -1, thread, "__main__", start=wall)
    trace.numbers[0] = 0
    read_thread(trace, key, thread)
    trace.clocks_of[key].begin(0, root.costs, wall, cpu, BODY)


def read_thread(trace: Trace, key: int, thread: int) -> None:
    trace.threads[key] = thread
    trace.clocks_of[key] = Clock()


def read_asked(trace: Trace, number: int, file: str, line: int) -> None:
    event = trace.events[number]
    event.file, event.line = file, line


def read_error(trace: Trace, number: int, error: str, message: str) -> None:
    event = trace.events[number]
    event.error, event.message = error, message


# What the fields of each kind of record are (i integer, n number of an import, s string, * any
# number of them), and what becomes of them.
TYPES = {"i": int, "n": int, "s": str}
READERS: dict[str, tuple[str, Callable[..., None]]] = {
    "V": ("i", read_version),
    "P": ("iiii", read_process),
    "F": ("ss", read_fact),
    "R": ("iiiii", read_root),
    "K": ("ii", read_thread),
    "A": ("nsi", read_asked),
    "E": ("nss", read_error),
    "I": ("nssssii", lambda trace, *fields: trace.statements.append(Statement(*fields))),
    "M": ("s*", lambda trace, *names: trace.before.extend(names)),
    "N": ("s*", lambda trace, *names: trace.after.extend(names)),
    "T": ("in", lambda trace, *fields: trace.running.append(fields)),
    "C": ("i*", lambda trace, *counts: trace.collections.extend(counts)),
    "D": ("iii", lambda trace, *clocks: setattr(trace, "done", clocks)),
    "X": ("iii", lambda trace, *clocks: setattr(trace, "closed", clocks)),
    "O": ("s*", lambda trace, *paths: trace.opened.extend(paths)),
    "H": ("ns", lambda trace, *fields: trace.by_hand.append(fields)),
    "L": ("nii", lambda trace, *fields: trace.samples.append(fields)),
}
