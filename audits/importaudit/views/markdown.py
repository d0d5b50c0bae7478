"""STUB."""

from __future__ import annotations

from importaudit.record import Record


def render(record: Record) -> bytes:
    """RECORD in another form."""
    return record.target.encode()
