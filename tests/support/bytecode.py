"""Facts and reports of bytecode, built by hand."""

from __future__ import annotations

from typing import Any

from importaudit.record import (
    BYTECODE_FORMAT,
    BYTECODE_VERSION,
    Bytecode,
    BytecodeReport,
    BytecodeRow,
    Facts,
    Judged,
    Root,
    Verdict,
)


def facts(**changes: Any) -> Facts:
    """What some CPython 3.11 says of itself; CHANGES replace its fields."""
    fields: dict[str, Any] = {
        "executable": "/srv/venv/bin/python",
        "version": "3.11.7",
        "magic": "a70d0d0a",
        "cache_tag": "cpython-311",
        "optimize": 0,
        "pycache_prefix": None,
        "check_hash": "default",
        "dont_write": False,
        "hash_sample": "",
        "path": [],
        "sites": [],
        "prefix": "/srv/venv",
        "base_prefix": "/usr",
        "platlibdir": "lib",
    }
    return Facts(**(fields | changes))


def report(**changes: Any) -> BytecodeReport:
    """Four sources in two folders, with optimisation; CHANGES replace its fields."""
    own, torch = "/srv/own/a.py", "/srv/venv/site-packages/torch"
    rows = [
        BytecodeRow("torch 2.0", "site-packages", 3, {Verdict.LOADABLE: 1, Verdict.MISSING: 2},
                    1_500_000),
        BytecodeRow("/srv/own", "path", 1, {Verdict.STALE: 1}),
    ]  # fmt: skip
    verdicts = {Verdict.LOADABLE: 1, Verdict.MISSING: 2, Verdict.STALE: 1}
    fields: dict[str, Any] = {
        "format": BYTECODE_FORMAT,
        "version": BYTECODE_VERSION,
        "tool": "0.1.0",
        "created": "2026-01-02T03:04:05+00:00",
        "facts": facts(optimize=1),
        "verified": False,
        "roots": [
            Root("/usr/lib/python3.11", "stdlib", 5),
            Root("/srv/venv/site-packages", "site-packages", 3, 2),
            Root("/srv/own", "path", 1, 1),
        ],
        "summary": Bytecode(2, 1, verdicts, rows, 1_500_000),
        "sources": [
            Judged(own, Verdict.STALE, "mtime", 10, 20),
            Judged(f"{torch}/a.py", Verdict.MISSING, "", 10),
            Judged(f"{torch}/b.py", Verdict.MISSING, "", 10),
        ],
        "notes": ["cannot look into /srv/x: Permission denied"],
    }
    return BytecodeReport(**(fields | changes))
