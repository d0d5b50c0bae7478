"""Which disk a folder is on: reads can be held back for whole disks only."""

from __future__ import annotations

import os
from pathlib import Path

from importaudit.errors import ContainerError


def of(folder: str) -> str:
    """The device of the disk that FOLDER is on, such as /dev/sda for a folder on /dev/sda1.

    Raises ContainerError where there is none: the folder is on another machine, in memory, or on
    a file system that spans devices (btrfs, ZFS, an overlay). The rule is that of the kernel's
    block throttling, which has no limits for a partition.
    """
    problem = f"cannot hold back reads: no disk is known for the engine's folder {folder}"
    hint = "--read-iops needs an engine on this machine, on a plain file system of one disk"
    try:
        device = os.stat(folder).st_dev  # noqa: PTH116
        there = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve(strict=True)
    except OSError as error:
        raise ContainerError(problem, hint) from error
    disk = there.parent if (there / "partition").exists() else there
    return f"/dev/{disk.name.replace('!', '/')}"
