"""Finds the CPython versions that audits are tested on.

    python scripts/interpreters.py             print VERSION PATH for each, "-" where missing
    python scripts/interpreters.py --missing   print only the missing versions

Exit 1 when a version is missing. tests/interpreters.txt lists the versions. Runs on old
interpreters too, since .ci/run asks before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).resolve().parent.parent / "tests" / "interpreters.txt"

# sys._base_executable: a virtual environment's packages must not leak into what is measured, and
# a pyenv shim must not be what is started again and again.
_ASK = """import sys
print("%d.%d" % sys.version_info[:2], getattr(sys, "_base_executable", sys.executable))"""


def wanted() -> list[str]:
    """The versions listed, oldest first as in the file."""
    lines = (line.partition("#")[0].strip() for line in LIST.read_text().splitlines())
    return [line for line in lines if line]


def find(version: str) -> Path | None:
    """An interpreter of VERSION ("3.11") that really runs; a file of that name is no proof."""
    for candidate in _candidates(version):
        found = _ask(candidate)
        if found is not None and found[0] == version:
            return Path(found[1])
    return None


def _candidates(version: str) -> list[str]:
    on_path = shutil.which("python" + version)
    roots = [os.environ.get("PYENV_ROOT"), str(Path.home() / ".pyenv")]
    kept = [
        str(path)
        for root in dict.fromkeys(filter(None, roots))
        for path in sorted(Path(root, "versions").glob(version + ".*/bin/python"), reverse=True)
    ]
    return ([on_path] if on_path else []) + kept


def _ask(executable: str) -> tuple[str, str] | None:
    try:
        # -I: neither PYTHON* variables nor user packages decide what it answers.
        answer = subprocess.run(
            [executable, "-I", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        version, path = answer.stdout.rstrip("\n").split(" ", 1)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return version, path


def main() -> int:
    found = {version: find(version) for version in wanted()}
    for version, path in found.items():
        if "--missing" not in sys.argv[1:]:
            print(version, path or "-")
        elif path is None:
            print(version)
    return 1 if None in found.values() else 0


if __name__ == "__main__":
    sys.exit(main())
