"""Where the trace goes: a file mapped into memory, whatever the target does to its descriptors.

A record is written into the mapping, which costs no system call and is on the host's side at
once: a process that crashes, is killed or calls ``os._exit`` leaves everything behind. No
descriptor is needed for that, so nothing that the target closes or redirects is ours. Space is
reserved before it is used (``posix_fallocate``), since touching a page that a full disk cannot
back would kill the target; when there is none, records are dropped, and the host sees that the
closing one is missing.

A record is a HEAD, thread and kind, size of what follows, wall and CPU clock, and a payload. The
tracer writes the marks itself, for each import a few: it takes the place at ``position`` by
moving that on, with no call in between, so that neither another thread nor a signal handler
takes the same. Everything else goes through ``put``: strings and integers as ``marshal``
writes them in its version 2, which has been the same since Python 2.5.

Where the interpreter has no ``mmap``, records are collected and appended to the file by its name.
"""

import os
import sys
from _struct import Struct
from marshal import dumps

try:
    from mmap import mmap
except ImportError:
    mmap = None  # type: ignore[assignment,misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SEGMENT = 1 << 24  # bytes of address space mapped at a time, about 40,000 imports
SLACK = 1 << 16  # bytes behind `limit` for marks that are written without looking at it
TAKEN = 500  # descriptors that are left to the target
RESERVE = 1 << 20  # bytes of storage reserved at a time
RECORD = 12  # as in `clock`

layout = Struct("=IIqq")  # a HEAD: thread and kind, size of the payload, wall, CPU
head, pack = layout.pack, layout.pack_into
HEAD = 24


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

    __slots__ = ("map", "position", "limit", "base", "reserved", "full", "path", "prefix")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.restart()

    def restart(self) -> None:
        """Begin a file: at the start, and in a forked child, which leaves its parent's alone."""
        self.path = "%s.%d" % (self.prefix, os.getpid())
        self.map: Any = None
        self.base = 0  # of the mapped segment in the file
        self.position = SEGMENT  # in the segment
        self.limit = 0  # of it, up to which space is certain
        self.reserved = 0  # bytes of the segment that have storage
        self.full = False

    def put(self, *fields: "Any") -> None:
        """Append the record of FIELDS, strings and integers."""
        data = encode(fields)
        size = len(data)
        if size > SEGMENT >> 1:
            return
        start = self.position
        stop = start + HEAD + size
        if stop > self.limit:
            start = self.more(HEAD + size)
            stop = start + HEAD + size
        else:
            self.position = stop
        # In one step: a thread may end for good between any two, when the interpreter does.
        self.map[start:stop] = head(RECORD, size, 0, 0) + data

    def more(self, size: int) -> int:
        """Make room and take SIZE bytes of it; returns where they are in ``map``."""
        if not self.full:
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    self.grow(descriptor, size)
                finally:
                    os.close(descriptor)
            except (OSError, ValueError, TypeError):
                self.full = True
                self.map = bytearray(SEGMENT)  # what is written from now on is for nobody
        if self.full:
            self.position, self.limit = 0, SEGMENT - SLACK
        start = self.position
        self.position = start + size
        return start

    def grow(self, descriptor: int, size: int) -> None:
        need = size + SLACK
        if self.position + need > SEGMENT:
            base = self.base + SEGMENT if self.map is not None else 0
            os.ftruncate(descriptor, base + SEGMENT)
            to = map_segment(descriptor, base)
            os.posix_fallocate(descriptor, base, need)  # before anybody writes there
            self.map, self.base, self.position, self.reserved = to, base, 0, need
        reserved = min(SEGMENT, max(self.position + need, self.reserved + RESERVE))
        os.posix_fallocate(descriptor, self.base + self.reserved, reserved - self.reserved)
        self.reserved = reserved
        self.limit = reserved - SLACK


class AppendOutput(Output):
    """The same without ``mmap``: what has been collected is written at the next look for room."""

    __slots__ = ()

    def restart(self) -> None:
        super().restart()
        self.map = bytearray(SEGMENT)
        self.position, self.limit = 0, -1

    def put(self, *fields: "Any") -> None:
        super().put(*fields)
        self.more(0)

    def more(self, size: int) -> int:
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
            try:
                os.write(descriptor, self.map[: self.position])
            finally:
                os.close(descriptor)
        except OSError:
            pass
        self.position = size
        return 0


def create(prefix: str) -> Output:
    """The output of this process."""
    return Output(prefix) if mmap is not None else AppendOutput(prefix)
