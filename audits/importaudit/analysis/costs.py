"""The tables of the report, computed from a Record alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from importaudit.analysis.graph import ROOT, ImportGraph
from importaudit.record import NOTHING, Cost, Event, Link, Process, Record


@dataclass(frozen=True)
class Row:
    """What one module, or one distribution, costs; nanoseconds of wall time unless named."""

    name: str
    own: Cost
    exclusive: int
    cumulative: int
    below: int  # modules first loaded inside it
    modules: int
    first: Link | None


@dataclass
class Tree:
    """The imports of one process, by who was running when."""

    events: dict[int, Event]
    children: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, process: Process) -> Tree:
        tree = cls({event.number: event for event in process.events})
        for event in process.events:
            if event.number:
                tree.children[event.parent].append(event.number)
        return tree

    def loaded_below(self) -> dict[int, int]:
        """For each import, how many modules were loaded inside it, itself not counted."""
        below: dict[int, int] = defaultdict(int)
        for number in sorted(self.events, reverse=True):  # children have higher numbers
            if number:
                event = self.events[number]
                below[event.parent] += below[number] + (event.outcome == "loaded")
        return below


def graph_of(record: Record) -> ImportGraph:
    """The graph of RECORD: own costs of the representative run, edges of every run."""
    process = record.processes[0]
    costs: dict[str, int] = defaultdict(int)
    for event in process.events:  # failed ones too: what they imported is below them
        costs[event.module] += event.own.wall
    for module in process.by_hand:
        costs.setdefault(module, 0)
    names = {event.number: event.module for event in process.events}
    edges = [(names.get(event.parent, ROOT), event.module) for event in process.events]
    edges += [(importer, edge.module) for importer, to in record.edges.items() for edge in to]
    return ImportGraph.build(costs, edges)


def by_module(record: Record, graph: ImportGraph) -> list[Row]:
    """One row a module, largest exclusive cost first."""
    process = record.processes[0]
    tree = Tree.of(process)
    below = tree.loaded_below()
    exclusive = graph.exclusive()
    events: dict[str, list[Event]] = defaultdict(list)
    for event in process.events:
        if event.outcome in ("loaded", "present", "running"):
            events[event.module].append(event)
    rows = [
        Row(
            name=module,
            own=sum((e.own for e in found), NOTHING),
            exclusive=exclusive.get(module, 0),
            cumulative=sum(e.wall for e in outermost(found, tree)),
            below=sum(below[e.number] for e in outermost(found, tree)),
            modules=1,
            first=first_link(found, tree.events),
        )
        for module, found in events.items()
    ]
    return sorted(rows, key=lambda row: (-row.exclusive, row.name))


def by_distribution(record: Record, graph: ImportGraph) -> list[Row]:
    """One row a distribution, largest exclusive cost first."""
    process = record.processes[0]
    tree = Tree.of(process)
    owner = {m: name for name, modules in record.distributions.items() for m in modules}
    events: dict[str, list[Event]] = defaultdict(list)
    for event in process.events:
        if event.outcome in ("loaded", "present", "running") and event.module in owner:
            events[owner[event.module]].append(event)
    below = tree.loaded_below()
    rows = []
    for name, found in events.items():
        top = outermost(found, tree)
        modules = {e.module for e in found}
        rows.append(
            Row(
                name=name,
                own=sum((e.own for e in found), NOTHING),
                exclusive=graph.exclusive_of(modules),
                cumulative=sum(e.wall for e in top),
                below=sum(below[e.number] for e in top),
                modules=len(modules),
                first=first_link(found, tree.events),
            )
        )
    return sorted(rows, key=lambda row: (-row.exclusive, row.name))


def outermost(events: list[Event], tree: Tree) -> list[Event]:
    """Those of EVENTS that lie in no other of them, so that nothing is counted twice."""
    numbers = {event.number for event in events}
    return [event for event in events if not inside(event, numbers, tree)]


def inside(event: Event, numbers: set[int], tree: Tree) -> bool:
    """Whether EVENT lies below an event of NUMBERS."""
    above = tree.events.get(event.parent)
    while above is not None:
        if above.number in numbers:
            return True
        above = tree.events.get(above.parent) if above.number else None
    return False


def first_link(events: list[Event], all_events: dict[int, Event]) -> Link | None:
    """The line that imported first, of those that are known."""
    link = asked_by(min(events, key=lambda event: event.start), all_events)
    return link if link.file else None


def asked_by(event: Event, events: dict[int, Event]) -> Link:
    """EVENT's module, and the line that asked for it."""
    around = events.get(event.parent)
    file = event.file or (around.origin if around is not None else "")
    return Link(event.module, file, event.line)


def chain(events: dict[int, Event], number: int) -> list[Link]:
    """From the root to import NUMBER, each with the line that asked for it."""
    links: list[Link] = []
    event = events.get(number)
    while event is not None and event.number:
        links.append(asked_by(event, events))
        event = events.get(event.parent)
    return links[::-1]
