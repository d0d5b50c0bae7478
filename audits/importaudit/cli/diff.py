"""``importaudit diff``: what differs between two Records."""

from __future__ import annotations

from pathlib import Path

import click

from importaudit.cli.output import HELP, check_writable, show_difference, write


@click.command(name="importaudit diff", context_settings=HELP)
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@click.option("--top", metavar="N", type=click.IntRange(1), default=15, show_default=True,
              help="Rows of each table.")  # fmt: skip
@click.option("--json", "json_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Write the differences to FILE (- for stdout, without the report).")  # fmt: skip
def diff(a: Path, b: Path, top: int, json_file: Path | None) -> int:
    """Say what differs between two Records: A, the earlier one, and B.

    Times of each state, modules that are new or gone, and those whose own time changed most.
    What is within noise is called so, and what cannot be compared is not. The exit code is 0
    whatever differs.

    \b
    Example:
      importaudit torch --json before.json
      importaudit torch --json after.json
      importaudit diff before.json after.json
    """
    from importaudit import record as records
    from importaudit.analysis.difference import difference

    check_writable(json_file)
    found = difference(records.read(a), records.read(b))
    written = write(found, json_file)
    if json_file != Path("-"):
        show_difference(found, top)
    if written is not None:
        raise written
    return 0
