"""The command line: arguments in, text and exit codes out.

The only package that knows click, exit codes and the terminal, one module a command. A command
imports what is heavy when it is called, so that ``importaudit --help`` starts as fast as we ask
of others.

Exit codes: 0 fine, 1 a finding or failed gate, 2 wrong usage, 3 the target failed; 130 after
Ctrl-C.
"""

from __future__ import annotations

import signal
import sys
from importlib import import_module

# Where ours goes can be what we are about to look at: with PYTHONPYCACHEPREFIX, or in a venv.
sys.dont_write_bytecode = True

import click  # noqa: E402

from importaudit.errors import (  # noqa: E402
    AuditError,
    ContainerError,
    InterpreterError,
    OutputError,
    RecordError,
    UsageError,
)

FINE, FINDING, USAGE, TARGET = 0, 1, 2, 3

# The exit code of each class of error; a subclass goes with its nearest base.
CODES: dict[type[AuditError], int] = {
    AuditError: FINDING,
    UsageError: USAGE,
    InterpreterError: USAGE,
    ContainerError: USAGE,
    RecordError: USAGE,
    OutputError: FINDING,
}

# Sub-commands, and the modules that hold them; everything else is a module to audit.
COMMANDS = {"show": "show", "schema": "show", "diff": "diff", "bytecode": "bytecode"}


def find_command(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that WORDS name, and the words that it gets."""
    name = words[0] if words and words[0] in COMMANDS else "audit"
    module = import_module(f"{__name__}.{COMMANDS.get(name, name)}")
    command: click.Command = getattr(module, name)
    return command, words[1:] if name in COMMANDS else words


def code_of(error: AuditError) -> int:
    """The exit code of ERROR: that of its class, or of the nearest base that has one."""
    return next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)


def terminated(*_: object) -> None:
    """End like after Ctrl-C, with the target: what we started and made does not outlive us."""
    sys.exit(128 + signal.SIGTERM)


def main(arguments: list[str] | None = None) -> None:
    """The entry point: runs a command and exits with its code."""
    words = sys.argv[1:] if arguments is None else arguments
    signal.signal(signal.SIGTERM, terminated)
    command, words = find_command(words)
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
