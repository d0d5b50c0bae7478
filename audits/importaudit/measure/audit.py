"""An audit: which runs there are, in which order, and the Record that they make."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median_low
from typing import Protocol

from importaudit.analysis import distributions, failures, laziness
from importaudit.measure import build, interpreter, launch
from importaudit.measure.launch import Finished
from importaudit.measure.trace import Trace
from importaudit.plan import Plan, Target
from importaudit.record import (
    FORMAT,
    VERSION,
    Environment,
    Failure,
    FirstUse,
    HotLine,
    Interpreter,
    Process,
    Record,
    Run,
    text,
)

DETAILED = 10  # modules of largest self time whose hottest lines are kept
LINES_KEPT = 5  # of each


class Listener(Protocol):
    """Told what the audit is doing; views implement it."""

    def planned(self, plan: Plan) -> None: ...
    def started(self, kind: str, number: int, of: int) -> None: ...
    def ended(self, run: Run) -> None: ...


def perform(plan: Plan, listener: Listener) -> Record:
    """Carry PLAN out. A target that fails ends it early, with what was recorded until then.

    Raises InterpreterError when the interpreter is not one that can be audited.
    """
    interpreter.ask(plan.python)
    load = os.getloadavg()[0]
    listener.planned(plan)
    done: list[tuple[Run, Finished]] = []
    failure: Failure | None = None
    for number, kind in enumerate(plan.kinds):
        listener.started(kind, number + 1, len(plan.kinds))
        finished = launch.run(
            plan.python, plan.target, detail=kind == "detail", timeout=plan.timeout
        )
        if done:
            build.locate(finished.main, done[0][1].main)
        done.append((build.run(kind, finished), finished))
        listener.ended(done[-1][0])
        failure = diagnose(plan, finished)
        if failure is not None:
            break
    return assemble(plan, done, failure, load, listener)


def diagnose(plan: Plan, finished: Finished) -> Failure | None:
    """Why FINISHED did not come to its end, if it did not."""
    main = finished.main
    events = [build.event(raw, main, finished.spawned) for raw in main.events.values()]
    return failures.diagnose(
        events,
        exit_status=finished.status,
        timed_out=finished.timed_out,
        timeout=plan.timeout,
        finished=main.done is not None,
        stderr=finished.stderr,
        path=[*main.path, *main.final_path],
        wanted=plan.target.modules,
    )


def assemble(
    plan: Plan,
    done: Sequence[tuple[Run, Finished]],
    failure: Failure | None,
    load: float,
    listener: Listener,
) -> Record:
    """The Record of the runs DONE, the detail run first."""
    chosen = representative([run for run, _ in done], failure)
    finished, detail = done[chosen][1], done[0][1]
    processes = build.processes(finished)
    # Imports that found their module loaded know no origin: those that do have the last word.
    events = sorted(processes[0].events, key=lambda event: event.origin != "")
    modules = {event.module: event.origin for event in events}
    modules |= dict.fromkeys(processes[0].by_hand, "")
    facts = interpreter_facts(finished.main)
    record = Record(
        format=FORMAT,
        version=VERSION,
        tool=version("importaudit"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        target=text(plan.target.text),
        modules=list(plan.target.modules),
        interpreter=facts,
        environment=environment(os.environ, facts, load),
        runs=[run for run, _ in done],
        representative=chosen,
        processes=processes,
        spreads=build.spreads([build.process(f.main, f.spawned) for _, f in done[1:]]),
        distributions=group(modules, finished.main, facts),
        failure=failure,
        notes=notes([finished for _, finished in done]),
        output_lines=finished.stdout.count("\n") + finished.stderr.count("\n"),
    )
    record.edges = build.edges(detail.main, modules)
    record.lines = hottest(build.hot_lines(detail.main), processes[0])
    if failure is None and plan.target.modules:
        record.first_use = first_use(plan, record, modules, listener)
    return record


def representative(runs: Sequence[Run], failure: Failure | None) -> int:
    """Index of the run to show: the one that failed, or the timing run of median wall time."""
    if failure is not None:
        return len(runs) - 1
    walls = [run.wall for run in runs]
    return walls.index(median_low(walls[1:]), 1)


def interpreter_facts(trace: Trace) -> Interpreter:
    """What the guest said of its interpreter; empty where it said nothing."""
    facts = trace.facts
    return Interpreter(
        executable=facts.get("executable", ""),
        version=facts.get("version", ""),
        prefix=facts.get("prefix", ""),
        base_prefix=facts.get("base_prefix", ""),
        path=trace.path,
        cache_tag=facts.get("cache_tag", ""),
        platlibdir=facts.get("platlibdir", "lib"),
        optimize=int(facts.get("optimize", "0")),
        pycache_prefix=facts.get("pycache_prefix", ""),
    )


def environment(variables: Mapping[str, str], facts: Interpreter, load: float) -> Environment:
    """The surroundings that change the answer."""
    return Environment(
        variables={k: text(v) for k, v in sorted(variables.items()) if k.startswith("PYTHON")},
        file_system=file_system(site_packages(facts)),
        processors=len(os.sched_getaffinity(0)),
        load=load,
        machine=platform.machine(),
        kernel=platform.release(),
    )


def site_packages(facts: Interpreter) -> str:
    """The first folder of installed packages on the target's path, or its prefix."""
    packages = (p for p in facts.path if p.endswith(("site-packages", "dist-packages")))
    return next(packages, facts.prefix or "/")


def file_system(path: str) -> str:
    """The type of the file system that PATH is on, as the kernel's mount table has it."""
    found = ("", "unknown")
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    real = os.path.realpath(path)
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = before.split()[4].replace("\\040", " ")
        inside = real == mount or real.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(found[0]):
            found = (mount, after.split()[0])
    return found[1]


def group(modules: Mapping[str, str], trace: Trace, facts: Interpreter) -> dict[str, list[str]]:
    """Modules by distribution."""
    if not facts.version:
        return {}
    path = list(dict.fromkeys([*trace.path, *trace.final_path]))
    short = distributions.version_text(facts.version)
    return distributions.assign(modules, path, facts.base_prefix, facts.platlibdir, short)


def hottest(lines: Sequence[HotLine], process: Process) -> list[HotLine]:
    """The hottest lines of the modules of largest self time, with their source."""
    own: dict[str, int] = {}
    for event in process.events:
        own[event.module] = own.get(event.module, 0) + event.own.wall
    kept: list[HotLine] = []
    for module in sorted(own, key=lambda name: -own[name])[:DETAILED]:
        kept += [line for line in lines if line.module == module][:LINES_KEPT]
    for line in kept:
        line.source = source_line(line.file, line.line)
    return kept


def source_line(file: str, line: int) -> str:
    """The text of a line, or nothing where the source cannot be read."""
    try:
        with Path(file).open(encoding="utf-8", errors="replace") as lines:
            return next((text.strip() for n, text in enumerate(lines, 1) if n == line), "")
    except OSError:
        return ""


def first_use(
    plan: Plan, record: Record, modules: Mapping[str, str], listener: Listener
) -> FirstUse | None:
    """Import what the target names and has not loaded, in one more run, and see what it adds."""
    loaded = {e.module for e in record.processes[0].events} | set(record.processes[0].by_hand)
    known = laziness.known_not_loaded(plan.target.modules, modules, loaded)
    if not known:
        return None
    listener.started("first-use", 1, 1)
    statements = "".join(f"try: import {name}\nexcept Exception: pass\n" for name in known)
    code = f"import {', '.join(plan.target.modules)}\n{statements}"
    finished = launch.run(plan.python, Target(code=code), timeout=plan.timeout)
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


def notes(done: Sequence[Finished]) -> list[str]:
    """What could not be measured, in words."""
    found = []
    lost = sum(finished.main.malformed for finished in done)
    if lost:
        found.append(f"{lost} records of the traces were cut off or unreadable")
    if any(finished.waited is None for finished in done):
        found.append("no scheduler statistics here: runnable time is counted as blocked")
    if any(finished.main.running for finished in done):
        found.append("a thread was still importing when the main thread was done")
    return found
