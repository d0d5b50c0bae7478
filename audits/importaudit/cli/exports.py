"""Other views of a Record, each into a file: what ``--markdown`` and its like have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from importaudit.cli.output import check_writable, put
from importaudit.errors import AuditError, OutputError, UsageError

if TYPE_CHECKING:
    from importaudit.record import Record

# Each is a module of importaudit.views with a function ``render`` from a Record to bytes.
KINDS = {
    "html": "Write a page to FILE, that opens in any browser without a network.",
    "trace": "Write a trace to FILE, for Perfetto (ui.perfetto.dev) or chrome://tracing.",
    "markdown": "Write a summary to FILE, such as $GITHUB_STEP_SUMMARY.",
}
Exports = dict[str, Path]  # by kind; those that were asked for


def export_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give COMMAND the options ``--markdown FILE`` and so on, and the argument ``exports``."""

    def with_exports(*arguments: Any, **options: Any) -> int:
        asked = {kind: options.pop(kind) for kind in KINDS}
        exports: Exports = {kind: path for kind, path in asked.items() if path is not None}
        for path in exports.values():
            check_writable(path)
        if "html" in exports and find_spec("plotly") is None:  # before minutes of measuring
            raise UsageError(
                "--html needs plotly, which is not installed", "pip install 'importaudit[html]'"
            )
        return command(*arguments, **options, exports=exports)

    with_exports.__doc__ = command.__doc__
    with_exports.__dict__.update(command.__dict__)  # the options it has already
    for kind, help_text in reversed(KINDS.items()):
        option = click.option(f"--{kind}", metavar="FILE", type=click.Path(path_type=Path),
                              help=help_text)  # fmt: skip
        with_exports = option(with_exports)
    return with_exports


def export(record: Record, exports: Exports) -> list[AuditError]:
    """Write every view of RECORD that was asked for; failures are returned."""
    failed: list[AuditError] = []
    for kind, path in exports.items():
        try:
            put(import_module(f"importaudit.views.{kind}").render(record), path)
        except AuditError as error:
            failed.append(error)
    return failed


def raise_all(failed: Sequence[AuditError]) -> None:
    """Raise OutputError that names what FAILED, if anything has."""
    if failed:
        raise OutputError("; ".join(error.problem for error in failed), failed[0].hint)
