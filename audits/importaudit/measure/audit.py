"""An audit: which runs there are, and in which order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from importaudit.analysis import failures, laziness
from importaudit.errors import InterpreterError
from importaudit.files import Files
from importaudit.measure import assemble, build, ground, interpreter, launch, pagecache
from importaudit.measure.assemble import Done, Material
from importaudit.measure.facts import ask_facts
from importaudit.measure.ground import Ground
from importaudit.measure.machine import HERE, Machine
from importaudit.measure.recompile import usable
from importaudit.measure.survey import survey_sources
from importaudit.plan import Condition, Plan, Schedule, Target, schedule
from importaudit.record import Failure, FirstUse, Judged, Record, Run


class Listener(Protocol):
    """Told what the audit is doing; views implement it."""

    def began(self, plan: Plan) -> None: ...
    def planned(self, schedule: Schedule) -> None: ...
    def started(self, label: str, number: int, of: int) -> None: ...
    def ended(self, run: Run) -> None: ...
    def interrupted(self) -> None: ...


def perform(plan: Plan, listener: Listener, machine: Machine = HERE) -> Record:
    """Carry PLAN out on MACHINE.

    A target that fails ends it early, with what was recorded until then; so does Ctrl-C. Raises
    InterpreterError when the interpreter is not one that can be audited, and UsageError where the
    page cache is to be dropped and may not be.
    """
    interpreter.ask(plan.python, machine)
    if plan.drop_caches:
        pagecache.check_drop()
    load = os.getloadavg()[0]
    listener.began(plan)
    listener.started("detail", 1, 1)
    try:
        finished = launch.run(
            plan.python, plan.target, machine=machine, detail=True, timeout=plan.timeout
        )
    except launch.Interrupted as stop:
        finished = stop.finished
        listener.interrupted()
    detail = Done(build.run("detail", finished), finished)
    listener.ended(detail.run)
    found = Material(plan, machine, load, detail, failure=diagnose(plan, detail, machine))
    if found.failure is None:
        measure(plan, found, listener)
    record = assemble.record(found)
    chain_bytecode(plan, record, machine)
    if found.failure is None and plan.target.modules and len(found.runs) == found.planned:
        try:
            record.first_use = first_use(plan, record, listener, machine)
        except KeyboardInterrupt:
            listener.interrupted()
    return record


def measure(plan: Plan, found: Material, listener: Listener) -> None:
    """The timing runs, until one fails."""
    run, finished = found.detail.run, found.detail.finished
    runs = schedule(plan, run.compiled, build.sources(finished), run.wall / 1e9)
    listener.planned(runs)
    found.conditions = runs.conditions
    found.planned = len(runs.conditions) * runs.runs
    order = [condition for one in runs.rounds for condition in one]
    with ground.prepared(plan, found.machine, finished) as found.basis:
        try:
            for number, condition in enumerate(order, 1):
                listener.started(condition.name, number, len(order))
                if once(condition, found, found.basis, listener) is not None:
                    break
        except KeyboardInterrupt:  # what has been measured is not lost
            found.notes.add(f"interrupted after {len(found.runs)} of {len(order)} timing runs")
            listener.interrupted()
        found.notes |= found.basis.notes


def once(
    condition: Condition, found: Material, basis: Ground, listener: Listener
) -> Failure | None:
    """One timing run; why it did not come to its end, if it did not."""
    finished = basis.run(condition)
    build.locate(finished.main, found.detail.finished.main)
    done = Done(build.run("timing", finished, condition.name), finished)
    found.failure = diagnose(found.plan, done, found.machine)
    found.add(condition, done)
    listener.ended(done.run)
    return found.failure


def diagnose(plan: Plan, done: Done, machine: Machine) -> Failure | None:
    """Why a run did not come to its end, if it did not."""
    finished, main = done.finished, done.finished.main
    return failures.diagnose(
        done.processes[0].events,
        exit_status=finished.status,
        timed_out=finished.timed_out,
        interrupted=finished.interrupted,
        timeout=plan.timeout,
        finished=main.done is not None,
        stdout=finished.stdout,
        stderr=finished.stderr,
        path=[*main.path, *main.final_path],
        wanted=plan.target.modules,
        files=machine.files,
    )


def chain_bytecode(plan: Plan, record: Record, machine: Machine) -> None:
    """Judge the bytecode of the chain's sources, as shipped, and note what is loaded."""
    origins = {e.module: e.origin for e in record.processes[0].events if e.origin}
    sources = {origin for origin in origins.values() if origin.endswith(".py")}
    judged: list[Judged] = []
    try:
        facts = ask_facts(plan.python, machine)
        record.bytecode, judged = survey_sources(sorted(sources), facts, machine)
    except InterpreterError as error:  # it can run the target, and not that
        record.notes.append(f"no verdict on the bytecode: {error.problem}")
    record.sizes = sizes(origins, judged, machine.files)


def sizes(origins: Mapping[str, str], judged: Sequence[Judged], files: Files) -> dict[str, int]:
    """Bytes of the file that each module of ORIGINS is loaded from."""
    known = {one.source: one.bytecode if usable(one) else one.size for one in judged}
    for origin in set(origins.values()) - set(known):
        with suppress(OSError):
            known[origin] = files.stat(origin).st_size
    found = ((module, known.get(origin)) for module, origin in origins.items())
    return {module: size for module, size in found if size}


def first_use(plan: Plan, record: Record, listener: Listener, machine: Machine) -> FirstUse | None:
    """Import what the target names and has not loaded, in one more run, and see what it adds."""
    loaded = {e.module for e in record.processes[0].events} | set(record.processes[0].by_hand)
    modules = assemble.modules_of(record.processes[0])
    known = laziness.known_not_loaded(plan.target.modules, modules, loaded, machine.files)
    if not known:
        return None
    listener.started("first-use", 1, 1)
    statements = "".join(f"try: import {name}\nexcept Exception: pass\n" for name in known)
    code = f"import {', '.join(plan.target.modules)}\n{statements}"
    target = Target(code=code)
    finished = launch.run(plan.python, target, machine=machine, timeout=plan.timeout)
    run = build.run("first-use", finished)
    listener.ended(run)
    if finished.main.done is None:
        return FirstUse(known, failed=known)
    base = record.runs[record.representative]
    events = finished.main.events.values()
    failed = [e.name for e in events if e.parent == 0 and e.outcome == "failed"]
    return FirstUse(
        known=known,
        modules=run.modules - base.modules,
        wall=run.wall - base.wall,
        cpu=run.cpu - base.cpu,
        failed=[name for name in failed if name in known],
    )
