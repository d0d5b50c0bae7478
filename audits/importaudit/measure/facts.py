"""Asks an interpreter what decides whether it loads bytecode, and which folders it looks in."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from importaudit.analysis.bytecode import stdlib_folders
from importaudit.analysis.distributions import Distributions
from importaudit.errors import InterpreterError
from importaudit.files import LOCAL, Files
from importaudit.measure.interpreter import PATIENCE, ask
from importaudit.measure.machine import HERE, Machine
from importaudit.record import Facts, Root

SAMPLE = "importaudit"  # what Facts.hash_sample is the hash of
MARK = b"\nimportaudit-facts "
# setuptools' finder of an editable install: MAPPING, from packages to their folders or files.
FINDER = re.compile(r"^__editable___.*_finder\.py$")
MAPPING = re.compile(r"^MAPPING(?::[^=]*)?=\s*(\{.*\})\s*$", re.MULTILINE)


def ask_facts(python: Path, machine: Machine = HERE) -> Facts:
    """What PYTHON, started as it always is, says of itself; raises InterpreterError."""
    try:
        answer = machine.capture([str(python), "-B", f"{machine.probe}/facts.py", SAMPLE], PATIENCE)
    except OSError:
        answer = None
    # What site or a .pth file prints comes before it.
    _, mark, found = answer.out.rpartition(MARK) if answer is not None else (b"", b"", b"")
    if not mark:
        ask(python, machine)  # says what is wrong with it, if it is no Python that we know
        said = answer.err.decode("utf-8", "replace").strip().splitlines() if answer else []
        raise InterpreterError(
            f"{python} did not say how it looks for bytecode" + (f": {said[-1]}" if said else ""),
            f"{python} -c 'import site' must work",
        )
    # Not msgspec's decoder: a folder's name may hold bytes that are no Unicode.
    return msgspec.convert(json.loads(found), Facts)


# --- folders -------------------------------------------------------------------------------


def environment_roots(facts: Facts, owners: Distributions) -> list[Root]:
    """What FACTS' interpreter would look in: sys.path, and the folders of editable finders.

    The current folder is not among them, for ``python -c`` has it and a script has not.
    """
    files = owners.source
    kinds = Kinds(facts, owners)
    roots = [kinds.root(path) for path in dict.fromkeys(facts.path)]
    known = {root.path for root in roots}
    for site in facts.sites:
        for path in dict.fromkeys(mapped(site, files)):
            if path not in known:
                known.add(path)
                roots.append(Root(path, "editable"))
    return roots


class Kinds:
    """Tells of what kind a folder is: it decides which bytecode is right for it."""

    def __init__(self, facts: Facts, owners: Distributions) -> None:
        files = owners.source
        self.stdlib = stdlib_folders(facts, files)
        self.sites = [site.rstrip("/") for site in facts.sites]
        self.editable = [folder.rstrip("/") for folder in owners.editable]
        for site in self.sites:
            self.editable += [path for path in added(site, files) if not below(path, self.sites)]

    def root(self, path: str) -> Root:
        return Root(path, self.kind(path))

    def kind(self, path: str) -> str:
        """stdlib, site-packages, editable or path."""
        if below(path, self.editable):
            return "editable"
        if below(path, self.sites):
            return "site-packages"
        zipped = path.rpartition("/")[2].startswith("python") and path.endswith(".zip")
        if below(path, self.stdlib) or (
            zipped and below(path, [os.path.dirname(f) for f in self.stdlib])  # noqa: PTH120
        ):
            return "stdlib"
        return "path"


def below(path: str, folders: list[str]) -> bool:
    """Whether PATH is one of FOLDERS or inside one."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def added(site: str, files: Files) -> Iterator[str]:
    """The folders that the .pth files of SITE add to sys.path (also those of egg-links)."""
    for name in names(site, files):
        if name.endswith(".pth"):
            for line in lines(f"{site}/{name}", files):
                if line and not line.startswith(("#", "import ", "import\t")):
                    yield os.path.normpath(os.path.join(site, line))  # noqa: PTH118


def mapped(site: str, files: Files) -> Iterator[str]:
    """The packages and modules that setuptools' editable finders in SITE map."""
    for name in names(site, files):
        if FINDER.match(name):
            found = MAPPING.search("\n".join(lines(f"{site}/{name}", files)))
            with suppress(ValueError, SyntaxError):
                mapping = ast.literal_eval(found[1]) if found else {}
                for path in mapping.values():
                    # As its find_spec does: with or without a suffix.
                    yield path if files.is_dir(path) else f"{path.removesuffix('.py')}.py"


def names(folder: str, files: Files) -> list[str]:
    with suppress(OSError):
        return sorted(files.names(folder))
    return []


def lines(path: str, files: Files) -> list[str]:
    with suppress(OSError):
        text = files.read(path).decode("utf-8", "replace")
        return [line.strip() for line in text.splitlines()]
    return []


def owners_of(facts: Facts, files: Files = LOCAL) -> Distributions:
    """The distributions that are installed where FACTS' interpreter looks."""
    return Distributions(facts.path, stdlib_folders(facts, files), files)
