"""What differs between two Records: A, which came first, and B. Ratios are B to A.

Times are nanoseconds. They are compared where the same thing was measured under the same
conditions; where it was not, both values of each condition are given, times stand unjudged, and
modules are compared all the same. The dataclasses below are also the JSON document that
``importaudit diff --json`` writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Literal

from importaudit.analysis import statistics
from importaudit.analysis.graph import ROOT
from importaudit.analysis.statistics import Interval, Spread, Verdict
from importaudit.record import NOTHING, Cost, Record, Run
from importaudit.record import Spread as Kept

FORMAT = "importaudit-diff"
VERSION = 1
DEFAULT_STATE = "warm-as-shipped"  # of runs that name none
FELT = 1_000_000  # nanoseconds
ENOUGH = 3  # runs from which a range of self times says something
LOADED = ("loaded", "present", "running")  # outcomes of an import that leave a module behind

Clock = Literal["wall", "cpu"]


@dataclass(frozen=True)
class Side:
    """What one of the two Records is."""

    target: str
    tool: str
    created: str
    executable: str
    python: str  # version
    failure: str  # why its target did not come to its end, if so


@dataclass(frozen=True)
class Contrast:
    """A fact that differs."""

    what: str
    a: str
    b: str


@dataclass(frozen=True)
class Times:
    """One clock in one state, nanoseconds; the last four are missing where nothing is judged."""

    a: Spread
    b: Spread
    ratio: float | None = None
    interval: Interval | None = None
    difference: float | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class StateRow:
    """A state that both were run in."""

    state: str
    wall: Times
    cpu: Times
    counts: list[Contrast]  # bytes, files and modules, where they differ
    bound_a: str = ""  # why the state may be slower still than A measured, if it may
    bound_b: str = ""


@dataclass(frozen=True)
class Module:
    """A module that only one of them has, and its self time."""

    module: str
    distribution: str
    wall: int
    cpu: int


@dataclass(frozen=True)
class Mover:
    """Self time of a module that both have, by one clock."""

    module: str
    distribution: str
    a: Spread
    b: Spread
    difference: float  # of the medians
    verdict: Verdict


@dataclass(frozen=True)
class Difference:
    """The whole document."""

    format: str
    version: int
    a: Side
    b: Side
    not_comparable: list[Contrast]  # why times are not judged; empty where they are
    also: list[Contrast]  # what differs as well, and may be what was to be compared
    states: list[StateRow]
    only_a: list[str]  # states
    only_b: list[str]
    new: list[Module]  # in B alone, largest self time first
    gone: list[Module]  # in A alone
    movers_wall: list[Mover]  # beyond noise first, then the largest difference
    movers_cpu: list[Mover]


def difference(a: Record, b: Record) -> Difference:
    """All that differs between A and B."""
    apart = not_comparable(a, b)
    in_a, in_b = states(a), states(b)
    modules_a, modules_b = modules(a), modules(b)
    return Difference(
        format=FORMAT,
        version=VERSION,
        a=side(a),
        b=side(b),
        not_comparable=apart,
        also=also(a, b),
        states=[state_row(a, b, name, not apart) for name in in_a if name in in_b],
        only_a=[name for name in in_a if name not in in_b],
        only_b=[name for name in in_b if name not in in_a],
        new=only(modules_b, modules_a, b),
        gone=only(modules_a, modules_b, a),
        movers_wall=[] if apart else movers(a, b, "wall"),
        movers_cpu=[] if apart else movers(a, b, "cpu"),
    )


# --- what they are -------------------------------------------------------------------------


def side(record: Record) -> Side:
    return Side(
        target=record.target,
        tool=record.tool,
        created=record.created,
        executable=record.interpreter.executable,
        python=record.interpreter.version,
        failure=record.failure.message if record.failure is not None else "",
    )


def not_comparable(a: Record, b: Record) -> list[Contrast]:
    """The conditions that differ and make a comparison of times meaningless."""

    def facts(record: Record) -> list[tuple[str, object]]:
        python, around = record.interpreter, record.environment
        return [
            ("target", record.target),
            ("interpreter", python.version),
            ("implementation", python.cache_tag),
            ("optimise level", python.optimize),
            ("machine", around.machine),
            ("kernel", around.kernel),
            ("processors", around.processors),
            ("file system", around.file_system),
            ("outcome", "failed" if record.failure is not None else "fine"),
        ]

    found = contrasts(facts(a), facts(b))
    if a.failure is not None and b.failure is not None:  # the runs ended nobody knows where
        found.append(Contrast("outcome", "failed", "failed"))
    return found


def also(a: Record, b: Record) -> list[Contrast]:
    """What differs beside that: it may explain a difference, or be what is compared."""
    names = a.environment.variables.keys() | b.environment.variables.keys()
    names -= {"PYTHONDONTWRITEBYTECODE"}  # every run has -B

    def facts(record: Record) -> list[tuple[str, object]]:
        variables = record.environment.variables
        return [
            ("importaudit", record.tool),
            ("prefix", record.interpreter.prefix),
            ("pycache prefix", record.interpreter.pycache_prefix),
            *((name, variables.get(name, "(not set)") or "(empty)") for name in sorted(names)),
        ]

    return contrasts(facts(a), facts(b))


def contrasts(a: Iterable[tuple[str, object]], b: Iterable[tuple[str, object]]) -> list[Contrast]:
    """Those of the named facts that differ, in order."""
    return [
        Contrast(what, str(one) or "unknown", str(other) or "unknown")
        for (what, one), (_, other) in zip(a, b, strict=True)
        if one != other
    ]


# --- states --------------------------------------------------------------------------------


def states(record: Record) -> list[str]:
    """Names of the states that RECORD has timing runs in, in the order of its report."""
    found = [state_of(run) for run in record.runs if run.kind == "timing"]
    order = [state.name for state in record.states]
    return sorted(dict.fromkeys(found), key=lambda s: order.index(s) if s in order else len(order))


def state_of(run: Run) -> str:
    return run.state or DEFAULT_STATE


def timing_runs(record: Record, state: str) -> list[Run]:
    return [run for run in record.runs if run.kind == "timing" and state_of(run) == state]


def state_row(a: Record, b: Record, state: str, judged: bool) -> StateRow:
    """STATE in both, which have timing runs in it."""
    ours, theirs = timing_runs(a, state), timing_runs(b, state)
    return StateRow(
        state=state,
        wall=times([run.wall for run in ours], [run.wall for run in theirs], judged),
        cpu=times([run.cpu for run in ours], [run.cpu for run in theirs], judged),
        counts=contrasts(counts(ours), counts(theirs)),
        bound_a=bound(a, state),
        bound_b=bound(b, state),
    )


def bound(record: Record, name: str) -> str:
    """Why the times of the state of that NAME are a lower bound, if they are."""
    return next((state.lower_bound for state in record.states if state.name == name), "")


def times(a: Sequence[int], b: Sequence[int], judged: bool) -> Times:
    """One clock of both; without a ratio where it is not judged, or where there is none."""
    if not judged or min(*a, *b) <= 0:
        return Times(statistics.spread(a), statistics.spread(b))
    found = statistics.unpaired(b, a)
    return Times(
        a=found.theirs,
        b=found.ours,
        ratio=found.ratio,
        interval=found.interval,
        difference=found.difference,
        verdict=found.verdict,
    )


def counts(runs: Sequence[Run]) -> list[tuple[str, int]]:
    """What the runs did, by their median (one that occurred)."""
    return [
        ("modules", median_low(run.modules for run in runs)),
        ("bytes from disk", median_low(run.disk for run in runs)),
        ("files", median_low(run.files for run in runs)),
        ("compiled", median_low(run.compiled for run in runs)),
    ]


# --- modules -------------------------------------------------------------------------------


def modules(record: Record) -> dict[str, Cost]:
    """Self time of each module that the representative run loaded, or found made by hand."""
    if not record.processes:
        return {}
    process = record.processes[0]
    found = dict.fromkeys(process.by_hand, NOTHING)
    for event in process.events:
        if event.outcome in LOADED and event.module != ROOT:
            found[event.module] = found.get(event.module, NOTHING) + event.own
    return found


def only(here: dict[str, Cost], there: dict[str, Cost], record: Record) -> list[Module]:
    """The modules of RECORD that are HERE and not THERE."""
    owner = owners(record)
    found = [
        Module(name, owner.get(name, ""), cost.wall, cost.cpu)
        for name, cost in here.items()
        if name not in there
    ]
    return sorted(found, key=lambda module: (-module.wall, module.module))


def owners(record: Record) -> dict[str, str]:
    """The distribution of each module."""
    return {module: name for name, found in record.distributions.items() for module in found}


def by_distribution(found: Iterable[Module]) -> list[tuple[str, int]]:
    """How many of the modules each distribution has, most first."""
    return Counter(module.distribution for module in found).most_common()


def movers(a: Record, b: Record, clock: Clock) -> list[Mover]:
    """The modules in both whose self time differs by CLOCK, wall or cpu."""
    owner = owners(b)
    runs_a, runs_b = spread_runs(a), spread_runs(b)
    found = []
    for module in a.spreads.keys() & b.spreads.keys():
        ours = spread_of(a.spreads[module], clock, runs_a)
        theirs = spread_of(b.spreads[module], clock, runs_b)
        if ours.median != theirs.median:
            found.append(
                Mover(
                    module=module,
                    distribution=owner.get(module, ""),
                    a=ours,
                    b=theirs,
                    difference=theirs.median - ours.median,
                    verdict=moved(ours, theirs),
                )
            )
    return sorted(found, key=rank)


def spread_of(found: Kept, clock: Clock, runs: int) -> Spread:
    """What a Record keeps of a module's self times, over RUNS runs."""
    middle, least, most = found.wall if clock == "wall" else found.cpu
    return Spread(middle, least, most, runs)


def spread_runs(record: Record) -> int:
    """How many runs the spreads of RECORD are over: the timing runs in the state shown."""
    shown = record.runs[record.representative]
    return len(timing_runs(record, state_of(shown)))


def moved(a: Spread, b: Spread) -> Verdict:
    """Whether the ranges of a self time lie apart; with fewer than ENOUGH runs nobody knows.

    Ranges, since one in thousands of modules is always disturbed, and an interval for each would
    be wrong for one in twenty. Two ranges of three runs of the same lie apart in one case of ten.
    """
    if min(a.count, b.count) < ENOUGH:
        return Verdict.UNKNOWN
    if statistics.overlap(Interval(a.least, a.most), Interval(b.least, b.most)):
        return Verdict.NO_DIFFERENCE
    return Verdict.MORE if b.median > a.median else Verdict.LESS


def rank(mover: Mover) -> tuple[bool, float, str]:
    """Movers beyond noise that anybody could feel first, then the largest."""
    certain = mover.verdict in (Verdict.MORE, Verdict.LESS) and abs(mover.difference) >= FELT
    return not certain, -abs(mover.difference), mover.module
