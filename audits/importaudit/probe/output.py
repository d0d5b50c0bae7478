"""Where the trace goes: a file mapped into memory, whatever the target does to its descriptors.

A record is copied into the mapping, which costs no system call and is on the host's side at once:
a process that crashes, is killed or calls ``os._exit`` leaves everything behind. No descriptor
is needed for that, so nothing that the target closes or redirects is ours. Space is reserved
before it is used (``posix_fallocate``), since touching a page that a full disk cannot back would
kill the target; when there is none, records are dropped, and the host sees that the closing one
is missing.

A record is a tuple of strings, integers and lists of integers, as ``marshal`` writes it in its
version 2, which has been the same since Python 2.5: a tenth of the cost of formatting text.

Where the interpreter has no ``mmap``, each record is appended to the file by its name.
"""

import os
import sys
from marshal import dumps

try:
    from mmap import mmap
except ImportError:
    mmap = None  # type: ignore[assignment,misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SEGMENT = 1 << 24  # bytes of address space mapped at a time, about 40,000 imports
TAKEN = 500  # descriptors that are left to the target
RESERVE = 1 << 20  # bytes of storage reserved at a time


def plain(fields: "tuple[Any, ...]") -> "tuple[Any, ...]":
    """FIELDS with what is a subclass of ``str`` or ``int`` made one of those."""
    made: list[Any] = []
    for field in fields:
        if isinstance(field, str):
            made.append("".join(field))
        else:
            made.append(field if type(field) in (int, list) else int(field))
    return tuple(made)


def encode(fields: "tuple[Any, ...]") -> bytes:
    """One record."""
    try:
        return dumps(fields, 2)
    except ValueError:  # of a type that marshal does not know
        return dumps(plain(fields), 2)


def map_segment(descriptor: int, offset: int) -> "Any":
    """Map a segment of the file; the target's descriptors get the numbers they get without us.

    Before 3.13 a mapping keeps a descriptor of its own, the lowest that is free. So that it is
    one that the target has no use for, the lower ones are taken meanwhile.
    """
    if sys.version_info >= (3, 13):
        return mmap(descriptor, SEGMENT, offset=offset, trackfd=False)
    taken: list[int] = []
    try:
        while len(taken) < TAKEN:
            taken.append(os.dup(descriptor))
    except OSError:  # the limit is lower than that
        for number in taken[-2:]:
            os.close(number)
        del taken[-2:]
    try:
        return mmap(descriptor, SEGMENT, offset=offset)
    finally:
        for number in taken:
            os.close(number)


class Output:
    """The trace file of this process, PREFIX.PID."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.restart()

    def restart(self) -> None:
        """Begin a file: at the start, and in a forked child, which leaves its parent's alone."""
        self.path = "%s.%d" % (self.prefix, os.getpid())
        self.map: Any = None
        self.base = 0  # of the mapped segment in the file
        self.position = 0  # in the segment
        self.reserved = 0  # bytes of the segment that have storage
        self.full = False

    def put(self, *fields: "Any") -> None:
        """Append one record."""
        data = encode(fields)
        start = self.position
        stop = start + len(data)
        if stop > self.reserved:
            if not self.reserve(len(data)):
                return
            start = self.position
            stop = start + len(data)
        # No other thread runs between these two lines: there is no call in them.
        self.position = stop
        self.map[start:stop] = data

    def reserve(self, size: int) -> bool:
        """Make room for SIZE bytes after the position; False when there is none to be had."""
        if self.full or size > SEGMENT:
            return False
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self.grow(descriptor, size)
            finally:
                os.close(descriptor)
        except (OSError, ValueError, TypeError):
            self.full = True
        return not self.full

    def grow(self, descriptor: int, size: int) -> None:
        if self.map is None or self.position + size > SEGMENT:
            if self.map is not None:
                self.base += SEGMENT
            os.ftruncate(descriptor, self.base + SEGMENT)
            self.map = map_segment(descriptor, self.base)
            self.position = self.reserved = 0
        reserved = min(SEGMENT, max(self.position + size, self.reserved + RESERVE))
        os.posix_fallocate(descriptor, self.base + self.reserved, reserved - self.reserved)
        self.reserved = reserved


class AppendOutput(Output):
    """The same without ``mmap``: a write by name for each record."""

    def put(self, *fields: "Any") -> None:
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
            try:
                os.write(descriptor, encode(fields))
            finally:
                os.close(descriptor)
        except OSError:
            pass


def create(prefix: str) -> Output:
    """The output of this process."""
    return Output(prefix) if mmap is not None else AppendOutput(prefix)
