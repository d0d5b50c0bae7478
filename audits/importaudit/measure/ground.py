"""The ground that a run starts from: what is in the page cache, and which bytecode there is.

*Complete* and *none* are a PYTHONPYCACHEPREFIX of our own: one that the target itself has filled
in a run that may write bytecode, and an empty one that is never written to, since all timing runs
have ``-B``. The audited trees are not touched.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from importaudit.measure import launch, pagecache, scratch
from importaudit.measure.launch import Finished
from importaudit.measure.pagecache import Cached
from importaudit.plan import Condition, Plan

PREFIX = "PYTHONPYCACHEPREFIX"
EVICTED = 0.99  # of its files' bytes: what a cold run needs to be called that
PSEUDO = ("/proc/", "/sys/", "/dev/")  # no files on a disk


@dataclass
class Ground:
    """What the runs of one audit start from."""

    plan: Plan
    files: set[str]  # that the chain opens, by any bytecode
    overlay: Path  # complete bytecode
    empty: Path
    found: dict[str, list[Cached]] = field(default_factory=dict)  # by state, before each run
    notes: set[str] = field(default_factory=set)

    def run(self, condition: Condition) -> Finished:
        """Run the target once under CONDITION."""
        if condition.bytecode == "complete" and not any(self.overlay.iterdir()):
            self.fill()
        if condition.cache == "cold" and self.plan.drop_caches:
            pagecache.drop()
        elif condition.cache == "cold":
            pagecache.evict(self.files)
        else:
            pagecache.load(self.files)
        self.found.setdefault(condition.name, []).append(pagecache.cached(self.files))
        return launch.run(
            self.plan.python,
            self.plan.target,
            timeout=self.plan.timeout,
            environment=self.environment(condition.bytecode),
            pause_gc=condition.pause_gc,
        )

    def environment(self, bytecode: str) -> Mapping[str, str]:
        """The target's environment."""
        if bytecode == "as-shipped":
            return os.environ
        folder = self.overlay if bytecode == "complete" else self.empty
        return {**os.environ, PREFIX: str(folder)}

    def fill(self) -> None:
        """Have the target write the bytecode of everything that it imports into the overlay."""
        environment = {**self.environment("complete")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        done = launch.run(
            self.plan.python,
            self.plan.target,
            timeout=self.plan.timeout,
            environment=environment,
            write_bytecode=True,
        )
        if done.status:
            self.notes.add("the run that writes complete bytecode failed: some of it is missing")
        os.sync()  # pages that are dirty cannot be evicted
        self.files.update(str(path) for path in self.overlay.rglob("*.pyc"))

    def lower_bound(self, condition: Condition) -> str:
        """Why runs under CONDITION may be faster than the name says."""
        if condition.cache != "cold":
            return ""
        reasons = []
        stayed = [c.resident / c.bytes for c in self.found.get(condition.name, []) if c.bytes]
        if stayed and max(stayed) > 1 - EVICTED:
            reasons.append(f"{max(stayed):.0%} of the files' bytes stayed in the page cache")
        if pagecache.virtual_machine():
            reasons.append("a virtual machine: its host may cache the disk")
        return "; ".join(reasons)


@contextmanager
def prepared(plan: Plan, detail: Finished) -> Iterator[Ground]:
    """The ground for the runs of PLAN, after its DETAIL run; its folders are gone afterwards."""
    # On a disk, as what it stands for: what is in memory only cannot be evicted.
    try:
        folder = Path(tempfile.mkdtemp(prefix="importaudit-bytecode-"))
    except OSError as error:
        raise scratch.no_place("the bytecode", error) from error
    overlay, empty = folder / "complete", folder / "none"
    overlay.mkdir()
    empty.mkdir()
    try:
        yield Ground(plan, files_of(detail), overlay, empty)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def files_of(detail: Finished) -> set[str]:
    """The files that a detail run opened, and the sources that it had no need to open."""
    trace = detail.main
    found = {*trace.opened, *(raw.origin for raw in trace.events.values())}
    return {
        path
        for path in found
        if path.startswith("/") and not path.startswith(PSEUDO) and Path(path).is_file()
    }
