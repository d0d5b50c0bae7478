"""``importaudit bytecode``: an interpreter's whole environment, or what was named, judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from importaudit.analysis.bytecode import summarise
from importaudit.measure import recompile
from importaudit.measure.bytecode import Judge, judge
from importaudit.measure.facts import Kinds, ask_facts, environment_roots, owners_of
from importaudit.measure.machine import HERE, Machine
from importaudit.measure.sources import judge_roots
from importaudit.record import (
    BYTECODE_FORMAT,
    BYTECODE_VERSION,
    Bytecode,
    BytecodeReport,
    Facts,
    Judged,
    Root,
    Verdict,
    text,
)

Tell = Callable[[str, int], None]  # what is being done, and how many sources it has been done to


def survey(
    python: Path,
    paths: Sequence[Path] = (),
    *,
    verify: bool = False,
    tell: Tell | None = None,
    machine: Machine = HERE,
) -> BytecodeReport:
    """Judge every importable source of PYTHON's environment, or of PATHS where there are any.

    Both are MACHINE's.

    Raises InterpreterError. Imports nothing; nothing is written.
    """
    tell = tell or (lambda what, done: None)  # noqa: ARG005
    facts = ask_facts(python, machine)
    owners = owners_of(facts, machine.files)
    kinds = Kinds(facts, owners)
    named = [kinds.root(str(path.absolute())) for path in paths]
    judging = Judge(facts, machine)
    found = judge_roots(
        named or environment_roots(facts, owners), judging, lambda n: tell("looked at", n)
    )
    judging.settle()
    judged = [one for _, below in found for one in below]
    if verify:
        judging.notes += recompile.verify(judged, facts, lambda n: tell("compiled", n), machine)
    if facts.dont_write:
        judging.notes.append("PYTHONDONTWRITEBYTECODE is set: no import writes what is missing")
    summary = summarise(found, owners)
    return BytecodeReport(
        format=BYTECODE_FORMAT,
        version=BYTECODE_VERSION,
        tool=version("importaudit"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        facts=facts,
        verified=verify,
        roots=[Root(text(r.path), r.kind, r.sources, r.unusable) for r, below in found if below],
        summary=summary,
        sources=listed(judged),
        notes=judging.notes,
        image=machine.image,
    )


def survey_sources(
    sources: Iterable[str], facts: Facts, machine: Machine = HERE
) -> tuple[Bytecode, list[Judged]]:
    """The same for SOURCES alone, such as those of a chain of imports: the sums, and each verdict.

    See ``judge`` for what is left out. Names in the sums are by distribution, or by the entry of
    sys.path that a source is below.
    """
    owners = owners_of(facts, machine.files)
    kinds = Kinds(facts, owners)
    entries = sorted((path.rstrip("/") for path in facts.path), key=len, reverse=True)
    below: dict[str, list[Judged]] = {}
    judged = judge(sources, facts, machine)
    for one in judged:
        folder = one.source.rpartition("/")[0]
        entry = next((e for e in entries if one.source.startswith(f"{e}/")), folder)
        below.setdefault(entry, []).append(one)
    return summarise([(kinds.root(path), found) for path, found in below.items()], owners), judged


def listed(judged: Sequence[Judged]) -> list[Judged]:
    """Those that are not loadable, by path, as JSON can hold them."""
    found = [one for one in judged if one.verdict is not Verdict.LOADABLE]
    for one in found:
        one.source = text(one.source)
    return sorted(found, key=lambda one: one.source)
