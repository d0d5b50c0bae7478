"""Finds every importable source below folders, and in archives, and has each judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from importaudit.files import Entry
from importaudit.measure.archives import judge_archive
from importaudit.measure.bytecode import Cache, Judge
from importaudit.record import Judged, Root, text


def judge_roots(
    roots: Iterable[Root], judging: Judge, tell: Callable[[int], None]
) -> list[tuple[Root, list[Judged]]]:
    """The verdicts for every importable source below each of ROOTS; TELL hears how many so far.

    A root inside another is looked at as a root of its own only. Hashes are not settled yet.
    """
    roots = list(roots)
    apart = {root.path.rstrip("/") or "/" for root in roots}
    result: list[tuple[Root, list[Judged]]] = []
    done = 0
    for root in roots:
        path = root.path.rstrip("/") or "/"
        found: list[Judged] = []
        if judging.files.is_dir(path):
            Walk(judging, apart, found, lambda n, base=done: tell(base + n)).folder(path)  # type: ignore[misc]
        elif path.endswith(".py"):
            found = judge_file(path, judging)
        else:
            found = judge_archive(path, judging)
        done += len(found)
        result.append((root, found))
    return result


def judge_file(path: str, judging: Judge) -> list[Judged]:
    """The verdict for one source that was named."""
    try:
        status = judging.files.stat(path)
    except OSError as error:
        judging.notes.append(f"cannot look at {text(path)}: {error.strerror or error}")
        return []
    folder, _, name = path.rpartition("/")
    return [judging.source(path, name[:-3], status, Cache(judging, folder))]


@dataclass
class Walk:
    """Goes through a tree as the finder of ``sys.path`` entries would if it looked for all.

    A file or folder counts when its name can be part of a module's; namespace packages need no
    ``__init__.py``. Links to folders are followed, but not into a folder that they are inside of.
    """

    judging: Judge
    apart: set[str]  # other roots
    found: list[Judged]
    tell: Callable[[int], None]

    def folder(self, top: str) -> None:
        """Judge everything below TOP."""
        waiting: list[tuple[str, tuple[str, ...]]] = [(top, ())]
        while waiting:
            path, links = waiting.pop()
            try:
                entries = self.judging.files.scan(path)
            except OSError as error:
                reason = error.strerror or str(error)
                self.judging.notes.append(f"cannot look into {text(path)}: {reason}")
                continue
            for entry in self.modules(path, entries):
                found = self.enter(path, links, entry)
                if found is not None:
                    waiting.append(found)
            self.tell(len(self.found))

    def modules(self, path: str, entries: Sequence[Entry]) -> list[Entry]:
        """Judge the sources among ENTRIES of the folder PATH; the folders are returned."""
        base = "" if path == "/" else path
        cache = Cache(self.judging, base)
        folders: list[Entry] = []
        sourceless: list[str] = []
        judged_source, found = self.judging.source, self.found
        for entry in entries:
            name = entry.name
            if name.endswith(".py"):
                stem = name[:-3]
                if stem.isidentifier():
                    try:
                        if entry.is_file():
                            found.append(judged_source(entry.path, stem, entry.stat(), cache))
                    except OSError as error:
                        reason = error.strerror or str(error)
                        self.judging.notes.append(f"cannot look at {text(entry.path)}: {reason}")
            elif name.endswith(".pyc"):
                sourceless.append(name)
            elif name != "__pycache__" and name.isidentifier():
                folders.append(entry)
        if sourceless:
            self.sourceless(base, sourceless, {entry.name for entry in entries})
        return folders

    def sourceless(self, path: str, names: list[str], present: set[str]) -> None:
        """Judge the bytecode files NAMES of the folder PATH that are modules themselves."""
        for name in names:
            stem = name[:-4]
            # A package, and a source, come before it (_get_supported_file_loaders).
            if stem.isidentifier() and f"{stem}.py" not in present and stem not in present:
                judged = self.judging.sourceless(f"{path}/{name}")
                if judged is not None:
                    self.found.append(judged)

    def enter(
        self, path: str, links: tuple[str, ...], entry: Entry
    ) -> tuple[str, tuple[str, ...]] | None:
        """ENTRY of the folder PATH as a folder to go on with, or None."""
        try:
            if not entry.is_dir() or entry.path in self.apart:
                return None
            if not entry.is_symlink():
                return entry.path, links
            target = self.judging.files.real(entry.path)
        except OSError:
            return None
        # Where the way down has led through: PATH, and what the links on it lead from and to.
        passed = (*links, self.judging.files.real(path))
        if around(target, passed):
            return None
        return entry.path, (*passed, target)


def around(folder: str, passed: tuple[str, ...]) -> bool:
    """Whether one of PASSED is FOLDER or inside it."""
    return any(one == folder or one.startswith(f"{folder.rstrip('/')}/") for one in passed)
