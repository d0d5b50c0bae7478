"""The page cache: how much of some files is in it, and getting them out and in.

``cachestat`` (Linux 6.5) counts a file's pages; before that ``mincore`` tells of each page of a
mapping whether it is in memory. ``posix_fadvise(POSIX_FADV_DONTNEED)`` drops the pages of a file
that nobody has mapped and that are not dirty: so what is left is always measured, not assumed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from importaudit.errors import AuditError, UsageError

CACHESTAT = 451  # the number of the system call, the same on every architecture
PAGE = mmap.PAGESIZE
BLOCK = 1 << 20  # bytes read at a time
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Cached:
    """Some files, and what of them is in the page cache; bytes, in whole pages."""

    files: int
    bytes: int
    resident: int


def cached(paths: Iterable[str]) -> Cached:
    """How much of the files at PATHS is in the page cache; what cannot be opened is left out."""
    files = total = resident = 0
    for path in paths:
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                pages = -(-os.fstat(descriptor).st_size // PAGE)
                resident += min(pages_in_cache(descriptor, pages), pages) * PAGE
            finally:
                os.close(descriptor)
            files, total = files + 1, total + pages * PAGE
    return Cached(files, total, resident)


def pages_in_cache(descriptor: int, pages: int) -> int:
    """How many of the file's PAGES are in memory; raises OSError."""
    everything = (ctypes.c_uint64 * 2)(0, 0)
    counts = (ctypes.c_uint64 * 5)()
    done = libc.syscall(CACHESTAT, descriptor, ctypes.byref(everything), ctypes.byref(counts), 0)
    return int(counts[0]) if done == 0 else pages_by_mincore(descriptor, pages)


def pages_by_mincore(descriptor: int, pages: int) -> int:
    """The same for kernels without cachestat."""
    if pages == 0:
        return 0
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY) as mapped:  # never written to
        first = ctypes.c_char.from_buffer(mapped)
        vector = (ctypes.c_ubyte * pages)()
        length = ctypes.c_size_t(len(mapped))
        failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(first)), length, vector)
        del first  # or the mapping cannot be closed
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return sum(page & 1 for page in vector)


def evict(paths: Iterable[str]) -> None:
    """Drop what can be dropped of the files at PATHS."""
    for path in paths:
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def load(paths: Iterable[str]) -> None:
    """Read the files at PATHS, so that they are in the page cache."""
    for path in paths:
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                pages = -(-os.fstat(descriptor).st_size // PAGE)
                if pages_in_cache(descriptor, pages) < pages:
                    while os.read(descriptor, BLOCK):
                        pass
            finally:
                os.close(descriptor)


def check_drop() -> None:
    """Raise UsageError where `drop` will not be allowed, before anything is measured."""
    if not os.access(DROP_CACHES, os.W_OK):
        raise UsageError(
            f"cannot write {DROP_CACHES}",
            "--drop-caches needs root; without it, the chain's own files are evicted",
        )


def drop() -> None:
    """Empty the page cache of the whole machine, with its directory entries.

    Raises AuditError where that fails.
    """
    os.sync()  # dirty pages stay
    try:
        DROP_CACHES.write_text("3")
    except OSError as error:
        raise AuditError(f"cannot write {DROP_CACHES}: {error.strerror}") from error


def virtual_machine() -> bool:
    """Whether a hypervisor is below, which may cache the disk for us."""
    try:
        with Path("/proc/cpuinfo").open() as lines:
            return any(line.startswith("flags") and " hypervisor" in line for line in lines)
    except OSError:
        return False
