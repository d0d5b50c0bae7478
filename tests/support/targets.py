"""Running small generated targets in real interpreters, with the probe and without it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import dedent

from importaudit.measure import build, launch, machine
from importaudit.measure.launch import Finished
from importaudit.measure.machine import HERE
from importaudit.measure.trace import Trace
from importaudit.plan import Target
from importaudit.record import Event, Process, Run

PATIENCE = 20.0  # seconds for a target; far more than any needs


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write FILES (path below ROOT: content); returns ROOT."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(dedent(content), encoding="utf-8")
    return root


@dataclass
class Traced:
    """A target that has run under the probe."""

    finished: Finished
    detail: Traced | None = None  # the same in a detail run, which knows who asked
    stolen: int = 0  # nanoseconds that a hypervisor took meanwhile, of all processors

    @property
    def trace(self) -> Trace:
        return self.finished.main

    @cached_property
    def process(self) -> Process:
        return build.process(self.trace, self.finished.spawned)

    @cached_property
    def run(self) -> Run:
        return build.run("timing", self.finished)

    @cached_property
    def by_number(self) -> dict[int, Event]:
        return {event.number: event for event in self.process.events}

    def events(self, module: str) -> list[Event]:
        return [event for event in self.process.events if event.module == module]

    def event(self, module: str) -> Event:
        """The only import of MODULE, not counting those that found it loaded."""
        found = [event for event in self.events(module) if event.outcome != "present"]
        assert len(found) == 1, (module, found, self.finished.stderr)
        return found[0]

    def importer(self, event: Event) -> str:
        return self.by_number[event.parent].module

    def place(self, event: Event) -> tuple[str, int]:
        """File (its name only) and line that asked for EVENT, of a detail run."""
        file = event.file or self.by_number[event.parent].origin
        return os.path.basename(file), event.line  # noqa: PTH119

    def children(self) -> list[Process]:
        """The other processes that were traced, by pid."""
        return [p for p in build.processes(self.finished) if p.pid != self.finished.pid]


def trace(
    python: Path,
    root: Path,
    target: str | Target,
    *,
    detail: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Traced:
    """Run TARGET (a module's name, or a Target) in ROOT under the probe."""
    before = stolen()
    with chdir(root):
        finished = launch.run(
            python,
            Target(modules=(target,)) if isinstance(target, str) else target,
            detail=detail,
            timeout=PATIENCE,
            environment=environment,
        )
    return Traced(finished, stolen=stolen() - before)


def stolen() -> int:
    """Nanoseconds that a hypervisor has taken from this machine's processors (proc_stat(5)).

    To a thread that runs, they are time in which it neither ran nor waited for a processor.
    """
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def plainly(
    python: Path,
    root: Path,
    target: str | Target,
    *,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run TARGET exactly as `trace` does, without the probe."""
    wanted = Target(modules=(target,)) if isinstance(target, str) else target
    command = [str(python), "-B", "-c", wanted.statement(str(root))]
    variables = os.environ if environment is None else environment
    with chdir(root), machine.folder(HERE, "output") as folder:
        found = HERE.execute(command, variables, folder, PATIENCE)
        return launch.left_behind(HERE, folder, found)


def assert_sound(traced: Traced) -> None:
    """The trace is whole, nothing in it is negative, and all of it adds up exactly."""
    trace = traced.trace
    assert trace.closed is not None, traced.finished.stderr
    assert trace.done is not None
    assert trace.malformed == 0
    assert_adds_up(traced.process.events)
    run = traced.run
    assert sum(cost.wall for cost in run.rows.values()) == run.wall
    assert {name: cost for name, cost in run.rows.items() if cost.wall < 0} == {}


def assert_adds_up(events: Iterable[Event]) -> None:
    """Each event is its own cells and the events inside it, in the same thread."""
    events = list(events)
    inside: dict[tuple[int, int], int] = {}
    for event in events:
        key = event.parent, event.thread
        inside[key] = inside.get(key, 0) + event.wall
    for event in events:
        cells = [n for cost in event.phases.values() for n in (cost.wall, cost.cpu, cost.waiting)]
        assert min(cells, default=0) >= 0, event
        if event.outcome != "running":
            own = sum(cost.wall for cost in event.phases.values())
            assert own + inside.get((event.number, event.thread), 0) == event.wall, event
