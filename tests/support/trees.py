"""What a folder is like, for telling that nobody has touched it."""

from __future__ import annotations

from pathlib import Path


def snapshot(root: Path) -> dict[str, tuple[int, int, int, int]]:
    """Mode, size, mtime and ctime of ROOT and everything below it."""
    found = {}
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        times = status.st_mtime_ns, status.st_ctime_ns
        found[str(path)] = (status.st_mode, status.st_size, *times)
    return found
