"""Folders of our own, outside the audited trees: for traces and for the probe's bytecode."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from importaudit.errors import AuditError

MEMORY = Path("/dev/shm")
ROOM = 1 << 28  # bytes that must be free there


def create(purpose: str, *, on_disk: bool = False) -> str:
    """A folder that only this user can read; in memory where there is room, since it is mapped.

    With ON_DISK it is where temporary files are. Raises AuditError when there is no place for it.
    """
    try:
        roomy = not on_disk and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
        return tempfile.mkdtemp(prefix="importaudit-", dir=MEMORY if roomy else None)
    except OSError as error:
        raise no_place(purpose, error) from error


def no_place(purpose: str, error: OSError) -> AuditError:
    """The error to raise when PURPOSE cannot be written."""
    return AuditError(
        f"no place for {purpose}: {error.strerror or error}",
        "free some space, or set TMPDIR to a folder that has it",
    )
