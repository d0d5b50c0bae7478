"""The clocks: which thread spends its time on which phase of which import.

Each thread that imports is in one phase of one import at any moment. A *mark* says that from
now on it is in another: the number of the phase, wall and CPU clock, in nanoseconds. Marks are
all that is taken; the host adds up what lies between them, so that every moment belongs to one
cell and nothing is a remainder. Marks wait in the thread's log for the next record.

Runnable but not running (the second field of /proc/thread-self/schedstat) is read where an
import begins or ends, and only when the thread was off the processor for longer than GAP since
the last such point: a system call and a parse less, nearly always.

Cost matters more than looks here and in the tracer: this code runs thousands of times, each
time in cold processor caches.
"""

import os
from _thread import get_ident
from time import perf_counter_ns, thread_time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a mark says: a phase, in the order of importaudit.record.PHASES, or
IMPORT, FIND, READ, UNMARSHAL, COMPILE, DLOPEN, GC, BODY, PROBE = range(9)
BEGIN = 9  # an import begins here, or
END = 10  # ends here, or
WAITED = 11  # so many nanoseconds were spent waiting for a processor, up to the next mark
GAP = 20_000  # nanoseconds


class Event:
    """One import: from taking the module's lock to releasing it."""

    __slots__ = ("ended", "name", "number", "phase", "ran", "sought", "spec", "upper")

    def __init__(self, name: str, number: int, upper: "Event | None", phase: int) -> None:
        self.name = name
        self.number = number
        self.upper = upper  # the import that was running in this thread, and
        self.phase = phase  # the phase it was in
        self.spec: Any = None
        self.sought = False  # looked for by a finder: not merely waited for
        self.ran = False  # its body has started
        self.ended = False


class Thread:
    """A thread that is importing: its open imports, its phase, and the marks not yet written."""

    __slots__ = ("before_gc", "cpu", "descriptor", "event", "ident", "log", "phase", "wall",
                 "waited")  # fmt: skip

    def __init__(self, event: Event) -> None:
        self.ident = get_ident()
        self.event = event
        self.log: list[int] = []
        self.phase = IMPORT
        self.before_gc = IMPORT
        self.restart()

    def restart(self) -> None:
        """Begin to measure here: a new thread, or the one that goes on in a forked child."""
        self.descriptor = open_schedstat()
        self.waited = 0
        off_processor(self)
        self.cpu = thread_time_ns()
        self.wall = perf_counter_ns()


def open_schedstat() -> int:
    """Open this thread's own scheduler statistics, or -1 where the kernel has none.

    The descriptor is moved to the highest free number: the target gets the ones that it would
    get without us.
    """
    try:
        descriptor = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        number = min(os.sysconf("SC_OPEN_MAX"), 1 << 16) - 1
        while is_open(number):
            number -= 1
        os.dup2(descriptor, number, False)
    except (OSError, ValueError):
        return descriptor
    os.close(descriptor)
    return number


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def off_processor(thread: Thread) -> int:
    """Nanoseconds that this thread has been runnable without running, since the last call."""
    try:
        total = int(os.pread(thread.descriptor, 80, 0).split()[1])
    except (OSError, IndexError, ValueError):  # the target closed it, or put something there
        thread.descriptor = open_schedstat()
        return 0
    waited = total - thread.waited
    thread.waited = total
    return waited


def mark(thread: Thread, phase: int) -> None:
    """From now on THREAD is in PHASE."""
    thread.phase = phase
    thread.log += (phase, perf_counter_ns(), thread_time_ns())


def border(thread: Thread, what: int, phase: int) -> "list[int]":
    """Mark that an import begins or ends, with THREAD in PHASE after it; returns the log so far.

    The log is replaced, not cleared: a collection may add marks at any moment.
    """
    wall = perf_counter_ns()
    cpu = thread_time_ns()
    log = thread.log
    thread.log = []
    if wall - thread.wall - cpu + thread.cpu > GAP:
        log += (WAITED, off_processor(thread), 0)
    log += (what, wall, cpu)
    thread.wall = wall
    thread.cpu = cpu
    thread.phase = phase
    return log


def close_quietly(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        pass
