"""Asks an interpreter what decides whether it loads bytecode, and which folders it looks in."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from importaudit.analysis.bytecode import stdlib_folders
from importaudit.analysis.distributions import Distributions
from importaudit.errors import InterpreterError
from importaudit.measure.interpreter import PATIENCE, ask
from importaudit.record import Facts, Root

GUEST = Path(__file__).parent.parent / "probe"
SAMPLE = "importaudit"  # what Facts.hash_sample is the hash of
MARK = b"\nimportaudit-facts "
# setuptools' finder of an editable install: MAPPING, from packages to their folders or files.
FINDER = re.compile(r"^__editable___.*_finder\.py$")
MAPPING = re.compile(r"^MAPPING(?::[^=]*)?=\s*(\{.*\})\s*$", re.MULTILINE)


def ask_facts(python: Path) -> Facts:
    """What PYTHON, started as it always is, says of itself; raises InterpreterError."""
    try:
        answer = subprocess.run(
            [python, "-B", GUEST / "facts.py", SAMPLE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        answer = None
    # What site or a .pth file prints comes before it.
    _, mark, found = answer.stdout.rpartition(MARK) if answer is not None else (b"", b"", b"")
    if not mark:
        ask(python)  # says what is wrong with it, if it is no Python that we know
        said = answer.stderr.decode("utf-8", "replace").strip().splitlines() if answer else []
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
    kinds = Kinds(facts, owners)
    roots = [kinds.root(path) for path in dict.fromkeys(facts.path)]
    known = {root.path for root in roots}
    for site in facts.sites:
        for path in dict.fromkeys(mapped(site)):
            if path not in known:
                known.add(path)
                roots.append(Root(path, "editable"))
    return roots


class Kinds:
    """Tells of what kind a folder is: it decides which bytecode is right for it."""

    def __init__(self, facts: Facts, owners: Distributions) -> None:
        self.stdlib = stdlib_folders(facts)
        self.sites = [site.rstrip("/") for site in facts.sites]
        self.editable = [folder.rstrip("/") for folder in owners.editable]
        for site in self.sites:
            self.editable += [path for path in added(site) if not below(path, self.sites)]

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


def added(site: str) -> Iterator[str]:
    """The folders that the .pth files of SITE add to sys.path (also those of egg-links)."""
    for name in names(site):
        if name.endswith(".pth"):
            for line in lines(f"{site}/{name}"):
                if line and not line.startswith(("#", "import ", "import\t")):
                    yield os.path.normpath(os.path.join(site, line))  # noqa: PTH118


def mapped(site: str) -> Iterator[str]:
    """The packages and modules that setuptools' editable finders in SITE map."""
    for name in names(site):
        if FINDER.match(name):
            found = MAPPING.search("\n".join(lines(f"{site}/{name}")))
            with suppress(ValueError, SyntaxError):
                mapping = ast.literal_eval(found[1]) if found else {}
                for path in mapping.values():
                    # As its find_spec does: with or without a suffix.
                    folder = os.path.isdir(path)  # noqa: PTH112
                    yield path if folder else f"{path.removesuffix('.py')}.py"


def names(folder: str) -> list[str]:
    with suppress(OSError):
        return sorted(os.listdir(folder))  # noqa: PTH208
    return []


def lines(path: str) -> list[str]:
    with suppress(OSError):
        return [line.strip() for line in Path(path).read_text("utf-8", "replace").splitlines()]
    return []


def owners_of(facts: Facts) -> Distributions:
    """The distributions that are installed where FACTS' interpreter looks."""
    return Distributions(facts.path, stdlib_folders(facts))
