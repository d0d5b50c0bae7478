"""Two Records of an edited package, by hand, and how what differs is drawn."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console
from support.records import tiny

from importaudit.analysis.difference import Difference
from importaudit.record import Cost, Event, Process, Record, Run, Spread, State
from importaudit.views import difference as view

MS = 1_000_000
COLD = "cold-as-shipped"


def run(wall: float, cpu: float, state: str = "", **more: Any) -> Run:
    """A timing run, milliseconds."""
    return Run("timing", round(wall * MS), round(cpu * MS), {}, {}, 4, 3, 0, state=state, **more)


def loaded(number: int, name: str, own: int, **more: Any) -> Event:
    phases = {"body": Cost(own * MS, own * MS, 0)}
    return Event(number, 0, name, start=number, wall=own * MS, phases=phases, **more)


def flat(*milliseconds: float) -> Spread:
    """A spread, the same by both clocks."""
    values = [round(value * MS) for value in milliseconds]
    return Spread(values, values)


def before() -> Record:
    """Two states, three modules, one of them made by hand."""
    return tiny(
        runs=[
            run(2000, 2000), run(500, 480), run(505, 484), run(495, 478),
            run(900, 500, COLD, disk=7_000_000, files=12, compiled=3),
            run(1100, 505, COLD, disk=7_000_000, files=12, compiled=3),
            run(1000, 495, COLD, disk=7_000_000, files=12, compiled=3),
        ],
        representative=1,
        states=[State(COLD, "cold", "as-shipped")],
        processes=[Process(7, events=[
            Event(0, -1, "__main__", start=0, wall=400 * MS, loader=""),
            loaded(1, "slow", 100), loaded(2, "steady", 50), loaded(3, "old", 30),
            loaded(4, "absent", 0, outcome="failed"),
        ], by_hand=["made"], finished=True)],
        spreads={"slow": flat(100, 99, 102), "steady": flat(50, 48, 53), "old": flat(30, 29, 31)},
        distributions={"tools 1.0": ["slow", "old"], "made 2": ["made"]},
    )  # fmt: skip


def after() -> Record:
    """The same with one module slower, one gone and two new, and half the files from disk."""
    record = before()
    record.created = "2026-01-03T03:04:05+00:00"
    record.runs[0] = run(700, 690)
    record.runs[1:4] = [run(705, 680), run(700, 684), run(695, 678)]
    for cold in record.runs[4:]:
        cold.disk, cold.compiled, cold.modules = 3_500_000, 0, 4
    record.processes[0].events[3:4] = [loaded(3, "fresh", 20), loaded(5, "fresh.sub", 25)]
    record.spreads |= {"slow": flat(300, 298, 305), "steady": flat(52, 49, 55)}
    record.distributions = {"tools 1.0": ["slow"], "fresh 0.1": ["fresh", "fresh.sub"]}
    record.runs[0].kind = "detail"
    return record


def earlier() -> Record:
    record = before()
    record.runs[0].kind = "detail"
    return record


def render(found: Difference, width: int, top: int = 15) -> str:
    stream = StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    view.show(found, console, top)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
