"""Where the target lives: on this machine, or (``inside``) in a container on it.

Everything that touches the target's interpreter, files or page cache goes through a Machine.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from importaudit.files import LOCAL, Files
from importaudit.measure import scratch
from importaudit.probe import lookup, pagecache, spawn
from importaudit.record import Image

PROBE = Path(__file__).parent.parent / "probe"


@dataclass(frozen=True)
class Cached:
    """Some files, and what of them is in the page cache; bytes, in whole pages."""

    files: int
    bytes: int
    resident: int | None  # None where it cannot be told


@dataclass(frozen=True)
class Execution:
    """What the parent's clock says of one execution; clocks in nanoseconds."""

    spawned: int
    exited: int
    pid: int
    cpu: int  # user and system, with the children that the target waited for
    children_cpu: int  # of those, in clock ticks
    waited: int | None  # run-queue wait of the main thread until its end, where known
    status: int
    timed_out: bool
    interrupted: bool  # by Ctrl-C
    disk: int  # bytes read from disk, with the children's
    faults: int  # major page faults, with the children's


@dataclass(frozen=True)
class Captured:
    """A command that has ended."""

    status: int
    out: bytes
    err: bytes


@dataclass(frozen=True)
class Place:
    """What else of a machine changes the answer."""

    processors: int  # that a process may use
    machine: str
    kernel: str
    mounts: str  # as /proc/self/mountinfo has them


class Machine(Protocol):
    """What an audit needs of the place that the target lives in. Paths are the target's."""

    @property
    def files(self) -> Files: ...
    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of a process that is started there."""

    @property
    def image(self) -> Image | None:
        """The container image, if that is where it is."""

    @property
    def probe(self) -> str:
        """The folder of the guest code."""

    @property
    def work(self) -> str:
        """The folder that the target works in."""

    @property
    def workers(self) -> int:
        """How many commands may run at a time."""

    def __hash__(self) -> int: ...
    def place(self) -> Place: ...
    def execute(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        timeout: float | None,
    ) -> Execution:
        """Run COMMAND with its output in files of FOLDER; raises OSError.

        Ctrl-C ends it, and is not raised.
        """

    def capture(self, command: Sequence[str], timeout: float | None = None) -> Captured | None:
        """Run COMMAND to its end; None after TIMEOUT seconds; raises OSError."""

    def folder(self, purpose: str, *, on_disk: bool = False) -> str:
        """A new folder, in memory where there is room; raises AuditError."""

    def remove(self, folder: str) -> None:
        """Remove a folder with all that is in it, if that is possible."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file; raises OSError."""

    def below(self, folder: str) -> list[str]:
        """The files below FOLDER."""

    def sync(self) -> None:
        """Write to the disks what is not: pages that are dirty cannot be evicted."""

    def cached(self, paths: Iterable[str]) -> Cached:
        """How much of the files at PATHS is in the page cache."""

    def evict(self, paths: Iterable[str]) -> None:
        """Drop what can be dropped of them from it."""

    def load(self, paths: Iterable[str]) -> None:
        """Read them into it."""

    def virtual_machine(self) -> bool:
        """Whether a hypervisor below may cache the disk for us."""


class Here:
    """This machine."""

    files = LOCAL
    image = None
    probe = str(PROBE)

    @property
    def environment(self) -> Mapping[str, str]:
        return os.environ

    @property
    def work(self) -> str:
        return os.getcwd()  # noqa: PTH109

    @property
    def workers(self) -> int:
        return len(os.sched_getaffinity(0))

    def place(self) -> Place:
        try:
            mounts = Path("/proc/self/mountinfo").read_text()
        except OSError:
            mounts = ""
        return Place(self.workers, platform.machine(), platform.release(), mounts)

    def execute(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        timeout: float | None,
    ) -> Execution:
        found = spawn.execute(list(command), dict(environment), folder, timeout)
        return Execution(**found)  # type: ignore[arg-type]

    def capture(self, command: Sequence[str], timeout: float | None = None) -> Captured | None:
        done = spawn.capture(list(command), timeout)
        return None if done is None else Captured(*done)

    def folder(self, purpose: str, *, on_disk: bool = False) -> str:
        return scratch.create(purpose, on_disk=on_disk)

    def remove(self, folder: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def put(self, path: str, data: bytes) -> None:
        lookup.put(path, data)

    def below(self, folder: str) -> list[str]:
        return lookup.below(folder)

    def sync(self) -> None:
        os.sync()

    def cached(self, paths: Iterable[str]) -> Cached:
        files, size, resident = pagecache.cached(paths)
        return Cached(files, size, resident if resident >= 0 else None)

    def evict(self, paths: Iterable[str]) -> None:
        pagecache.evict(paths)

    def load(self, paths: Iterable[str]) -> None:
        pagecache.load(paths)

    def virtual_machine(self) -> bool:
        return pagecache.virtual_machine()


HERE = Here()


@contextmanager
def folder(machine: Machine, purpose: str, *, on_disk: bool = False) -> Iterator[str]:
    """A new folder on MACHINE, for as long as the block lasts; raises AuditError."""
    made = machine.folder(purpose, on_disk=on_disk)
    try:
        yield made
    finally:
        machine.remove(made)


@contextmanager
def file(machine: Machine, purpose: str, data: bytes) -> Iterator[str]:
    """A file on MACHINE that holds DATA; raises AuditError."""
    with folder(machine, purpose) as place:
        try:
            machine.put(f"{place}/data", data)
        except OSError as error:
            raise scratch.no_place(purpose, error) from error
        yield f"{place}/data"
