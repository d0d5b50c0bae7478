"""Emptying the page cache of the whole machine, which also drops its directory entries."""

from __future__ import annotations

import os
from pathlib import Path

from importaudit.errors import AuditError, UsageError

DROP_CACHES = Path("/proc/sys/vm/drop_caches")


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
