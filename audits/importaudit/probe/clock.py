"""The clocks: which thread spends its time on which phase of which import.

Each thread that imports has one *current cell*: the phase of the import that
it is in. ``switch`` closes the interval since the last switch into that cell and opens the
next, so the cells of a thread add up to its wall time exactly, and nothing is a remainder.
A cell is three integers, in nanoseconds: wall, CPU of this thread, and runnable but not running
(the second field of /proc/thread-self/schedstat; read only after an interval in which the
thread was off the processor for longer than GAP).
"""

import os
from _thread import get_ident
from time import perf_counter_ns, thread_time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Offsets of the phases in the cells of an event; the order is that of the E lines.
IMPORT, FIND, READ, UNMARSHAL, COMPILE, DLOPEN, GC, BODY, PROBE = range(0, 27, 3)
EMPTY = [0] * 27
GAP = 20_000  # nanoseconds


class Event:
    """One import: from taking the module's lock to releasing it."""

    __slots__ = ("cells", "ended", "name", "number", "phase", "ran", "sought", "spec", "upper")

    def __init__(self, name: str, number: int, upper: "Event | None", phase: int) -> None:
        self.name = name
        self.number = number
        self.upper = upper  # the import that was running in this thread, and
        self.phase = phase  # the phase it was in
        self.cells = EMPTY[:]
        self.spec: Any = None
        self.sought = False  # looked for by a finder: not merely waited for
        self.ran = False  # its body has started
        self.ended = False


class Thread:
    """A thread that is importing: its open imports and its current cell."""

    __slots__ = ("before_gc", "cells", "cpu", "descriptor", "event", "ident", "phase", "wall",
                 "waited")  # fmt: skip

    def __init__(self, event: Event) -> None:
        self.ident = get_ident()
        self.event = event
        self.cells = event.cells
        self.phase = IMPORT
        self.before_gc = IMPORT
        self.descriptor = open_schedstat()
        self.waited = 0
        self.waited = off_processor(self)
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


def switch(thread: Thread, phase: int) -> None:
    """Close the running interval into the current cell and make PHASE the current one."""
    cpu = thread_time_ns()
    wall = perf_counter_ns()
    took = wall - thread.wall
    ran = cpu - thread.cpu
    cells = thread.cells
    cell = thread.phase
    cells[cell] += took
    cells[cell + 1] += ran
    if took - ran > GAP:
        cells[cell + 2] += off_processor(thread)
    thread.wall = wall
    thread.cpu = cpu
    thread.phase = phase


def close_quietly(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        pass
