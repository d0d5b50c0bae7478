"""The chain as trees of modules: by who imported whom first, and by who alone needs whom.

In both a module's width is its own cost and that of all below it. In the first that is what its
import brought with it; in the second, the dominator tree, what nothing else would have loaded.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from importaudit.analysis.distributions import MAIN
from importaudit.analysis.graph import ROOT, ImportGraph
from importaudit.record import OWN_PHASES, Cost, Event, Record


@dataclass(frozen=True)
class Node:
    """A module: its own cost in nanoseconds, and the bytes of the file it is loaded from."""

    name: str
    distribution: str
    imported: int  # index of the module that imported it first; -1 for the root
    dominator: int  # index of its immediate dominator; -1 for the root
    wall: int
    cpu: int
    bytes: int
    phases: dict[str, int]  # wall time, of those that took any


def nodes(record: Record, graph: ImportGraph) -> list[Node]:
    """The modules of RECORD's representative run, the root first, importers before imported."""
    process = record.processes[0]
    events: dict[str, list[Event]] = defaultdict(list)
    for event in sorted(process.events, key=lambda event: event.number):
        events[event.module if event.number else ROOT].append(event)
    names = [ROOT, *(n for n in events if n != ROOT)]
    names += [name for name in graph.costs if name not in events and name != "__main__"]
    index = {name: number for number, name in enumerate(names)}
    index.setdefault("__main__", 0)
    by_number = {event.number: event for event in process.events}
    owner = {m: name for name, members in record.distributions.items() for m in members}
    dominators = graph.dominators()
    found = []
    for name in names:
        around = by_number.get(events[name][0].parent) if events[name] else None
        phases = sums(events[name])
        found.append(Node(
            name=whole(record) if name == ROOT else name,
            distribution=owner.get(name, MAIN if name == ROOT else ""),
            imported=-1 if name == ROOT else index[around.module] if around is not None else 0,
            dominator=-1 if name == ROOT else index.get(dominators.get(name, ROOT), 0),
            wall=sum(cost.wall for cost in phases.values()),
            cpu=sum(cost.cpu for cost in phases.values()),
            bytes=record.sizes.get(name, 0),
            phases={phase: cost.wall for phase, cost in phases.items() if cost.wall},
        ))  # fmt: skip
    return found


def whole(record: Record) -> str:
    """What stands for the target as a whole, which may be called like one of its modules."""
    return f"import {record.target}" if record.modules else record.target


def sums(events: list[Event]) -> dict[str, Cost]:
    """What each phase of a module's own cost took over its EVENTS."""
    found: dict[str, Cost] = {}
    for event in events:
        for phase in OWN_PHASES:
            if phase in event.phases:
                found[phase] = found.get(phase, Cost()) + event.phases[phase]
    return found
