"""Guest, apart from the probe: how much of some files is in the page cache; out with it, or in.

``cachestat`` (Linux 6.5) counts a file's pages; before that, and on an overlay, whose files have
no pages of their own, ``mincore`` tells of each page of a mapping whether it is in memory.
``posix_fadvise(POSIX_FADV_DONTNEED)`` drops the pages of a file that nobody has mapped and that
are not dirty: so what is left is always measured, not assumed.
"""

import mmap
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

try:
    import ctypes

    libc: "Any" = ctypes.CDLL(None, use_errno=True)
except (ImportError, OSError):  # Debian's python3-minimal has no ctypes
    libc = None

CACHESTAT = 451  # the number of the system call, the same on every architecture
PAGE = mmap.PAGESIZE
BLOCK = 1 << 20  # bytes read at a time


def cached(paths: "Iterable[str]") -> "tuple[int, int, int]":
    """How many files there are at PATHS, their bytes, and how many of these are in the page cache.

    In whole pages. What cannot be opened is left out. -1 where the last cannot be told.
    """
    files = total = resident = 0
    overlays = Overlays()
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            pages = -(-os.fstat(descriptor).st_size // PAGE)
            if libc is not None:
                resident += min(pages_in_cache(descriptor, pages, path in overlays), pages) * PAGE
            files, total = files + 1, total + pages * PAGE
        except OSError:
            pass
        finally:
            os.close(descriptor)
    return files, total, resident if libc is not None else -1


class Overlays:
    """The folders that are on an overlay file system, as a container's are."""

    def __init__(self) -> None:
        self.mounts: list[tuple[str, bool]] = []
        self.known: dict[str, bool] = {}
        try:
            with open("/proc/self/mountinfo") as lines:
                for line in lines:
                    before, _, after = line.partition(" - ")
                    place = before.split()[4].replace("\\040", " ").rstrip("/")
                    self.mounts.insert(0, (place + "/", after.startswith("overlay ")))
        except (OSError, IndexError):
            pass
        # The longest first, and of two on one place the later, which hides the other.
        self.mounts.sort(key=lambda mount: -len(mount[0]))

    def __contains__(self, path: str) -> bool:
        folder = path.rpartition("/")[0] + "/"
        if folder not in self.known:
            around = (overlay for place, overlay in self.mounts if folder.startswith(place))
            self.known[folder] = next(around, False)
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
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError:
            pass
        finally:
            os.close(descriptor)


def load(paths: "Iterable[str]") -> None:
    """Read the files at PATHS, so that they are in the page cache."""
    overlays = Overlays()
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            pages = -(-os.fstat(descriptor).st_size // PAGE)
            if libc is None or pages_in_cache(descriptor, pages, path in overlays) < pages:
                while os.read(descriptor, BLOCK):
                    pass
        except OSError:
            pass
        finally:
            os.close(descriptor)


def virtual_machine() -> bool:
    """Whether a hypervisor is below, which may cache the disk for us."""
    try:
        with open("/proc/cpuinfo") as lines:
            return any(line.startswith("flags") and " hypervisor" in line for line in lines)
    except OSError:
        return False
