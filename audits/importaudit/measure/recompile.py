"""Has the target's own interpreter hash and compile sources: what only it can do."""

from __future__ import annotations

import _imp
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from importaudit.analysis.bytecode import cache_folder, rules_of
from importaudit.errors import InterpreterError
from importaudit.measure import machine as machines
from importaudit.measure.facts import SAMPLE
from importaudit.measure.machine import HERE, Machine
from importaudit.record import Facts, Judged, Verdict

PORTION = 400  # sources for a worker at a time: seconds of work


def hashes(sources: Sequence[str], facts: Facts, machine: Machine = HERE) -> list[bytes | None]:
    """``importlib.util.source_hash`` of each of SOURCES in FACTS' interpreter; None: unreadable.

    SipHash-2-4 up to 3.10 and SipHash-1-3 from 3.11 on (Python/pyhash.c, _Py_KeyedHash). Where
    ours gives what the target gave for the sample, ours is used.
    """
    if not sources:
        return []
    key = int.from_bytes(bytes.fromhex(facts.magic), "little")
    if machine is not HERE or _imp.source_hash(key, SAMPLE.encode()).hex() != facts.hash_sample:
        paths = [os.fsencode(source) for source in sources]
        lines = answers(["hash"], paths, 1, facts, machine)
        return [None if line == "-" else bytes.fromhex(line) for line in lines]
    return [hashed(source, key) for source in sources]


def hashed(source: str, key: int) -> bytes | None:
    try:
        return _imp.source_hash(key, Path(source).read_bytes())
    except OSError:
        return None


def hash_of(data: bytes, facts: Facts, machine: Machine = HERE) -> bytes | None:
    """The hash of DATA, the source of a module that is no file."""
    with machines.file(machine, "a source", data) as path:
        return hashes([path], facts, machine)[0]


def verify(
    found: Sequence[Judged],
    facts: Facts,
    tell: Callable[[int], None] = lambda _: None,
    machine: Machine = HERE,
) -> list[str]:
    """Compile each of FOUND and compare it with the bytecode that would be loaded.

    Changes the verdicts: to stale where the code differs, to damaged where the bytecode cannot be
    unmarshalled, to not-compilable. Bytecode of another compiler with the same magic number (a
    patch release may have changed it) counts as stale here, though it is loaded. Returns notes.
    """
    rules = rules_of(facts)
    there = set(machine.files.existing(one.source for one in found))
    sources = [one for one in found if one.source.endswith(".py") and one.source in there]
    pairs: list[bytes] = []
    for one in sources:
        folder, _, name = one.source.rpartition("/")
        file = f"{cache_folder(folder, rules)}/{name.removesuffix('.py')}{rules.suffix}"
        pairs += [os.fsencode(one.source), os.fsencode(file) if usable(one) else b""]
    portions = [pairs[at : at + 2 * PORTION] for at in range(0, len(pairs), 2 * PORTION)]
    unread = done = 0
    with ThreadPoolExecutor(machine.workers) as pool:
        command = ["compile", str(facts.optimize)]
        for lines in pool.map(lambda one: answers(command, one, 2, facts, machine), portions):
            for line in lines:
                unread += line == "unread"
                apply(line, sources[done])
                done += 1
            tell(done)
    skipped = len(found) - len(sources)
    notes = [f"not read, and so not verified: {unread:,} of the sources"] if unread else []
    return notes + (
        [f"{skipped:,} modules in archives or without source not verified"] * (skipped > 0)
    )


def usable(judged: Judged) -> bool:
    return judged.verdict is Verdict.LOADABLE


def apply(line: str, judged: Judged) -> None:
    """What the guest's answer LINE says about a source."""
    word, _, reason = line.partition(" ")
    if word == "differs":
        judged.verdict, judged.reason = Verdict.STALE, "content"
    elif word == "damaged":
        judged.verdict, judged.reason = Verdict.DAMAGED, reason
    elif word == "fails" and judged.verdict is not Verdict.DAMAGED:
        judged.verdict, judged.reason = Verdict.NOT_COMPILABLE, reason


def answers(
    words: list[str], paths: list[bytes], step: int, facts: Facts, machine: Machine
) -> list[str]:
    """The guest's answer for every STEP of PATHS; a source that it crashes on fails."""
    found: list[str] = []
    while len(found) * step < len(paths):
        before = len(found)
        lines, status = ask(words, paths[before * step :], facts, machine)
        found += lines
        if len(found) * step < len(paths):
            if status == 0 or (not lines and status > 0):
                guest = f"{machine.probe}/recompile.py"
                raise InterpreterError(f"{facts.executable} cannot run {guest}: status {status}")
            found.append(f"fails the interpreter ended with status {status}")
    return found


def ask(
    words: list[str], paths: list[bytes], facts: Facts, machine: Machine
) -> tuple[list[str], int]:
    """Run the guest over PATHS: the lines that it wrote, and its exit status."""
    with machines.file(machine, "names of sources", b"".join(p + b"\0" for p in paths)) as file:
        guest = f"{machine.probe}/recompile.py"
        options = ["-I", "-S", "-B", "-W", "ignore"]
        try:
            done = machine.capture([facts.executable, *options, guest, words[0], file, *words[1:]])
        except OSError as error:
            raise InterpreterError(f"cannot run {facts.executable}: {error.strerror}") from error
    assert done is not None, "without a time limit it ends"
    return done.out.decode("utf-8", "replace").splitlines(), done.status
