"""The file system that a target sees: ours, or that of a container.

``analysis`` and ``measure`` look at a target's files by way of a Files, so that they need not know
where it lives. The functions are those of ``os``, and raise OSError as these do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import BinaryIO, Protocol

from importaudit.probe import lookup

READ = os.O_RDONLY | os.O_CLOEXEC


class Status(Protocol):
    """What is used of ``os.stat_result``."""

    @property
    def st_mode(self) -> int: ...
    @property
    def st_size(self) -> int: ...
    @property
    def st_mtime(self) -> float: ...


class Entry(Protocol):
    """What is used of ``os.DirEntry``."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    def is_file(self) -> bool: ...
    def is_dir(self) -> bool: ...
    def is_symlink(self) -> bool: ...
    def stat(self) -> Status: ...


class Files:
    """Our own file system. Few system calls for each file: there are tens of thousands."""

    def scan(self, folder: str) -> Sequence[Entry]:
        """What is in FOLDER."""
        with os.scandir(folder) as entries:
            return list(entries)

    def names(self, folder: str) -> list[str]:
        """The names in FOLDER."""
        return os.listdir(folder)  # noqa: PTH208

    def stat(self, path: str) -> Status:
        """The status of what is at PATH, links followed."""
        return os.stat(path)  # noqa: PTH116

    def is_dir(self, path: str) -> bool:
        """Whether there is a folder at PATH."""
        return os.path.isdir(path)  # noqa: PTH112

    def head(self, path: str, size: int) -> tuple[bytes, int]:
        """The first SIZE bytes of the file at PATH, and how many it has."""
        handle = os.open(path, READ)
        try:
            return os.read(handle, size), os.fstat(handle).st_size
        finally:
            os.close(handle)

    def read(self, path: str) -> bytes:
        """The content of the file at PATH."""
        return lookup.read(path)

    def open(self, path: str) -> BinaryIO:
        """The file at PATH, to be read in any order."""
        return open(path, "rb")  # noqa: PTH123

    def real(self, path: str) -> str:
        """PATH without links."""
        return os.path.realpath(path)

    def existing(self, paths: Iterable[str]) -> list[str]:
        """Those of PATHS that are files."""
        return lookup.existing(paths)

    def obstacle(self, folder: str) -> str:
        """Why importlib could not create a file in FOLDER, "" when it could."""
        return lookup.obstacle(folder)


LOCAL = Files()
