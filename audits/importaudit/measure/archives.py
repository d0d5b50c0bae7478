"""Sources inside zip archives on ``sys.path``, judged as zipimport would (Lib/zipimport.py).

It looks for ``name.pyc`` beside ``name.py``, whatever the optimisation level, allows one second of
difference in mtime, and never writes.
"""

from __future__ import annotations

import time
import zipfile
from dataclasses import dataclass, field

from importaudit.analysis.bytecode import (
    CHECKED,
    DAMAGED,
    HASH,
    HEAD,
    LOADABLE,
    MISSING,
    UNCHECKED,
    Decision,
    after_header,
    classify,
    decide_sourceless,
)
from importaudit.measure.bytecode import Judge
from importaudit.measure.recompile import hash_of
from importaudit.record import Judged, Verdict, text

INSIDE = "inside a zip archive"


def judge_archive(path: str, judging: Judge) -> list[Judged]:
    """The verdicts for the importable modules in the archive PATH, or in a folder inside one.

    What is not there is nothing (``python311.zip`` never is); what cannot be read is noted.
    """
    archive, inner = path, ""
    while archive and not judging.files.existing([archive]):
        archive, _, last = archive.rpartition("/")
        inner = f"{last}/{inner}"
    if not archive:
        return []
    try:
        with judging.files.open(archive) as file:
            if not zipfile.is_zipfile(file):
                return []
            judge = Archive(zipfile.ZipFile(file), archive, judging)
            return [judge.module(info) for info in judge.members(inner)]
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        judging.notes.append(f"cannot look into {text(archive)}: {error}")
        return []


@dataclass
class Archive:
    """An open archive, and the interpreter that would import from it."""

    archive: zipfile.ZipFile
    path: str
    judging: Judge
    names: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.rules = self.judging.rules
        self.names = set(self.archive.namelist())

    def members(self, inner: str) -> list[zipfile.ZipInfo]:
        """The sources below INNER (a folder with its slash, or ""), and bytecode without one."""
        return [
            info
            for info in self.archive.infolist()
            if info.filename.startswith(inner)
            and self.is_module(info.filename)
            and all(
                part.isidentifier() for part in info.filename[len(inner) :].split(".")[0].split("/")
            )
        ]

    def is_module(self, name: str) -> bool:
        return name.endswith(".py") or (name.endswith(".pyc") and name[:-1] not in self.names)

    def module(self, info: zipfile.ZipInfo) -> Judged:
        """The verdict for one module."""
        place, size, bytecode = f"{self.path}/{info.filename}", info.file_size, 0
        if info.filename.endswith(".pyc"):
            decision = decide_sourceless(self.head(info), self.rules)
            return Judged(place, decision.verdict, decision.reason, 0, size)
        decision = MISSING
        if f"{info.filename}c" in self.names:
            beside = self.archive.getinfo(f"{info.filename}c")
            decision, bytecode = self.decide(self.head(beside), info), beside.file_size
        verdict, reason = decision.verdict, decision.reason
        if verdict not in (Verdict.LOADABLE, Verdict.DAMAGED):
            reason = f"{verdict.value}: {reason}" if reason else verdict.value
            verdict, reason = Verdict.UNCACHEABLE, f"{reason}; {INSIDE}"
        return Judged(place, verdict, reason, size, bytecode)

    def head(self, info: zipfile.ZipInfo) -> bytes:
        with self.archive.open(info) as file:
            return file.read(HEAD)

    def decide(self, head: bytes, source: zipfile.ZipInfo) -> Decision:
        """The verdict by a header (_unmarshal_code, _eq_mtime)."""
        refused = classify(head, self.rules)
        if refused is not None:
            # EOFError is not caught here.
            cut = head[:4] == self.rules.magic and len(head) < 16
            return DAMAGED if cut else refused
        if not head[4] & 1:
            return after_header(head, self.compared(head, source))
        checked = bool(head[4] & 2) or self.rules.check_hash == "always"
        if not checked or self.rules.check_hash == "never":
            return after_header(head, UNCHECKED)
        found = hash_of(self.archive.read(source), self.judging.facts, self.judging.machine)
        if found != head[8:16]:
            return HASH
        return after_header(head, Decision(Verdict.LOADABLE, CHECKED.reason))

    def compared(self, head: bytes, source: zipfile.ZipInfo) -> Decision:
        """The verdict by the time stamp: local time in the archive."""
        mtime = int(time.mktime((*source.date_time, 0, 0, -1)))
        if abs(int.from_bytes(head[8:12], "little") - mtime) > 1:
            return Decision(Verdict.STALE, "mtime")
        if int.from_bytes(head[12:16], "little") != source.file_size:
            return Decision(Verdict.STALE, "size")
        return LOADABLE
