"""The states side by side, and the stack from the fastest to the cold one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from importaudit.analysis import states
from importaudit.analysis.states import Part, Row, Stack
from importaudit.analysis.statistics import Spread, Verdict
from importaudit.record import Record
from importaudit.views.figures import grid, number, right, seconds, share, visible

MEGA = 1_000_000
WHOLE = 115  # columns from which the table of states fits
SPREAD = 72  # columns from which its times have their spread
WARM = 0.99  # of its files' bytes: what a warm run needs to be called that
LARGEST = 3  # distributions that are named beside a part
NAMED = 0.01  # of the whole: what is less is not named


def table(rows: Sequence[Row], width: int) -> RenderableType:
    """One row a state; in two tables where one is too wide, and without spread if need be."""
    if not rows:
        return Group()
    spread = width >= SPREAD
    times = {"wall s": [several(row.wall, spread) for row in rows],
             "CPU s": [several(row.cpu, spread) for row in rows]}  # fmt: skip
    counts = {
        "MB read": [f"{row.disk / MEGA:,.1f}" for row in rows],
        "files": [f"{row.files:,}" for row in rows],
        "major faults" if width >= SPREAD else "faults": [f"{row.faults:,}" for row in rows],
        "compiled": [f"{row.compiled:,}" for row in rows],
    }
    names = [row.state.name for row in rows]
    parts: list[RenderableType] = []
    for columns in [times | counts] if width >= WHOLE else [times, counts]:
        drawn = grid("" if parts else "States", *columns)
        for name, *cells in zip(names, *columns.values(), strict=True):
            drawn.add_row(Text(name), *cells)
        parts.append(drawn)
    notes = remarks(rows)
    if not spread:
        notes.append(f"from {SPREAD} columns on: least and most")
    parts += [Text(f"  {line}", style="dim") for line in notes]
    return Group(*parts, Text())


def several(values: Spread, spread: bool) -> str:
    """Median, and with SPREAD least to most, in seconds."""
    middle = f"{values.median / 1e9:.2f}"
    if not spread:
        return middle
    if values.count == 1:
        return f"{middle} (one run)"
    return f"{middle} ({values.least / 1e9:.2f} to {values.most / 1e9:.2f})"


def remarks(rows: Sequence[Row]) -> list[str]:
    """What was in the page cache, and what that means; what is the same is said once."""
    found = []
    if rows[0].wall.count > 1:
        runs = number(rows[0].wall.count, "run")
        found.append(f"median (least to most) of {runs} each, interleaved")
    found += [remark for row in rows for remark in caveats(row)]
    same: dict[str, list[str]] = {}
    for state in (row.state for row in rows if row.state.cache == "cold"):
        gone = state.bytes - state.resident
        text = f"{gone / MEGA:,.0f} of {state.bytes / MEGA:,.0f} MB evicted"
        text += f" ({share(gone, state.bytes)}, {number(state.files, 'file')})"
        if state.lower_bound:
            text += f"; lower bound: {state.lower_bound}"
        same.setdefault(text, []).append(state.name)
    return found + [f"{', '.join(names)}: {text}" for text, names in same.items()]


def caveats(row: Row) -> list[str]:
    """Where a state is not what its name says."""
    state, found = row.state, []
    if state.bytecode == "complete" and row.compiled:
        which = number(row.compiled, "module")
        found.append(f"{state.name}: {which} compiled all the same, for want of a place or a loader"
                     " that looks for bytecode")  # fmt: skip
    if state.cache == "warm" and state.resident < WARM * state.bytes:
        part = share(state.resident, state.bytes)
        found.append(f"{state.name}: only {part} of the files' bytes were in the page cache")
    return found


def bytecode_costs(record: Record) -> list[str]:
    """What missing bytecode costs here, as sentences; measured, or not said."""
    found = []
    base = states.complete_state(record)
    said = {states.SHIPPED: "What is missing costs", states.NONE: "Having none at all costs"}
    for state, start in said.items():
        extra = states.extra_cpu(record, state)
        if extra is None or extra.interval is None:  # too few runs: no claim
            continue
        how = f"(measured: {state} against {base}, {extra.ours.count} pairs of runs)"
        if extra.verdict is Verdict.MORE:
            cost = extra.ours.median - extra.theirs.median
            found.append(f"{start} {cost / 1e9:.2f} s of CPU at each start {how}.")
        else:
            found.append(f"{start} nothing that can be told from noise {how}.")
    return found


def stack(found: Stack, width: int) -> RenderableType:
    """The parts of the cold time, which add up to it."""
    drawn = grid("Where the cold time goes", "wall s", "share", "")
    room = max(10, width - 55)
    for part in found.parts:
        largest = Text(right(owners(part, found.wall), room), style="dim")
        drawn.add_row(Text(part.name), seconds(part.wall), share(part.wall, found.wall), largest)
    drawn.add_row(Text("cold-as-shipped", style="bold"), Text(seconds(found.wall), style="bold"))
    note = f"  The first rows are those of {found.base}; the others come on top of them."
    return Group(drawn, Text(note, style="dim"), Text())


def owners(part: Part, whole: int) -> str:
    """The distributions that have most of PART, with seconds."""
    largest = sorted(part.distributions.items(), key=lambda item: -item[1])[:LARGEST]
    return ", ".join(
        f"{' '.join(visible(name))} {wall / 1e9:.2f}"
        for name, wall in largest
        if wall >= NAMED * whole
    )
