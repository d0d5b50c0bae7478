"""The ground that a run starts from: what is in the page cache, and which bytecode there is.

*Complete* and *none* are a PYTHONPYCACHEPREFIX of our own: one that the target itself has filled
in a run that may write bytecode, and an empty one that is never written to, since all timing runs
have ``-B``. The audited trees are not touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from importaudit.measure import launch, pagecache
from importaudit.measure import machine as machines
from importaudit.measure.launch import Finished
from importaudit.measure.machine import HERE, Cached, Machine
from importaudit.plan import Condition, Plan

PREFIX = "PYTHONPYCACHEPREFIX"
EVICTED = 0.99  # of its files' bytes: what a cold run needs to be called that
PSEUDO = ("/proc/", "/sys/", "/dev/")  # no files on a disk


@dataclass
class Ground:
    """What the runs of one audit start from."""

    plan: Plan
    machine: Machine
    files: set[str]  # that the chain opens, by any bytecode
    overlay: str  # complete bytecode, once it has been filled
    empty: str
    filled: bool = False
    found: dict[str, list[Cached]] = field(default_factory=dict)  # by state, before each run
    notes: set[str] = field(default_factory=set)

    def run(self, condition: Condition) -> Finished:
        """Run the target once under CONDITION."""
        if condition.bytecode == "complete" and not self.filled:
            self.fill()
        if condition.cache == "cold" and self.plan.drop_caches:
            pagecache.drop()
        elif condition.cache == "cold":
            self.machine.evict(self.files)
        else:
            self.machine.load(self.files)
        self.found.setdefault(condition.name, []).append(self.machine.cached(self.files))
        return launch.run(
            self.plan.python,
            self.plan.target,
            machine=self.machine,
            timeout=self.plan.timeout,
            environment=self.environment(condition.bytecode),
            pause_gc=condition.pause_gc,
        )

    def environment(self, bytecode: str) -> Mapping[str, str]:
        """The target's environment."""
        if bytecode == "as-shipped":
            return self.machine.environment
        folder = self.overlay if bytecode == "complete" else self.empty
        return {**self.machine.environment, PREFIX: folder}

    def fill(self) -> None:
        """Have the target write the bytecode of everything that it imports into the overlay."""
        environment = {**self.environment("complete")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        done = launch.run(
            self.plan.python,
            self.plan.target,
            machine=self.machine,
            timeout=self.plan.timeout,
            environment=environment,
            write_bytecode=True,
        )
        if done.status:
            self.notes.add("the run that writes complete bytecode failed: some of it is missing")
        self.machine.sync()  # pages that are dirty cannot be evicted
        self.files.update(f for f in self.machine.below(self.overlay) if f.endswith(".pyc"))
        self.filled = True

    def lower_bound(self, condition: Condition) -> str:
        """Why runs under CONDITION may be faster than the name says."""
        if condition.cache != "cold":
            return ""
        reasons = []
        before = self.found.get(condition.name, [])
        stayed = [c.resident / c.bytes for c in before if c.bytes and c.resident is not None]
        if any(c.resident is None for c in before):
            reasons.append("what stayed in the page cache cannot be told there: no ctypes")
        elif stayed and max(stayed) > 1 - EVICTED:
            reasons.append(f"{max(stayed):.0%} of the files' bytes stayed in the page cache")
        if self.machine.virtual_machine():
            reasons.append("a virtual machine: its host may cache the disk")
        return "; ".join(reasons)


@contextmanager
def prepared(plan: Plan, machine: Machine, detail: Finished) -> Iterator[Ground]:
    """The ground for the runs of PLAN, after its DETAIL run; its folders are gone afterwards."""
    # On a disk, as what it stands for: what is in memory only cannot be evicted.
    overlay = machines.folder(machine, "the bytecode", on_disk=True)
    empty = machines.folder(machine, "no bytecode", on_disk=True)
    with overlay as complete, empty as none:
        yield Ground(plan, machine, files_of(detail, machine), complete, none)


def files_of(detail: Finished, machine: Machine = HERE) -> set[str]:
    """The files that a detail run opened, and the sources that it had no need to open."""
    trace = detail.main
    found = {*trace.opened, *(raw.origin for raw in trace.events.values())}
    paths = sorted(p for p in found if p.startswith("/") and not p.startswith(PSEUDO))
    return set(machine.files.existing(paths))
