"""Looks at a source's bytecode in the file system, without importing anything.

No pathlib and few system calls for each source: an environment has tens of thousands. For a
source with loadable bytecode they are stat, open, fstat, read and close.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from importaudit.analysis.bytecode import (
    HASH,
    HEAD,
    MISSING,
    Decision,
    absent,
    cache_folder,
    decide,
    decide_sourceless,
    rules_of,
)
from importaudit.files import Status
from importaudit.measure import recompile
from importaudit.measure.machine import HERE, Machine
from importaudit.record import Facts, Judged, Verdict

LOADABLE = Verdict.LOADABLE


class Cache:
    """The folder that the bytecode of one folder's sources is looked for in."""

    def __init__(self, judge: Judge, folder: str) -> None:
        self.rules = judge.rules
        self.files = judge.files
        self.folder = folder  # of the sources
        self.path = cache_folder(folder, judge.rules)
        self.names: list[str] | None = None
        self.obstacle: str | None = None

    def decide(self, stem: str, mtime: int, size: int) -> tuple[Decision, int]:
        """The verdict for STEM.py of MTIME and SIZE, and the size of its bytecode."""
        if not self.rules.suffix:  # cache_from_source raises NotImplementedError
            return MISSING, 0
        try:
            head, found = self.files.head(f"{self.path}/{stem}{self.rules.suffix}", HEAD)
        except FileNotFoundError:
            return absent(stem, self.listed(), self.rules), 0
        except OSError as error:  # a folder of that name, for instance
            return Decision(Verdict.MISSING, (error.strerror or "unreadable").lower()), 0
        return decide(head, mtime, size, self.rules), found

    def listed(self) -> list[str]:
        """The names in the folder, read once."""
        if self.names is None:
            try:
                self.names = self.files.names(self.path)
            except OSError:
                self.names = []
        return self.names

    def unwritable(self) -> str:
        """Why no bytecode can be written here; "" when it can."""
        if self.obstacle is None:
            if not self.rules.suffix:
                self.obstacle = "no cache tag"
            else:
                self.obstacle = self.files.obstacle(self.path)
        return self.obstacle


@dataclass
class Judge:
    """Judges sources by the facts of an interpreter.

    ``notes`` collects what could not be looked at. After the last source, ``settle`` compares the
    hashes that PEP 552 has compared: until then these sources count as loadable.
    """

    facts: Facts
    machine: Machine = HERE
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rules = rules_of(self.facts)
        self.files = self.machine.files
        self.open_questions: list[tuple[Judged, Cache]] = []

    def source(self, path: str, stem: str, status: Status, cache: Cache) -> Judged:
        """The verdict for the source at PATH, STEM.py, whose stat is STATUS."""
        # As importlib: towards zero, not down.
        decision, bytecode = cache.decide(stem, int(status.st_mtime), status.st_size)
        judged = Judged(path, decision.verdict, decision.reason, status.st_size, bytecode)
        if decision.check_hash:
            self.open_questions.append((judged, cache))
        elif decision.verdict is not LOADABLE:
            seal(judged, cache)
        return judged

    def sourceless(self, path: str) -> Judged | None:
        """The verdict for bytecode at PATH that is itself the module."""
        try:
            head, size = self.files.head(path, HEAD)
        except OSError:
            return None
        decision = decide_sourceless(head, self.rules)
        return Judged(path, decision.verdict, decision.reason, 0, size)

    def settle(self) -> None:
        """Compare the hashes that are to be compared."""
        asked, self.open_questions = self.open_questions, []
        hashes = recompile.hashes([one.source for one, _ in asked], self.facts, self.machine)
        for (judged, cache), found in zip(asked, hashes, strict=True):
            if found is not None and found == embedded_hash(judged.source, cache):
                continue
            judged.verdict, judged.reason = HASH.verdict, HASH.reason
            seal(judged, cache)


def seal(judged: Judged, cache: Cache) -> None:
    """Tell what is not usable apart by whether an import could mend it."""
    if judged.verdict is Verdict.DAMAGED:  # the import fails before it could
        return
    obstacle = cache.unwritable()
    if obstacle:
        before = judged.verdict.value
        reason = f"{before}: {judged.reason}" if judged.reason else before
        judged.verdict, judged.reason = Verdict.UNCACHEABLE, f"{reason}; {obstacle}"


def embedded_hash(source: str, cache: Cache) -> bytes:
    """The hash of the source that the bytecode names."""
    stem = source.rpartition("/")[2].removesuffix(".py")
    try:
        return cache.files.head(f"{cache.path}/{stem}{cache.rules.suffix}", 16)[0][8:]
    except OSError:
        return b""


def judge(sources: Iterable[str], facts: Facts, machine: Machine = HERE) -> list[Judged]:
    """The verdicts for SOURCES, absolute paths of .py files as they are imported, in order.

    What is no .py file, or not there (as what is inside an archive), is left out.
    """
    judging = Judge(facts, machine)
    caches: dict[str, Cache] = {}
    found: list[Judged] = []
    for path in sources:
        try:
            status = machine.files.stat(path)
        except OSError:
            continue
        if not path.endswith(".py"):
            continue
        folder, _, name = path.rpartition("/")
        cache = caches.get(folder) or caches.setdefault(folder, Cache(judging, folder))
        found.append(judging.source(path, name.removesuffix(".py"), status, cache))
    judging.settle()
    return found
