"""From what one execution left behind to the parts of a Record. Nothing runs here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from importaudit.analysis.statistics import spread
from importaudit.measure.launch import Finished
from importaudit.measure.trace import RawEvent, Statement, Trace
from importaudit.record import NOTHING, Cost, Edge, Event, HotLine, Process, Run, Spread

ROOT = "__main__"

# Rows of the wall time, in the order in which they are shown; the key is the phase, or a span
# of its own.
ROWS = (
    "start",
    "import",
    "find",
    "read",
    "compile",
    "unmarshal",
    "dlopen",
    "gc",
    "body",
    "probe",
    "shutdown",
    "unattributed",
)


def event(raw: RawEvent, trace: Trace, epoch: int) -> Event:
    """One import; times from EPOCH, when the process was spawned."""
    main = trace.root[0] if trace.root else raw.thread
    around = trace.events.get(raw.parent)
    return Event(
        number=raw.number,
        parent=raw.parent,
        module=raw.name,
        outcome=raw.outcome,
        start=raw.start - epoch,
        wall=raw.end - raw.start if raw.end else 0,
        phases=raw.phases,
        file="" if around is not None and around.origin == raw.file else raw.file,
        line=raw.line,
        thread=0 if raw.thread == main else raw.thread,
        origin=raw.origin,
        loader=raw.loader,
        error=raw.error,
        message=raw.message,
    )


def locate(trace: Trace, detail: Trace) -> None:
    """Give the imports of TRACE the asking code that the same imports of DETAIL have."""
    known: dict[tuple[str, int], RawEvent] = {}
    seen: Counter[str] = Counter()
    for raw in detail.events.values():
        known[raw.name, seen[raw.name]] = raw
        seen[raw.name] += 1
    seen.clear()
    for raw in trace.events.values():
        twin = known.get((raw.name, seen[raw.name]))
        seen[raw.name] += 1
        if twin is not None and not raw.file:
            raw.file, raw.line = twin.file, twin.line


def process(trace: Trace, epoch: int) -> Process:
    """One process of a run."""
    events = [event(raw, trace, epoch) for raw in trace.events.values()]
    created = {e.module for e in events} | set(trace.before)
    return Process(
        pid=trace.pid,
        parent=trace.parent,
        started_by=trace.facts.get("started_by", "spawn" if trace.parent else ""),
        events=events,
        by_hand=[name for name in trace.after if name not in created],
        threads=[thread for thread, _ in trace.running],
        collections=trace.collections,
        finished=trace.closed is not None,
    )


def processes(finished: Finished) -> list[Process]:
    """All traced processes of a run, the target first, then by pid."""
    order = sorted(finished.traces, key=lambda t: (t.pid != finished.pid, t.pid))
    if not order or order[0].pid != finished.pid:
        order.insert(0, finished.main)
    return [process(trace, finished.spawned) for trace in order]


def run(kind: str, finished: Finished, state: str = "") -> Run:
    """The sums of one execution."""
    trace = finished.main
    imports = list(trace.events.values())
    return Run(
        kind=kind,
        wall=finished.exited - finished.spawned,
        cpu=finished.cpu,
        rows=rows(finished),
        apart=apart(finished),
        imports=len(trace.events) - 1 if trace.events else 0,
        modules=sum(e.outcome == "loaded" for e in trace.events.values() if e.number),
        exit=finished.status,
        timed_out=finished.timed_out,
        state=state,
        disk=finished.disk,
        faults=finished.faults,
        files=sum(raw.costs.opened for raw in imports),
        compiled=sum(raw.costs.compiled > 0 for raw in imports),
    )


def sources(finished: Finished) -> int:
    """How many modules of the chain are loaded from source, by way of bytecode or not."""
    events = finished.main.events.values()
    return sum(e.outcome == "loaded" and e.origin.endswith(".py") for e in events)


def rows(finished: Finished) -> dict[str, Cost]:
    """What the main thread's wall time consists of; the last row is what nobody measured.

    The phases are sums of measured intervals. Interpreter start and shutdown are the spans from
    the parent's clock to the guest's and back; both read CLOCK_MONOTONIC.
    """
    trace = finished.main
    found: dict[str, Cost] = {}
    if trace.root is not None:
        thread, began, cpu, waited = trace.root
        wall0, cpu0 = trace.clocks
        found["start"] = Cost(wall0 - finished.spawned, cpu0, waited)
        found["probe"] = Cost(began - wall0, cpu - cpu0)
        for raw in trace.events.values():
            if raw.thread == thread:
                for phase, cost in raw.phases.items():
                    found[phase] = found.get(phase, NOTHING) + cost
    if trace.closed is not None and trace.done is not None:
        wall, process_cpu, thread_cpu = trace.closed
        done, done_cpu, waited = trace.done
        found["probe"] += Cost(wall - done, thread_cpu - done_cpu)
        late = finished.waited - waited if finished.waited is not None else 0
        rest = finished.cpu - finished.children_cpu - process_cpu
        found["shutdown"] = Cost(finished.exited - wall, rest, late)
    total = Cost(finished.exited - finished.spawned, main_cpu(finished), finished.waited or 0)
    left = total
    for cost in found.values():
        left = Cost(left.wall - cost.wall, left.cpu - cost.cpu, left.waiting - cost.waiting)
    found["unattributed"] = left
    return {name: found[name] for name in ROWS if name in found}


def main_cpu(finished: Finished) -> int:
    """CPU of the main thread: all of the process's that is not known to be another's."""
    return finished.cpu - sum(apart(finished).values())


def apart(finished: Finished) -> dict[str, int]:
    """CPU spent beside the main thread, which its wall time does not show."""
    found = {"children": finished.children_cpu} if finished.children_cpu else {}
    if finished.main.closed is not None:
        _, process_cpu, thread_cpu = finished.main.closed
        found["threads"] = process_cpu - thread_cpu
    return found


def spreads(timed: Sequence[Process]) -> dict[str, Spread]:
    """Self time of each module over the timing runs: median, least and most."""
    series: dict[str, list[Cost]] = defaultdict(list)
    for one in timed:
        own: dict[str, Cost] = defaultdict(lambda: NOTHING)
        for found in one.events:
            own[found.module] += found.own
        for module, cost in own.items():
            series[module].append(cost)
    return {
        module: Spread(three([c.wall for c in costs]), three([c.cpu for c in costs]))
        for module, costs in series.items()
    }


def three(values: Sequence[int]) -> list[int]:
    found = spread(values)
    return [round(found.median), round(found.least), round(found.most)]


def edges(trace: Trace, modules: Iterable[str]) -> dict[str, list[Edge]]:
    """Who imports whom, from the statements that a detail run saw."""
    known = set(modules)
    # One that found its module loaded (3.10 takes the lock for these too) knows no origin.
    origins = {raw.name: raw.origin for raw in trace.events.values() if raw.origin}
    found: dict[str, dict[str, Edge]] = defaultdict(dict)
    for statement in trace.statements:
        importer = name_of(trace, statement.number)
        own = statement.file == origins.get(importer)
        line = statement.line if own else f"{statement.file}:{statement.line}"
        for module in imported(statement, known):
            edge = found[importer].setdefault(module, Edge(module, line, 0, statement.names))
            edge.count += statement.count
    for number, module in trace.by_hand:
        found[name_of(trace, number)].setdefault(module, Edge(module))
    return {importer: list(to.values()) for importer, to in found.items()}


def name_of(trace: Trace, number: int) -> str:
    """The module of import NUMBER."""
    raw = trace.events.get(number)
    return raw.name if raw is not None else ROOT


def imported(statement: Statement, known: set[str]) -> list[str]:
    """The modules that STATEMENT imports: the one it names, and submodules of its from-list."""
    name = absolute(statement)
    parts = statement.names.split(",") if statement.names else []
    return [module for module in (name, *(f"{name}.{part}" for part in parts)) if module in known]


def absolute(statement: Statement) -> str:
    """The absolute name of a relative import (``importlib._bootstrap._resolve_name``)."""
    name = statement.name.lstrip(".")
    level = len(statement.name) - len(name)
    if not level:
        return name
    base = statement.package.rsplit(".", level - 1)[0]
    return f"{base}.{name}" if name else base


def hot_lines(trace: Trace) -> list[HotLine]:
    """Sampled lines of the bodies, most samples first."""
    found: dict[tuple[str, str, int], int] = defaultdict(int)
    for number, line, took in trace.samples:
        raw = trace.events.get(number)
        if raw is not None:
            found[raw.name, raw.origin, line] += took
    lines = [HotLine(module, file, line, took) for (module, file, line), took in found.items()]
    return sorted(lines, key=lambda hot: -hot.sampled)
