"""Builds the environments that `make audit` and the real-world tests look at.

    python scripts/env.py demo|realworld [--print-python]

An environment is CACHE/NAME/KEY: CACHE is $IMPORTAUDIT_CACHE, else .cache in the repository; KEY
is a digest of the requirements and the interpreter. A marker in it is written last, so a folder
without one is half-built; such folders and those of other keys are removed. Progress goes to
stderr; --print-python prints the path of the environment's interpreter on stdout.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import interpreters

ROOT = Path(__file__).resolve().parent.parent
MARKER = ".complete"


class EnvironmentProblem(Exception):
    """Why an environment cannot be had, in words for the terminal."""


@dataclass(frozen=True)
class Recipe:
    name: str
    requirements: Path
    pip_options: tuple[str, ...]
    bytes_wanted: int
    version: str | None = None  # None: the interpreter that runs this script


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="demo",
            requirements=ROOT / "Dockerfiles/demo/requirements.txt",
            pip_options=("--require-hashes",),
            bytes_wanted=500_000_000,
        ),
        Recipe(
            name="realworld",
            requirements=ROOT / "tests/realworld/sglang-0.5.23-cp311.txt",
            # The list is a closure already, and one that pip's resolver would refuse.
            pip_options=("--no-deps",),
            bytes_wanted=8_000_000_000,
            version="3.11",
        ),
    )
}


def cache_folder() -> Path:
    return Path(os.environ.get("IMPORTAUDIT_CACHE") or ROOT / ".cache").absolute()


def provide(recipe: Recipe, cache: Path) -> Path:
    """The interpreter of RECIPE's environment, which is built first where it is missing."""
    base = _base_interpreter(recipe)
    home = cache / recipe.name
    home.mkdir(parents=True, exist_ok=True)
    folder = home / _key(recipe, base)
    with locked(home / "lock"):
        if not _usable(folder):
            for old in home.iterdir():
                if old.is_dir():
                    _say(f"removing {old}")
                    shutil.rmtree(old)
            check_disk(f"the {recipe.name} environment wants", recipe.bytes_wanted, home)
            _build(recipe, base, folder)
    return _python(folder)


def _base_interpreter(recipe: Recipe) -> Path:
    if recipe.version is None:
        return Path(sys.executable)
    found = interpreters.find(recipe.version)
    if found is None:
        raise EnvironmentProblem(
            f"the {recipe.name} environment needs CPython {recipe.version}: looked for "
            f"python{recipe.version} on PATH and under pyenv's versions, and none of them runs. "
            f"Install it (for example apt-get install python{recipe.version}-venv)."
        )
    return found


def _key(recipe: Recipe, base: Path) -> str:
    version = subprocess.run(
        [base, "-I", "-c", "import sys; print(sys.version)"],
        capture_output=True,
        check=True,
    ).stdout
    return hashlib.sha256(recipe.requirements.read_bytes() + version).hexdigest()[:16]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Parallel test workers ask for the same thing; one makes it, the others wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _usable(folder: Path) -> bool:
    # The marker says that it was complete; running it says that its base is still installed.
    if not (folder / MARKER).exists():
        return False
    try:
        subprocess.run([_python(folder), "-I", "-c", ""], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def check_disk(what: str, wanted: int, folder: Path) -> None:
    """Raise EnvironmentProblem where FOLDER has less than so many bytes free as WHAT wants."""
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise EnvironmentProblem(
            f"{what} {wanted} bytes free in {folder}, "
            f"found {free}. Free some, or set IMPORTAUDIT_CACHE to a folder with more room."
        )


def _build(recipe: Recipe, base: Path, folder: Path) -> None:
    _say(f"building the {recipe.name} environment in {folder}")
    install = ("-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check")
    _run(base, "-m", "venv", str(folder))
    _run(_python(folder), *install, *recipe.pip_options, "-r", str(recipe.requirements))
    (folder / MARKER).touch()


def _run(*command: str | Path) -> None:
    try:
        # Its stdout is ours to keep clean: whoever called us reads a path from it.
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        line = " ".join(map(str, command))
        raise EnvironmentProblem(f"exit status {error.returncode} from {line}") from error


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _say(text: str) -> None:
    print(f"env.py: {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Build an environment to audit, once.")
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument(
        "--print-python", action="store_true", help="print the path of its interpreter"
    )
    arguments = parser.parse_args()
    try:
        python = provide(RECIPES[arguments.name], cache_folder())
    except EnvironmentProblem as problem:
        _say(f"error: {problem}")
        return 1
    if arguments.print_python:
        print(python)
    return 0


if __name__ == "__main__":
    sys.exit(main())
