"""What to do next: the few changes that would save most, and how that is known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from importaudit.analysis import costs, states, statistics
from importaudit.analysis.distributions import MAIN, STDLIB
from importaudit.analysis.graph import ROOT, ImportGraph
from importaudit.analysis.statistics import Verdict
from importaudit.record import Link, Record

MOST = 5  # lines
DEFERRED = 3  # of them about distributions, at most
WORTH = 0.01  # of the wall time: what saves less is not said


@dataclass(frozen=True)
class Step:
    """One change: what it saves (nanoseconds of wall time), how that is known, how to do it."""

    saving: int
    what: str
    known: str  # "measured: …" or "predicted: …"
    how: str  # a command, or the line that it is about
    where: Link | None = None  # that line


def steps(record: Record, graph: ImportGraph) -> list[Step]:
    """The steps for RECORD, largest saving first; none from one run a state, which proves none."""
    if record.failure is not None or not any(
        len(states.runs_of(record, state.name)) > 1 for state in record.states
    ):
        return []
    whole = record.runs[record.representative].wall
    found = [*bake(record), *pause(record), *defer(record, graph), *look(record)]
    worth = [step for step in found if step.saving >= WORTH * whole]
    return sorted(worth, key=lambda step: -step.saving)[:MOST]


def saved(record: Record, slow: str, fast: str) -> int:
    """Nanoseconds of wall time that the state FAST saves over SLOW; 0 unless that is certain."""
    ours, theirs = ([run.wall for run in states.runs_of(record, name)] for name in (slow, fast))
    if len(ours) != len(theirs) or not ours:
        return 0
    found = statistics.paired(ours, theirs)
    return round(found.difference) if found.verdict is Verdict.MORE else 0


def pairs(record: Record) -> str:
    """How many pairs of runs a measured saving rests on."""
    return f"{len(states.runs_of(record, states.SHIPPED))} pairs of runs"


def bake(record: Record) -> Iterator[Step]:
    """Complete bytecode, where some is missing."""
    saving = saved(record, states.SHIPPED, states.BASE)
    if saving:
        folders = " ".join(uncompiled(record))
        run = "" if record.environment.image is None else "in the Dockerfile: RUN "
        command = f"{run}{record.interpreter.executable} -m compileall -q -j 0 {folders}"
        yield Step(saving, "bake the bytecode", f"measured: overlay, {pairs(record)}", command)


def uncompiled(record: Record) -> list[str]:
    """The entries of sys.path below which modules were compiled."""
    entries = sorted((e for e in record.interpreter.path if e), key=len, reverse=True)
    found = set()
    for event in record.processes[0].events:
        if "compile" in event.phases:
            found.update([e for e in entries if event.origin.startswith(e + os.sep)][:1])
    return sorted(found)


def pause(record: Record) -> Iterator[Step]:
    """No garbage collection while importing."""
    saving = saved(record, states.SHIPPED, f"{states.SHIPPED}-no-gc")
    if saving:
        what = "pause garbage collection while importing"
        modules = ", ".join(record.modules) or "…"
        how = f"import gc; gc.disable(); import {modules}; gc.enable()"
        yield Step(saving, what, f"measured: {pairs(record)}", how)


def defer(record: Record, graph: ImportGraph) -> Iterator[Step]:
    """Distributions that nothing else would load, if they were imported where they are used."""
    own = {name for name, members in record.distributions.items()
           if set(record.modules) & set(members)}  # fmt: skip
    skipped = {MAIN, ROOT, STDLIB, *own}
    rows = [row for row in costs.by_distribution(record, graph) if row.name not in skipped]
    for row in sorted(rows, key=lambda row: -row.exclusive)[:DEFERRED]:
        if row.first is not None and row.first.file:
            how = "import it where it is used, not at"
            known = "predicted: exclusive cost"
            yield Step(row.exclusive, f"defer {row.name}", known, how, row.first)


def look(record: Record) -> Iterator[Step]:
    """The hottest line of each module, which cannot save more than the module's own time.

    It was sampled in the detail run, which is slower than the others.
    """
    own: dict[str, int] = {}
    for event in record.processes[0].events:
        own[event.module] = own.get(event.module, 0) + event.own.wall
    hottest = {line.module: line for line in sorted(record.lines, key=lambda one: one.sampled)}
    for line in hottest.values():
        where = Link(line.module, line.file, line.line)
        how = f"{line.source}  at" if line.source else "at"
        saving = min(line.sampled, own.get(line.module, 0))
        yield Step(saving, f"look at {line.module}", "predicted: samples", how, where)
