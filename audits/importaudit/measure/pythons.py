"""The interpreters of an image, by the files that it has: nothing of it has been started yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from posixpath import dirname, join

from importaudit.errors import InterpreterError

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMES = ("python3", "python", *(f"python3.{minor}" for minor in range(15, 9, -1)))
HINT = "--python takes the path of an interpreter, or of a virtualenv, in the image"


@dataclass(frozen=True)
class Found:
    """What is at a path."""

    real: str  # the path without a link at its end
    folder: bool
    executable: bool


Look = Callable[[str], Found | None]  # what is at a path of the image, links followed


def search(environment: Mapping[str, str], look: Look) -> list[str]:
    """Every interpreter on the image's PATH, or its active virtual environment's alone.

    One a virtual environment and one a file, however many links lead to it. Raises
    InterpreterError when there is none.
    """
    active = environment.get("VIRTUAL_ENV")
    if active and runs(look(f"{active}/bin/python")):
        return [f"{active}/bin/python"]
    found: dict[str, str] = {}
    for folder in folders(environment, look):
        for name in NAMES:
            path = join(folder, name)
            there = look(path)
            if there is not None and runs(there):
                venv = dirname(folder)
                alone = look(f"{venv}/pyvenv.cfg") is not None
                found.setdefault(venv if alone else there.real, path)
    if not found:
        raise InterpreterError("no Python on the image's PATH", HINT)
    return list(found.values())


def folders(environment: Mapping[str, str], look: Look) -> Iterator[str]:
    """The folders of the image's PATH that there are, each once."""
    seen = set()
    for entry in environment.get("PATH", DEFAULT_PATH).split(":"):
        there = look(entry) if entry.startswith("/") else None
        if there is not None and there.folder and there.real not in seen:
            seen.add(there.real)
            yield entry.rstrip("/")


def named(asked: str, environment: Mapping[str, str], work: str, look: Look) -> str:
    """The interpreter that the user calls ASKED; raises InterpreterError.

    A folder stands for the virtual environment in it; a path that is not absolute begins in WORK.
    """
    if "/" not in asked:
        for folder in folders(environment, look):
            if runs(look(join(folder, asked))):
                return join(folder, asked)
    path = join(work, asked)
    there = look(path)
    if there is not None and there.folder:
        path = join(path, "bin", "python")
        there = look(path)
    if there is None:
        raise InterpreterError(f"no interpreter at {path} in the image", HINT)
    if not runs(there):
        raise InterpreterError(f"{path} in the image is not executable", HINT)
    return path


def runs(there: Found | None) -> bool:
    return there is not None and there.executable and not there.folder
