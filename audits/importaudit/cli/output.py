"""Writing and showing results: what the commands have in common."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from importaudit.errors import AuditError, OutputError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from importaudit.analysis.difference import Difference
    from importaudit.record import BytecodeReport, Record

HELP = {"help_option_names": ["-h", "--help"]}  # of every command
WIDE = 120  # columns where the output is no terminal and COLUMNS is not set


def check_writable(path: Path | None) -> None:
    """Find out before minutes of measuring that the result cannot be written."""
    if path is None or path == Path("-"):
        return
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder", "name a file in it")
    if path.exists() and not path.is_file():  # a device or a pipe
        return
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: no folder {path.parent} that is writable")


def write(document: Record | Difference | BytecodeReport, path: Path | None) -> AuditError | None:
    """Write DOCUMENT where it was asked for; a failure is returned, so the report still shows."""
    if path is None:
        return None
    import msgspec

    try:
        put(msgspec.json.encode(document) + b"\n", path)
    except OutputError as error:
        return error
    return None


def put(data: bytes, path: Path) -> None:
    """Write DATA to PATH, or to stdout for ``-``; raises OutputError."""
    from importaudit import record as records

    if path == Path("-"):
        with reader_may_leave():
            click.echo(data, nl=False)
    else:
        records.write_bytes(path, data)


def show_record(record: Record, top: int) -> None:
    """Print the report, as wide as the terminal."""
    from importaudit.views import terminal

    draw(lambda console: terminal.show(record, console, top))


def show_difference(found: Difference, top: int) -> None:
    """Print what differs, as wide as the terminal."""
    from importaudit.views import difference

    draw(lambda console: difference.show(found, console, top))


def draw(show: Callable[[Console], None]) -> None:
    """Have SHOW print on stdout, as wide as the terminal."""
    import rich.console

    class OnStdout(rich.console.Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    if isinstance(sys.stdout, io.TextIOWrapper):  # whose encoding may lack our "…"
        sys.stdout.reconfigure(errors="replace")
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    console = OnStdout(width=wide, highlight=False, markup=False, emoji=False)
    with reader_may_leave():
        show(console)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """For writing to stdout: who reads it may stop early (``| head``) and want no more."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes it once more at exit
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise OutputError(f"cannot write to stdout: {error.strerror or error}") from error
