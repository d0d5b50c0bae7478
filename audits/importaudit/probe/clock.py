"""The clocks: which thread spends its time on which phase of which import.

Each thread that imports is in one phase of one import at any moment. A *mark* says that from
now on it is in another: thread and phase, wall and CPU clock in nanoseconds, written straight
into the trace. Marks are all that is taken; the host adds up what lies between them, so that
every moment belongs to one cell and nothing is a remainder.

Runnable but not running (the second field of /proc/thread-self/schedstat) is read where an
import begins or ends, and only when the thread was off the processor for longer than GAP since
the last such point: a system call and a parse less, nearly always.
"""

import os
from _thread import get_ident
from time import perf_counter_ns, thread_time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a mark says: a phase, in the order of importaudit.record.PHASES and counted from one (a
# byte of zeros is no record),
IMPORT, FIND, READ, UNMARSHAL, COMPILE, DLOPEN, GC, BODY, PROBE = range(1, 10)
BEGIN = 10  # an import begins here, or
WAITED = 11  # so many nanoseconds were spent waiting for a processor, up to the next mark, or
RECORD = 12  # this is no mark (see `output`), or
LOADED, PRESENT, FAILED, ABANDONED = range(13, 17)  # an import ends here, like that
THREAD = 32  # a mark is one of these and a multiple of this, which says whose it is
GAP = 20_000  # nanoseconds

keys = iter(range(THREAD, 1 << 31, THREAD)).__next__


class Thread:
    """A thread that is importing: its innermost import, its phase, and when it started to."""

    __slots__ = ("key", "event", "phase", "before_gc", "off", "wall", "cpu", "ident",
                 "descriptor", "waited")  # fmt: skip

    def __init__(self, event: "Any") -> None:
        self.key = keys()
        self.ident = get_ident()
        self.event = event
        self.phase = self.before_gc = BODY
        self.restart()

    def restart(self) -> None:
        """Begin to measure here: a new thread, or the one that goes on in a forked child."""
        self.descriptor = open_schedstat()
        self.waited = 0
        off_processor(self)
        self.cpu = thread_time_ns()
        self.wall = perf_counter_ns()
        self.off = self.wall - self.cpu  # as of the last time that `waited` may have grown


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


def close_quietly(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        pass
