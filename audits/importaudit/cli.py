"""The command line: arguments in, text and exit codes out.

The only module that knows click, exit codes and the terminal. What is heavy is imported by the
command that needs it, so that ``importaudit --help`` starts as fast as we ask of others.

Exit codes: 0 fine, 1 a finding or failed gate, 2 wrong usage, 3 the target failed.
"""

from __future__ import annotations

import io
import keyword
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from importaudit.errors import (
    AuditError,
    InterpreterError,
    OutputError,
    RecordError,
    UsageError,
)

if TYPE_CHECKING:
    from importaudit.record import Record

FINE, FINDING, USAGE, TARGET = 0, 1, 2, 3

# The exit code of each class of error; a subclass goes with its nearest base.
CODES: dict[type[AuditError], int] = {
    AuditError: FINDING,
    UsageError: USAGE,
    InterpreterError: USAGE,
    RecordError: USAGE,
    OutputError: FINDING,
}

WIDE = 120  # columns where the output is no terminal and COLUMNS is not set

EPILOG = """\b
Examples:
  importaudit torch
  importaudit --python /srv/venv sglang.multimodal_gen --json sglang.json
  importaudit --code "import numpy; numpy.zeros(3)"
  importaudit --script train.py -- --epochs 1
\b
Other commands (a module of such a name is reached after --: importaudit -- show):
  importaudit show RECORD    print the report of a Record again
  importaudit schema         print the JSON Schema of a Record
"""


@click.command(
    name="importaudit", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.argument("targets", metavar="MODULE…", nargs=-1)
@click.option("--python", metavar="PATH", help="Interpreter or virtualenv to audit [default: the"
              " active virtualenv's, else our own].")  # fmt: skip
@click.option("--code", metavar="STRING", help="Audit this code in place of modules.")
@click.option("--script", metavar="FILE", type=click.Path(path_type=Path),
              help="Audit a script; MODULE… are its arguments.")  # fmt: skip
@click.option("--runs", metavar="N", type=click.IntRange(1), default=3, show_default=True,
              help="Timing runs; one detail run comes on top.")  # fmt: skip
@click.option("--timeout", metavar="S", type=click.FloatRange(0, min_open=True),
              help="Seconds for each run [default: none].")  # fmt: skip
@click.option("--json", "json_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Write the Record to FILE (- for stdout, without the report).")  # fmt: skip
@click.option("--top", metavar="N", type=click.IntRange(1), default=15, show_default=True,
              help="Rows of each table.")  # fmt: skip
@click.version_option(package_name="importaudit", prog_name="importaudit")
def audit(
    targets: tuple[str, ...],
    python: str | None,
    code: str | None,
    script: Path | None,
    runs: int,
    timeout: float | None,
    json_file: Path | None,
    top: int,
) -> int:
    """Say where the time of importing MODULE goes.

    Runs the import in fresh processes of the target's interpreter, sees every import of theirs,
    and shows which modules, distributions and phases the seconds go to.
    """
    from importaudit.measure import interpreter
    from importaudit.measure.audit import perform
    from importaudit.plan import Plan
    from importaudit.views.progress import Progress

    check_writable(json_file)
    target = make_target(targets, code, script)
    plan = Plan(interpreter.find(python, os.environ), target, runs, timeout)
    record = perform(plan, Progress())
    written = write(record, json_file)
    if json_file != Path("-"):
        show_record(record, top)
    if written is not None:
        raise written
    return FINE if record.failure is None else TARGET


@click.command(name="importaudit show")
@click.argument("path", metavar="RECORD", type=click.Path(path_type=Path))
@click.option("--top", metavar="N", type=click.IntRange(1), default=15, show_default=True,
              help="Rows of each table.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the Record instead of the report.")
def show(path: Path, top: int, as_json: bool) -> int:
    """Print the report of a Record.

    \b
    Example:
      importaudit show sglang.json --top 40
    """
    from importaudit import record as records

    record = records.read(path)
    if as_json:
        write(record, Path("-"))
    else:
        show_record(record, top)
    return FINE


@click.command(name="importaudit schema")
@click.option("--json", is_flag=True, expose_value=False, help="The same: a schema is JSON.")
def schema() -> int:
    """Print the JSON Schema of a Record.

    \b
    Example:
      importaudit schema > record.schema.json
    """
    import msgspec

    from importaudit import record as records

    text = msgspec.json.format(msgspec.json.encode(records.schema()), indent=2)
    with reader_may_leave():
        click.echo(text)
    return FINE


COMMANDS = {"show": show, "schema": schema}


def make_target(targets: tuple[str, ...], code: str | None, script: Path | None) -> Any:
    """The target of the command line; raises UsageError for what cannot be one."""
    from importaudit.plan import Target

    if code is not None and script is not None:
        raise UsageError("--code and --script exclude each other")
    if script is not None:
        if not script.is_file():
            raise UsageError(f"no script at {script}")
        return Target(script=script, argv=targets)
    if code is not None:
        if targets:
            raise UsageError("--code takes the place of MODULE; give one of them")
        return Target(code=code)
    if not targets:
        raise UsageError("nothing to audit", "name a module: importaudit MODULE, or see --help")
    for name in targets:
        check_name(name)
    return Target(modules=targets)


def check_name(name: str) -> None:
    """Refuse what an import statement cannot name."""
    if name.endswith(".py") or "/" in name:
        raise UsageError(f"{name!r} is a file, not a module", f"importaudit --script {name}")
    parts = name.split(".")
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise UsageError(
            f"{name!r} is not a module name",
            f"importaudit --code \"import importlib; importlib.import_module('{name}')\"",
        )


def check_writable(path: Path | None) -> None:
    """Find out before minutes of measuring that the result cannot be written."""
    if path is None or path == Path("-"):
        return
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder", "name a file: --json FILE")
    if path.exists() and not path.is_file():  # a device or a pipe
        return
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: no folder {path.parent} that is writable")


def write(record: Record, path: Path | None) -> AuditError | None:
    """Write RECORD where it was asked for; a failure is returned, so the report still shows."""
    from importaudit import record as records

    if path is None:
        return None
    if path == Path("-"):
        import msgspec

        with reader_may_leave():
            click.echo(msgspec.json.encode(record))
        return None
    try:
        records.write(record, path)
    except OutputError as error:
        return error
    return None


def show_record(record: Record, top: int) -> None:
    """Print the report, as wide as the terminal."""
    import rich.console

    from importaudit.views import terminal

    class Console(rich.console.Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    if isinstance(sys.stdout, io.TextIOWrapper):  # whose encoding may lack our "…"
        sys.stdout.reconfigure(errors="replace")
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    console = Console(width=wide, highlight=False, markup=False, emoji=False)
    with reader_may_leave():
        terminal.show(record, console, top)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """For writing to stdout: who reads it may stop early (``| head``) and want no more."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes it once more at exit


def code_of(error: AuditError) -> int:
    """The exit code of ERROR: that of its class, or of the nearest base that has one."""
    return next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)


def main(arguments: list[str] | None = None) -> None:
    """The entry point: runs a command and exits with its code."""
    words = sys.argv[1:] if arguments is None else arguments
    command: click.Command = audit
    if words and words[0] in COMMANDS:
        command, words = COMMANDS[words[0]], words[1:]
    try:
        sys.exit(command.main(words, command.name, standalone_mode=False) or FINE)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("importaudit: interrupted", err=True)
        sys.exit(130)
    except AuditError as error:
        click.echo(f"importaudit: {error.problem}", err=True)
        if error.hint:
            click.echo(f"  next: {error.hint}", err=True)
        sys.exit(code_of(error))
