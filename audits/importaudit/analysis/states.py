"""States side by side, and what lies between the fastest and the slowest of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median, median_low

from importaudit.analysis import statistics
from importaudit.analysis.statistics import Comparison, Spread
from importaudit.record import NOTHING, Cost, Record, Run, State

BASE, SHIPPED, NONE = "warm-complete", "warm-as-shipped", "warm-none"
COLD = "cold-as-shipped"


@dataclass(frozen=True)
class Row:
    """One state; wall and CPU in nanoseconds, the other figures medians of its runs."""

    state: State
    wall: Spread
    cpu: Spread
    disk: int  # bytes
    files: int
    faults: int
    compiled: int


def rows(record: Record) -> list[Row]:
    """A row for each state of RECORD that has runs that came to their end."""
    found = []
    for state in record.states:
        runs = runs_of(record, state.name)
        if runs:
            found.append(
                Row(
                    state,
                    statistics.spread([run.wall for run in runs]),
                    statistics.spread([run.cpu for run in runs]),
                    *(round(median(values)) for values in zip(*map(counts, runs), strict=True)),
                )
            )
    return found


def counts(run: Run) -> tuple[int, int, int, int]:
    return run.disk, run.files, run.faults, run.compiled


def runs_of(record: Record, state: str) -> list[Run]:
    """The timing runs in STATE that came to their end, in the order in which they ran."""
    return [run for run in record.runs if run.state == state and not run.exit]


# --- the stack -----------------------------------------------------------------------------

# The parts of a warm run with complete bytecode, and the rows that they consist of.
PARTS: dict[str, tuple[str, ...]] = {
    "module bodies": ("body",),
    "unmarshalling": ("unmarshal",),
    "dlopen": ("dlopen",),
    "garbage collection": ("gc",),
    "finding and reading, cached": ("import", "find", "read"),
    "interpreter start and end": ("start", "shutdown", "probe", "unattributed", "compile"),
}


@dataclass(frozen=True)
class Part:
    """A part of the cold time: nanoseconds, and how much of it each distribution has."""

    name: str
    wall: int
    distributions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Stack:
    """From warm with complete bytecode to cold as shipped; the parts add up to ``wall``."""

    base: str  # the state that the first parts are taken from
    parts: list[Part]
    wall: int  # of the run that they add up to: cold as shipped, of median wall time


def stack(record: Record) -> Stack | None:
    """What a cold run consists of, where the states for that have been measured."""
    names = {state.name: state for state in record.states}
    base = complete_state(record)
    if base is None or COLD not in names:
        return None
    warm, cold = middle(record, base), middle(record, COLD)
    if warm is None or cold is None:
        return None
    of_warm, of_cold = names[base].distributions, names[COLD].distributions
    parts = [
        Part(name, total(warm.rows, rows, wall), each(of_warm, rows, wall))
        for name, rows in PARTS.items()
    ]
    parts.append(growth("compiling what has no bytecode", warm, cold, of_warm, of_cold, compiling))
    parts.append(growth("waiting for the disk", warm, cold, of_warm, of_cold, blocked))
    rest = cold.wall - sum(part.wall for part in parts)
    parts.append(Part("kernel's work for that, and noise", rest))
    return Stack(base, parts, cold.wall)


def complete_state(record: Record) -> str | None:
    """The warm state in which all bytecode was there; as shipped, where nothing was missing."""
    if runs_of(record, BASE):
        return BASE
    shipped = runs_of(record, SHIPPED)
    return SHIPPED if shipped and all(run.compiled == 0 for run in shipped) else None


def extra_cpu(record: Record, state: str) -> Comparison | None:
    """CPU time of STATE beside complete bytecode's; None where one of them was not measured."""
    base = complete_state(record)
    if base is None or base == state:
        return None
    ours, theirs = ([run.cpu for run in runs_of(record, name)] for name in (state, base))
    if not ours or len(ours) != len(theirs):  # the audit was interrupted
        return None
    return statistics.paired(ours, theirs)


def middle(record: Record, state: str) -> Run | None:
    """The run of STATE of median wall time."""
    runs = runs_of(record, state)
    if not runs:
        return None
    chosen = median_low(run.wall for run in runs)
    return next(run for run in runs if run.wall == chosen)


Measure = Callable[[str, Cost], int]


def wall(_: str, cost: Cost) -> int:
    return cost.wall


def compiling(phase: str, cost: Cost) -> int:
    return cost.wall if phase == "compile" else 0


def blocked(phase: str, cost: Cost) -> int:
    return cost.blocked if phase != "compile" else 0


def total(rows: Mapping[str, Cost], names: tuple[str, ...], measure: Measure) -> int:
    return sum(measure(name, rows.get(name, NOTHING)) for name in names)


def each(
    found: Mapping[str, Mapping[str, Cost]], names: tuple[str, ...], measure: Measure
) -> dict[str, int]:
    """The same by distribution."""
    return {name: total(phases, names, measure) for name, phases in found.items()}


def growth(
    name: str,
    warm: Run,
    cold: Run,
    of_warm: Mapping[str, Mapping[str, Cost]],
    of_cold: Mapping[str, Mapping[str, Cost]],
    measure: Measure,
) -> Part:
    """How much more of something a cold run has."""
    more = total(cold.rows, tuple(cold.rows), measure) - total(warm.rows, tuple(warm.rows), measure)
    before = {name: total(phases, tuple(phases), measure) for name, phases in of_warm.items()}
    after = {name: total(phases, tuple(phases), measure) for name, phases in of_cold.items()}
    return Part(name, more, {name: after[name] - before.get(name, 0) for name in after})
