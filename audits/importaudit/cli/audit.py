"""``importaudit MODULE``: the audit itself."""

from __future__ import annotations

import keyword
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import click

from importaudit.cli.exports import Exports, export, export_options, raise_all
from importaudit.cli.images import image_options, place
from importaudit.cli.output import HELP, check_writable, show_record, write
from importaudit.errors import UsageError

if TYPE_CHECKING:
    from importaudit.measure.machine import Machine
    from importaudit.plan import Condition, Container, Target

FINE, TARGET, INTERRUPTED = 0, 3, 130  # exit codes: see importaudit.cli

EPILOG = """\b
Examples:
  importaudit torch
  importaudit --python /srv/venv sglang.multimodal_gen --json sglang.json
  importaudit --code "import numpy; numpy.zeros(3)"
  importaudit --script train.py -- --epochs 1
  importaudit --states cold-none,warm-complete --runs 5 torch
  importaudit --image lmsysorg/sglang:latest sglang.multimodal_gen
\b
Other commands (a module of such a name is reached after --: importaudit -- show):
  importaudit show RECORD    print the report of a Record again
  importaudit diff A B       say what differs between two Records
  importaudit schema         print the JSON Schema of a Record
  importaudit bytecode       which sources have no bytecode that would be loaded
"""


@click.command(name="importaudit", epilog=EPILOG, context_settings=HELP)
@click.argument("targets", metavar="MODULE…", nargs=-1)
@click.option("--python", metavar="PATH", help="Interpreter or virtualenv to audit [default: the"
              " active virtualenv's, else our own].")  # fmt: skip
@click.option("--code", metavar="STRING", help="Audit this code in place of modules.")
@click.option("--script", metavar="FILE", type=click.Path(path_type=Path),
              help="Audit a script; MODULE… are its arguments.")  # fmt: skip
@click.option(
    "--runs",
    metavar="N",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Timing runs of each state, interleaved; one detail run comes before them.",
)
@click.option(
    "--states",
    metavar="LIST",
    help="States to measure: warm or cold, as-shipped,"
    " complete or none, as in cold-none,warm-complete; or all [default: those that tell"
    " something here].",
)
@click.option(
    "--quick", is_flag=True, help="One run a state: no spread, and no claim about savings."
)
@click.option("--drop-caches", is_flag=True, help="For cold runs, empty the page cache of the"
              " whole machine (root).")  # fmt: skip
@click.option("--timeout", metavar="S", type=click.FloatRange(0, min_open=True),
              help="Seconds for each run [default: none].")  # fmt: skip
@click.option("--json", "json_file", metavar="FILE", type=click.Path(path_type=Path),
              help="Write the Record to FILE (- for stdout, without the report).")  # fmt: skip
@click.option("--top", metavar="N", type=click.IntRange(1), default=15, show_default=True,
              help="Rows of each table.")  # fmt: skip
@image_options
@export_options
@click.version_option(package_name="importaudit", prog_name="importaudit")
def audit(
    targets: tuple[str, ...],
    python: str | None,
    code: str | None,
    script: Path | None,
    runs: int,
    states: str | None,
    quick: bool,
    drop_caches: bool,
    timeout: float | None,
    json_file: Path | None,
    top: int,
    exports: Exports,
    container: Container | None,
) -> int:
    """Say where the time of importing MODULE goes.

    Runs the import in fresh processes of the target's interpreter, with warm and cold page cache
    and with and without bytecode, sees every import of theirs, and shows which modules,
    distributions and phases the seconds go to.
    """
    from importaudit.measure.audit import perform
    from importaudit.plan import Plan
    from importaudit.views.progress import Progress

    check_writable(json_file)
    target = make_target(targets, code, script)
    conditions = conditions_of(states) if states is not None else None
    progress = Progress()
    with place(container, python) as (machine, where):
        check_script(target, machine)
        plan = Plan(where, target, 1 if quick else runs, timeout, conditions, drop_caches)
        record = perform(plan, progress, machine)
    written = write(record, json_file)
    failed = [*export(record, exports), *([written] if written is not None else [])]
    if Path("-") not in (json_file, *exports.values()):
        show_record(record, top)
    raise_all(failed)
    if progress.stopped:
        return INTERRUPTED
    return FINE if record.failure is None else TARGET


def make_target(targets: tuple[str, ...], code: str | None, script: Path | None) -> Target:
    """The target of the command line; raises UsageError for what cannot be one."""
    from importaudit.plan import Target

    if code is not None and script is not None:
        raise UsageError("--code and --script exclude each other")
    if script is not None:
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


def check_script(target: Target, machine: Machine) -> None:
    """Raise UsageError when TARGET is a script that is not there."""
    if target.script is None:
        return
    path = os.path.join(machine.work, target.script)  # noqa: PTH118
    try:
        found = stat.S_ISREG(machine.files.stat(path).st_mode)
    except OSError:
        found = False
    if not found:
        where = f" in {machine.image.reference}" if machine.image is not None else ""
        raise UsageError(f"no script at {target.script}{where}")


def conditions_of(words: str) -> tuple[Condition, ...]:
    """The states that WORDS name, in the order of the report; raises UsageError."""
    from importaudit.plan import CONDITIONS

    known = {condition.name: condition for condition in CONDITIONS}
    asked = [word.strip() for word in words.split(",") if word.strip()]
    if asked == ["all"]:
        return CONDITIONS
    unknown = [word for word in asked if word not in known]
    if unknown or not asked:
        problem = f"no state is called {unknown[0]!r}" if unknown else "--states names no state"
        raise UsageError(problem, f"there are {', '.join(known)}, and all")
    return tuple(condition for name, condition in known.items() if name in asked)


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
