"""What differs between two Records, on one screen. Takes a Difference, nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from importaudit.analysis.difference import (
    Contrast,
    Difference,
    Module,
    Mover,
    Side,
    StateRow,
    Times,
    by_distribution,
)
from importaudit.analysis.statistics import Verdict
from importaudit.views.figures import WIDE, fit, grid, middle, number, seconds, visible

WORDS = {
    Verdict.MORE: "more",
    Verdict.LESS: "less",
    Verdict.NO_DIFFERENCE: "within noise",
    Verdict.UNKNOWN: "within noise, wide",
}
STYLES = {Verdict.MORE: "bold red", Verdict.LESS: "bold green"}
TOO_FEW = "too few runs"
INTERVAL = "95 % interval"


def show(found: Difference, console: Console, top: int) -> None:
    """Print FOUND, with TOP rows a table."""
    for part in report(found, console.width, top):
        console.print(part, soft_wrap=False)


def report(found: Difference, width: int, top: int) -> list[RenderableType]:
    """The parts of the report, in order."""
    parts = [side("A", found.a), side("B", found.b), Text()]
    parts += conditions(found)
    parts += [state(row, width) for row in found.states]
    parts += missing("A", found.only_a) + missing("B", found.only_b)
    if not found.not_comparable:
        parts.append(movers("Largest movers, wall", found.movers_wall, width, top))
        parts.append(movers("Largest movers, CPU", found.movers_cpu, width, top))
    parts.append(modules("New in B", found.new, width, top))
    parts.append(modules("Gone, in A alone", found.gone, width, top))
    if not found.not_comparable:
        parts.append(legend())
    return parts


# --- parts ---------------------------------------------------------------------------------


def side(name: str, what: Side) -> RenderableType:
    """What A or B is."""
    text = Text(f"{name}  ", style="dim")
    text.append(one_line(what.target), style="bold not dim")
    text.append(f"\n   {one_line(what.executable) or 'unknown interpreter'}")
    text.append(f"  Python {one_line(what.python).split(' ')[0] or '?'}")
    text.append(f"\n   {one_line(what.created)}, importaudit {one_line(what.tool)}")
    if what.failure:
        text.append(f"\n   failed: {one_line(what.failure)}", style="bold red not dim")
    return text


def conditions(found: Difference) -> list[RenderableType]:
    """What makes times incomparable, and what differs beside it."""
    parts: list[RenderableType] = [
        Text(f"not comparable: {contrast(one)}", style="bold yellow")
        for one in found.not_comparable
    ]
    if parts:
        parts.append(Text("So times are shown and not judged, and modules have no movers."))
    parts += [Text(f"also differs: {contrast(one)}", style="dim") for one in found.also]
    return [*parts, Text()] if parts else []


def contrast(one: Contrast) -> str:
    return one_line(f"{one.what}: {one.a} (A), {one.b} (B)")


def state(row: StateRow, width: int) -> RenderableType:
    """Wall and CPU time of one state."""
    wide = width >= WIDE
    figures = ["A s", "B s", "B / A", *([INTERVAL] if wide else [])]
    table = grid(one_line(row.state), *figures, "")
    for name, times in (("wall", row.wall), ("CPU", row.cpu)):
        cells = [seconds(times.a.median), seconds(times.b.median), ratio(times.ratio)]
        if wide:
            cells.append(interval(times))
        table.add_row(name, *cells, judgement(times))
    parts: list[RenderableType] = [table]
    if row.counts:
        text = ", ".join(f"{c.what} {thousands(c.a)} → {thousands(c.b)}" for c in row.counts)
        parts.append(Text(f"  {text}"))
    for name, bound in (("A", row.bound_a), ("B", row.bound_b)):
        if bound:
            parts.append(Text(f"  a lower bound in {name}: {one_line(bound)}", style="yellow"))
    if not wide:
        parts.append(Text(f"  from {WIDE} columns on: the {INTERVAL}", style="dim"))
    return Group(*parts, Text())


def missing(name: str, states: Sequence[str]) -> list[RenderableType]:
    """The states that only NAME was run in."""
    other = "B" if name == "A" else "A"
    return [
        Text(
            f"not comparable: state {one_line(one)}: run (A), not run (B)\n"
            if other == "B"
            else f"not comparable: state {one_line(one)}: not run (A), run (B)\n",
            style="bold yellow",
        )
        for one in states
    ]


def movers(title: str, found: Sequence[Mover], width: int, top: int) -> RenderableType:
    """The TOP modules by the change of their self time."""
    if not found:
        return Text(f"{title}: none, no module's self time changed.\n")
    shown = found[:top]
    table = grid(title, "A ms", "B ms", "B - A", "")
    for mover in shown:
        table.add_row(
            middle(one_line(mover.module), width - 50),
            milliseconds(mover.a.median),
            milliseconds(mover.b.median),
            f"{mover.difference / 1e6:+,.1f}",
            mover_judgement(mover),
        )
    return Group(table, *rest(len(found), top), Text())


def modules(title: str, found: Sequence[Module], width: int, top: int) -> RenderableType:
    """The TOP modules that only one side has, and whose they are."""
    if not found:
        return Text(f"{title}: no module.\n")
    wall, cpu = sum(one.wall for one in found), sum(one.cpu for one in found)
    total = Text(f"{title}: ", style="bold")
    total.append(
        f"{number(len(found), 'module')}, {milliseconds(wall)} ms of self time,"
        f" {milliseconds(cpu)} of CPU.",
        style="not bold",
    )
    table = grid("  module", "self ms", "CPU ms", "")
    names = [one_line(one.module) for one in found[:top]]
    owners = [one_line(one.distribution) for one in found[:top]]
    name_room, owner_room = fit(width - 26, ["  module", *names], owners)
    for one, name, owner in zip(found, names, owners, strict=False):
        table.add_row(
            f"  {middle(name, name_room)}",
            milliseconds(one.wall),
            milliseconds(one.cpu),
            Text(middle(owner, owner_room), style="dim"),
        )
    return Group(total, whose(found, top), table, *rest(len(found), top), Text())


def whose(found: Sequence[Module], top: int) -> RenderableType:
    """How many of the modules each distribution has."""
    counted = by_distribution(found)
    text = ", ".join(f"{count:,} of {one_line(name) or 'unknown'}" for name, count in counted[:top])
    left = len(counted) - top
    more = f", … {number(left, 'distribution')} more" if left > 0 else ""
    return Text(f"  {text}{more}", style="dim")


def rest(count: int, top: int) -> list[RenderableType]:
    """What says that rows were left out."""
    if count <= top:
        return []
    note = f"  … {count - top:,} more: --top {count}, or --json FILE for all"
    return [Text(note, style="dim")]


def legend() -> RenderableType:
    """What the words mean."""
    return Text(
        "Medians. more, less: the 95 % interval of B / A leaves 1 out. within noise: it does not;"
        " wide: it reaches beyond 5 % more or less, so such a difference may hide in it. Modules"
        " are within noise where the ranges of their self times overlap. Two Records differ as well"
        " by what the machine was doing at the time.",
        style="dim",
    )


# --- figures -------------------------------------------------------------------------------


def judgement(times: Times) -> Text:
    """The verdict in words."""
    if times.verdict is None:
        return Text("not judged", style="dim")
    if times.interval is None:
        return Text(TOO_FEW, style="dim")
    return Text(WORDS[times.verdict], style=STYLES.get(times.verdict, ""))


def mover_judgement(mover: Mover) -> Text:
    if mover.verdict is Verdict.UNKNOWN:
        return Text(TOO_FEW, style="dim")
    return Text(WORDS[mover.verdict], style=STYLES.get(mover.verdict, ""))


def ratio(value: float | None) -> str:
    return f"{value:.2f}" if value is not None else ""


def interval(times: Times) -> str:
    found = times.interval
    return f"{found.low:.2f} to {found.high:.2f}" if found is not None else ""


def milliseconds(nanoseconds: float) -> str:
    """Milliseconds with one decimal; what rounds to nothing has no sign."""
    return f"{round(nanoseconds / 1e6, 1) + 0.0:,.1f}"


def thousands(count: str) -> str:
    return f"{int(count):,}"


def one_line(text: str) -> str:
    """TEXT without what would steer a terminal, on one line."""
    return " ".join(visible(text))
