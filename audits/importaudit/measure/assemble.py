"""The Record put together from what the runs of an audit left behind. Nothing runs here."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from statistics import median, median_low

from importaudit.analysis import distributions
from importaudit.files import Files
from importaudit.measure import build, surroundings
from importaudit.measure.ground import Ground
from importaudit.measure.launch import Finished
from importaudit.measure.machine import Machine
from importaudit.measure.trace import Trace
from importaudit.plan import AS_SHIPPED, Condition, Plan
from importaudit.record import (
    FORMAT,
    NOTHING,
    VERSION,
    Cost,
    Failure,
    HotLine,
    Interpreter,
    Process,
    Record,
    Run,
    State,
    text,
)

DETAILED = 10  # modules of largest self time whose hottest lines are kept
LINES_KEPT = 5  # of each
Phases = dict[str, dict[str, Cost]]  # by distribution, by phase


@dataclass
class Done:
    """A run, and what it left behind: tens of megabytes, so few are kept."""

    run: Run
    finished: Finished

    @cached_property
    def processes(self) -> list[Process]:
        """The processes of the run, the target first."""
        return build.processes(self.finished)

    @cached_property
    def modules(self) -> dict[str, str]:
        """The modules of the target and the files they came from."""
        return modules_of(self.processes[0])


@dataclass
class Material:
    """What an audit has gathered so far."""

    plan: Plan
    machine: Machine
    load: float  # of the machine before the first run
    detail: Done
    failure: Failure | None = None
    conditions: tuple[Condition, ...] = ()
    planned: int = 0  # timing runs
    basis: Ground | None = None
    runs: list[Run] = field(default_factory=list)  # timing runs
    kept: list[Done] = field(default_factory=list)  # those of the state that the report shows
    notes: set[str] = field(default_factory=set)
    phases: dict[str, list[tuple[int, Phases]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, condition: Condition, done: Done) -> None:
        """Add a timing run."""
        self.runs.append(done.run)
        self.notes.update(notes(done.finished))
        phases = by_distribution(done.finished.main, self.home)
        self.phases[condition.name].append((done.run.wall, phases))
        shown = AS_SHIPPED if AS_SHIPPED in self.conditions else self.conditions[0]
        if condition == shown or self.failure is not None:
            self.kept.append(done)

    @cached_property
    def facts(self) -> Interpreter:
        """What the interpreter is."""
        return surroundings.interpreter_facts(self.detail.finished.main)

    @cached_property
    def home(self) -> dict[str, str]:
        """The distribution of each module that the detail run imported."""
        grouped = self.group(self.detail)
        return {module: name for name, members in grouped.items() for module in members}

    def group(self, done: Done) -> dict[str, list[str]]:
        """The modules of a run by distribution."""
        trace, facts = done.finished.main, self.facts
        if not facts.version:
            return {}
        path = list(dict.fromkeys([*trace.path, *trace.final_path]))
        short = distributions.version_text(facts.version)
        return distributions.assign(
            done.modules, path, facts.base_prefix, facts.platlibdir, short, self.machine.files
        )

    @property
    def representative(self) -> Done:
        """The run to show: the one that failed, or of the state to show the median."""
        if self.failure is not None or not self.kept:
            return [self.detail, *self.kept][-1]
        middle = median_low(done.run.wall for done in self.kept)
        return next(done for done in self.kept if done.run.wall == middle)


def record(found: Material) -> Record:
    """The Record of what has been FOUND."""
    shown, detail = found.representative, found.detail.finished
    processes = shown.processes
    runs = [found.detail.run, *found.runs]
    made = Record(
        format=FORMAT,
        version=VERSION,
        tool=version("importaudit"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        target=text(found.plan.target.text),
        modules=list(found.plan.target.modules),
        interpreter=found.facts,
        environment=surroundings.environment(found.machine, found.facts, found.load),
        runs=runs,
        representative=next(n for n, run in enumerate(runs) if run is shown.run),
        processes=processes,
        states=states(found),
        spreads=build.spreads([done.processes[0] for done in found.kept]),
        distributions=found.group(shown),
        failure=found.failure,
        notes=sorted(found.notes | set(notes(detail))),
        output_lines=(shown.finished.stdout + shown.finished.stderr).count("\n"),
    )
    made.edges = build.edges(detail.main, shown.modules)
    made.lines = hottest(build.hot_lines(detail.main), processes[0], found.machine.files)
    return made


def modules_of(process: Process) -> dict[str, str]:
    """The modules of PROCESS and the files they came from."""
    # Imports that found their module loaded know no origin: those that do have the last word.
    events = sorted(process.events, key=lambda event: event.origin != "")
    return {event.module: event.origin for event in events} | dict.fromkeys(process.by_hand, "")


def states(found: Material) -> list[State]:
    """What each state was like, in the order of the report."""
    made = []
    for condition in found.conditions:
        runs = found.phases.get(condition.name)
        if not runs or found.basis is None:
            continue
        before = found.basis.found[condition.name]
        middle = median_low(wall for wall, _ in runs)
        made.append(
            State(
                name=condition.name,
                cache=condition.cache,
                bytecode=condition.bytecode,
                pause_gc=condition.pause_gc,
                files=before[-1].files,
                bytes=round(median(one.bytes for one in before)),
                resident=round(median(one.resident or 0 for one in before)),
                lower_bound=found.basis.lower_bound(condition),
                distributions=next(phases for wall, phases in runs if wall == middle),
            )
        )
    return made


def by_distribution(trace: Trace, home: Mapping[str, str]) -> Phases:
    """What each phase cost the modules of each distribution."""
    found: Phases = defaultdict(dict)
    for raw in trace.events.values():
        phases = found[home.get(raw.name, distributions.MAIN)]
        for phase, cost in raw.phases.items():
            phases[phase] = phases.get(phase, NOTHING) + cost
    return dict(found)


def hottest(lines: Sequence[HotLine], process: Process, files: Files) -> list[HotLine]:
    """The hottest lines of the modules of largest self time, with their source."""
    own: dict[str, int] = {}
    for event in process.events:
        own[event.module] = own.get(event.module, 0) + event.own.wall
    kept: list[HotLine] = []
    for module in sorted(own, key=lambda name: -own[name])[:DETAILED]:
        kept += [line for line in lines if line.module == module][:LINES_KEPT]
    for line in kept:
        line.source = source_line(line.file, line.line, files)
    return kept


def source_line(file: str, line: int, files: Files) -> str:
    """The text of a line, or nothing where the source cannot be read."""
    try:
        lines = io.StringIO(files.read(file).decode("utf-8", "replace"), newline=None)
    except OSError:
        return ""
    return next((text.strip() for n, text in enumerate(lines, 1) if n == line), "")


def notes(finished: Finished) -> list[str]:
    """What could not be measured, in words."""
    found = []
    if finished.main.malformed:
        found.append(f"{finished.main.malformed} records of a trace were cut off or unreadable")
    if finished.waited is None:
        found.append("no scheduler statistics here: runnable time is counted as blocked")
    if finished.main.running:
        found.append("a thread was still importing when the main thread was done")
    return found
