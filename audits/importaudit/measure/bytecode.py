"""Looks at a source's bytecode in the file system, without importing anything.

No pathlib and few system calls for each source: an environment has tens of thousands. For a
source with loadable bytecode they are stat, open, fstat, read and close.
"""

from __future__ import annotations

import os
import stat
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
from importaudit.measure import recompile
from importaudit.record import Facts, Judged, Verdict, text

LOADABLE = Verdict.LOADABLE
READ = os.O_RDONLY | os.O_CLOEXEC


class Cache:
    """The folder that the bytecode of one folder's sources is looked for in."""

    def __init__(self, judge: Judge, folder: str) -> None:
        self.rules = judge.rules
        self.folder = folder  # of the sources
        self.path = cache_folder(folder, judge.rules)
        self.names: list[str] | None = None
        self.obstacle: str | None = None

    def decide(self, stem: str, mtime: int, size: int) -> tuple[Decision, int]:
        """The verdict for STEM.py of MTIME and SIZE, and the size of its bytecode."""
        if not self.rules.suffix:  # cache_from_source raises NotImplementedError
            return MISSING, 0
        try:
            handle = os.open(f"{self.path}/{stem}{self.rules.suffix}", READ)
        except FileNotFoundError:
            return absent(stem, self.listed(), self.rules), 0
        except OSError as error:
            reason = (error.strerror or "unreadable").lower()
            return Decision(Verdict.MISSING, reason), 0
        try:
            head = os.read(handle, HEAD)
            found = os.fstat(handle).st_size
        except OSError as error:  # a folder of that name
            return Decision(Verdict.MISSING, (error.strerror or "unreadable").lower()), 0
        finally:
            os.close(handle)
        return decide(head, mtime, size, self.rules), found

    def listed(self) -> list[str]:
        """The names in the folder, read once."""
        if self.names is None:
            try:
                self.names = os.listdir(self.path)  # noqa: PTH208
            except OSError:
                self.names = []
        return self.names

    def unwritable(self) -> str:
        """Why no bytecode can be written here; "" when it can."""
        if self.obstacle is None:
            if not self.rules.suffix:
                self.obstacle = "no cache tag"
            else:
                self.obstacle = obstacle(self.path)
        return self.obstacle


def obstacle(folder: str) -> str:
    """Why importlib could not create a file in FOLDER, making it if need be; "" when it could.

    By the mount and the permission bits. For root nothing is forbidden but by the mount; a folder
    that nobody may write to has been sealed all the same, and counts as that.
    """
    while True:
        try:
            status = os.stat(folder)  # noqa: PTH116
            break
        except FileNotFoundError:
            folder = folder.rpartition("/")[0] or "/"
        except OSError as error:
            return (error.strerror or "unreachable").lower()
    if not stat.S_ISDIR(status.st_mode):
        return f"{text(folder)} is not a folder"
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "read-only file system"
    if not status.st_mode & 0o222 or not os.access(folder, os.W_OK | os.X_OK):
        return "folder not writable"
    return ""


@dataclass
class Judge:
    """Judges sources by the facts of an interpreter.

    ``notes`` collects what could not be looked at. After the last source, ``settle`` compares the
    hashes that PEP 552 has compared: until then these sources count as loadable.
    """

    facts: Facts
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rules = rules_of(self.facts)
        self.open_questions: list[tuple[Judged, Cache]] = []

    def source(self, path: str, stem: str, status: os.stat_result, cache: Cache) -> Judged:
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
            handle = os.open(path, READ)
        except OSError:
            return None
        try:
            head, size = os.read(handle, HEAD), os.fstat(handle).st_size
        finally:
            os.close(handle)
        decision = decide_sourceless(head, self.rules)
        return Judged(path, decision.verdict, decision.reason, 0, size)

    def settle(self) -> None:
        """Compare the hashes that are to be compared."""
        asked, self.open_questions = self.open_questions, []
        hashes = recompile.hashes([judged.source for judged, _ in asked], self.facts)
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
        with open(f"{cache.path}/{stem}{cache.rules.suffix}", "rb") as file:  # noqa: PTH123
            return file.read(16)[8:]
    except OSError:
        return b""


def judge(sources: Iterable[str], facts: Facts) -> list[Judged]:
    """The verdicts for SOURCES, absolute paths of .py files as they are imported, in order.

    What is no .py file, or not there (as what is inside an archive), is left out.
    """
    judging = Judge(facts)
    caches: dict[str, Cache] = {}
    found: list[Judged] = []
    for path in sources:
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError:
            continue
        if not path.endswith(".py"):
            continue
        folder, _, name = path.rpartition("/")
        cache = caches.get(folder) or caches.setdefault(folder, Cache(judging, folder))
        found.append(judging.source(path, name.removesuffix(".py"), status, cache))
    judging.settle()
    return found
