"""``importaudit show`` and ``importaudit schema``: Records that are there already."""

from __future__ import annotations

from pathlib import Path

import click

from importaudit.cli.exports import Exports, export, export_options, raise_all
from importaudit.cli.output import HELP, reader_may_leave, show_record, write


@click.command(name="importaudit show", context_settings=HELP)
@click.argument("path", metavar="RECORD", type=click.Path(path_type=Path))
@click.option("--top", metavar="N", type=click.IntRange(1), default=15, show_default=True,
              help="Rows of each table.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the Record instead of the report.")
@export_options
def show(path: Path, top: int, as_json: bool, exports: Exports) -> int:
    """Print the report of a Record.

    \b
    Example:
      importaudit show sglang.json --top 40
      importaudit show sglang.json --markdown sglang.md
    """
    from importaudit import record as records

    record = records.read(path)
    failed = export(record, exports)
    if as_json:
        write(record, Path("-"))
    elif Path("-") not in exports.values():
        show_record(record, top)
    raise_all(failed)
    return 0


@click.command(name="importaudit schema", context_settings=HELP)
@click.argument("document", type=click.Choice(["record", "bytecode", "diff"]), default="record")
@click.option("--json", is_flag=True, expose_value=False, help="The same: a schema is JSON.")
def schema(document: str) -> int:
    """Print the JSON Schema of a document: of a Record, or of what bytecode and diff write.

    \b
    Examples:
      importaudit schema > record.schema.json
      importaudit schema bytecode
    """
    import msgspec

    from importaudit.analysis.difference import Difference
    from importaudit.record import BytecodeReport, Record

    kinds = {"record": Record, "bytecode": BytecodeReport, "diff": Difference}
    described = msgspec.json.schema(kinds[document])
    text = msgspec.json.format(msgspec.json.encode(described), indent=2)
    with reader_may_leave():
        click.echo(text)
    return 0
