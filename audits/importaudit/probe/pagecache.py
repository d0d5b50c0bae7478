"""Guest, apart from the probe: how much of some files is in the page cache; out with it, or in.

``cachestat`` (Linux 6.5) counts a file's pages; before that, and on an overlay, whose files have
no pages of their own, ``mincore`` tells of each page of a mapping whether it is in memory.
``posix_fadvise(POSIX_FADV_DONTNEED)`` drops the pages of a file that nobody has mapped and that
are not dirty: so what is left is always measured, not assumed.
"""

import mmap
import os

from importaudit.probe import lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

try:
    import ctypes

    libc: "Any" = ctypes.CDLL(None, use_errno=True)
except (ImportError, OSError):  # Debian's python3-minimal has no ctypes
    libc = None

CACHESTAT = 451  # the number of the system call, the same on every architecture
PAGE = mmap.PAGESIZE
BLOCK = 1 << 20  # bytes read at a time


def each(paths: "Iterable[str]", act: "Callable[[int, str], Any]") -> "list[Any]":
    """What ACT gives for each of the files at PATHS, open; what raises OSError is left out."""
    found = []
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                found.append(act(descriptor, path))
            finally:
                os.close(descriptor)
        except OSError:  # noqa: PERF203
            pass
    return found


def pages_of(descriptor: int) -> int:
    """How many pages the file has."""
    return -(-os.fstat(descriptor).st_size // PAGE)


def cached(paths: "Iterable[str]") -> "tuple[int, int, int]":
    """How many files there are at PATHS, their bytes, and how many of these are in the page cache.

    In whole pages. What cannot be opened is left out. -1 where the last cannot be told.
    """
    overlays = Overlays()

    def count(descriptor: int, path: str) -> "tuple[int, int]":
        pages = pages_of(descriptor)
        if libc is None:
            return pages, 0
        return pages, min(pages_in_cache(descriptor, pages, path in overlays), pages)

    found = each(paths, count)
    total = PAGE * sum(pages for pages, _ in found)
    resident = PAGE * sum(pages for _, pages in found)
    return len(found), total, resident if libc is not None else -1


class Overlays:
    """The folders that are on an overlay file system, as a container's are."""

    def __init__(self) -> None:
        self.known: dict[str, bool] = {}
        try:
            self.mounts = lookup.mounts(lookup.read("/proc/self/mountinfo").decode())
        except (OSError, ValueError):
            self.mounts = []

    def __contains__(self, path: str) -> bool:
        folder = path.rpartition("/")[0] or "/"
        if folder not in self.known:
            self.known[folder] = lookup.file_system(folder, self.mounts) == "overlay"
        return self.known[folder]


def pages_in_cache(descriptor: int, pages: int, overlay: bool = False) -> int:
    """How many of the file's PAGES are in memory; raises OSError."""
    if not overlay:
        everything = (ctypes.c_uint64 * 2)(0, 0)
        counts = (ctypes.c_uint64 * 5)()
        asked = ctypes.byref(everything), ctypes.byref(counts), 0
        if libc.syscall(CACHESTAT, descriptor, *asked) == 0:
            return int(counts[0])
    return pages_by_mincore(descriptor, pages)


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


def evict(paths: "Iterable[str]") -> None:
    """Drop what can be dropped of the files at PATHS."""
    each(paths, lambda file, _: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED))


def load(paths: "Iterable[str]") -> None:
    """Read the files at PATHS, so that they are in the page cache."""
    overlays = Overlays()

    def read(descriptor: int, path: str) -> None:
        pages = pages_of(descriptor)
        if libc is None or pages_in_cache(descriptor, pages, path in overlays) < pages:
            while os.read(descriptor, BLOCK):
                pass

    each(paths, read)


def virtual_machine() -> bool:
    """Whether a hypervisor is below, which may cache the disk for us."""
    try:
        with open("/proc/cpuinfo") as lines:
            return any(line.startswith("flags") and " hypervisor" in line for line in lines)
    except OSError:
        return False
