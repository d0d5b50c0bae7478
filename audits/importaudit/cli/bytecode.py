"""``importaudit bytecode``: which sources of an environment have bytecode that would be loaded."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import click

from importaudit.cli.images import image_options, place
from importaudit.cli.output import HELP, check_writable, draw, write
from importaudit.errors import UsageError

if TYPE_CHECKING:
    from importaudit.measure.machine import Machine
    from importaudit.plan import Container
    from importaudit.record import Bytecode, Verdict

FINE, FINDING = 0, 1  # exit codes: see importaudit.cli

EPILOG = """\b
Verdicts: loadable, missing, stale (mtime, size, hash or content), other-tag (another interpreter
or optimisation level only), wrong-magic, uncacheable (and cannot be written here), damaged (the
import fails; all of them with --verify), not-compilable (with --verify).
\b
Examples:
  importaudit bytecode --python /srv/venv
  importaudit bytecode --python /srv/venv --fail-on stale,wrong-magic --max-missing-percent 1
  importaudit bytecode --verify /srv/checkout/src
  importaudit bytecode --image lmsysorg/sglang:latest
"""


@click.command(name="importaudit bytecode", epilog=EPILOG, context_settings=HELP)
@click.argument("paths", metavar="[PATH…]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--python", metavar="PATH", help="Interpreter or virtualenv that would load it"
              " [default: the active virtualenv's, else our own].")  # fmt: skip
@click.option("--verify", is_flag=True,
              help="Compile every source and compare;"
              " finds edits that kept both mtime and size.")  # fmt: skip
@click.option("--json", "json_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Write the result to FILE (- for stdout, without the report).")  # fmt: skip
@click.option("--fail-on", metavar="VERDICT,…", help="Exit 1 when a source has such a verdict.")
@click.option("--max-missing-percent", "limit", metavar="X", type=click.FloatRange(0, 100),
              help="Exit 1 when more package directories have no usable bytecode.")  # fmt: skip
@click.option("--top", metavar="N", type=click.IntRange(1), default=15, show_default=True,
              help="Rows of the table.")  # fmt: skip
@image_options
def bytecode(
    paths: tuple[Path, ...],
    python: str | None,
    verify: bool,
    json_file: Path | None,
    fail_on: str | None,
    limit: float | None,
    top: int,
    container: Container | None,
) -> int:
    """Say which sources would be compiled again at every start.

    Judges every importable source of the environment, its standard library included, as the
    interpreter with the flags of its environment (PYTHONOPTIMIZE, PYTHONPYCACHEPREFIX, …) would,
    without importing anything. PATH is a folder as on sys.path, a package, a .py file or a zip.
    """
    from importaudit.measure.survey import survey
    from importaudit.views import bytecode as view
    from importaudit.views.progress import Ticker

    check_writable(json_file)
    unwanted = parse_verdicts(fail_on, verify)
    ticker = Ticker()
    try:
        with place(container, python) as (machine, where):
            named = check_paths(paths, machine)
            report = survey(where, named, verify=verify, tell=ticker, machine=machine)
    finally:
        ticker.end()
    written = write(report, json_file)
    if json_file != Path("-"):
        draw(lambda console: view.show(report, console, top))
    if written is not None:
        raise written
    failed = gates(report.summary, unwanted, limit)
    for line in failed:
        click.echo(f"importaudit: {line}", err=True)
    return FINDING if failed else FINE


def check_paths(paths: tuple[Path, ...], machine: Machine) -> list[Path]:
    """PATHS in full; raises UsageError for what cannot be judged."""
    found = [Path(machine.work, path) for path in paths]
    for named, path in zip(paths, found, strict=True):
        try:
            status = machine.files.stat(str(path))
        except OSError as error:
            raise UsageError(f"no file or folder at {named}") from error
        if stat.S_ISREG(status.st_mode) and path.suffix != ".py":
            import zipfile

            with machine.files.open(str(path)) as file:
                if not zipfile.is_zipfile(file):
                    problem = "is neither a folder nor a .py file nor a zip archive"
                    raise UsageError(f"{named} {problem}")
    return found


def parse_verdicts(words: str | None, verify: bool) -> list[Verdict]:
    """The verdicts of --fail-on; raises UsageError naming those that there are."""
    from importaudit.record import Verdict

    known = [verdict for verdict in Verdict if verdict is not Verdict.LOADABLE]
    found: list[Verdict] = []
    for word in (words or "").split(",") if words is not None else []:
        if word.strip() not in known:
            raise UsageError(
                f"--fail-on: no verdict {word.strip()!r}", f"one of {', '.join(known)}"
            )
        found.append(Verdict(word.strip()))
    if Verdict.NOT_COMPILABLE in found and not verify:
        raise UsageError("--fail-on not-compilable: that is found out with --verify only")
    return found


def gates(summary: Bytecode, unwanted: list[Verdict], limit: float | None) -> list[str]:
    """What --fail-on and --max-missing-percent have to say."""
    failed = [
        f"--fail-on {verdict}: {summary.verdicts[verdict]:,} of {summary.sources:,} sources"
        for verdict in dict.fromkeys(unwanted)
        if summary.verdicts.get(verdict)
    ]
    if limit is not None and summary.percent > limit:
        failed.append(
            f"--max-missing-percent {limit:g}: {summary.percent:.1f} % ({summary.without:,} of"
            f" {summary.folders:,} package directories)"
        )
    return failed
