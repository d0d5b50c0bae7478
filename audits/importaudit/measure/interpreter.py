"""Finding the target interpreter, and asking it what it is before anything runs in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from importaudit.errors import InterpreterError
from importaudit.measure.machine import HERE, Machine

OLDEST = (3, 10)
PATIENCE = 60.0  # seconds for an interpreter to say its version

# Runs on any Python, also on 2.7, to be told apart from what is no Python.
QUESTION = (
    "import sys; sys.stdout.write('importaudit %d %d %s' % (sys.version_info[0],"
    " sys.version_info[1], getattr(getattr(sys, 'implementation', None), 'name', 'cpython')))"
)


@dataclass(frozen=True)
class Answer:
    """What an interpreter says of itself."""

    python: Path
    version: tuple[int, int]


def find(asked: str | None, environment: Mapping[str, str]) -> Path:
    """The interpreter to audit: the one asked for, the active virtual environment's, or ours.

    A folder stands for the virtual environment in it. Symbolic links are not resolved: the
    link is what makes a virtual environment. Raises InterpreterError.
    """
    if asked is None:
        active = environment.get("VIRTUAL_ENV")
        if active and (Path(active) / "bin" / "python").exists():
            return Path(active) / "bin" / "python"
        return Path(sys.executable)
    path = Path(asked).expanduser().absolute()
    if path.is_dir():
        path = path / "bin" / "python"
    elif os.sep not in asked and not path.exists():
        path = search(asked, environment.get("PATH", os.defpath)) or path
    if not path.exists():
        raise InterpreterError(
            f"no interpreter at {path}", "--python takes a python executable or a virtualenv"
        )
    if not os.access(path, os.X_OK):
        raise InterpreterError(f"{path} is not executable")
    return path


def search(name: str, path: str) -> Path | None:
    """The executable NAME on PATH, links unresolved."""
    for folder in path.split(os.pathsep):
        candidate = Path(folder or ".") / name
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.absolute()
    return None


def ask(python: Path, machine: Machine = HERE) -> Answer:
    """Have PYTHON say its version; raises InterpreterError when it is too old or no Python."""
    try:
        answer = machine.capture([str(python), "-S", "-B", "-c", QUESTION], PATIENCE)
    except OSError as error:
        raise InterpreterError(f"cannot run {python}: {error.strerror}") from error
    if answer is None:
        raise InterpreterError(f"cannot run {python}: it did not answer")
    words = answer.out.decode("utf-8", "replace").split()
    recognised = len(words) == 4 and words[0] == "importaudit" and "".join(words[1:3]).isdecimal()
    if answer.status != 0 or not recognised:
        said = answer.err.decode("utf-8", "replace").strip().splitlines()
        raise InterpreterError(
            f"{python} is not a working Python" + (f": {said[-1]}" if said else ""),
            "--python takes a python executable or a virtualenv",
        )
    version = (int(words[1]), int(words[2]))
    if words[3] != "cpython":
        raise InterpreterError(f"{python} is {words[3]}; the probe needs CPython")
    if version < OLDEST:
        raise InterpreterError(
            f"{python} is Python {version[0]}.{version[1]}; the probe needs"
            f" {OLDEST[0]}.{OLDEST[1]} or newer"
        )
    return Answer(python, version)
