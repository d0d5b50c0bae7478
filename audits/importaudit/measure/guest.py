"""The guest code as the target's interpreter compiles it, once for all runs of an audit.

Compiling it in every run would be 30 ms of a target's time. Docstrings are left out.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from importaudit.errors import InterpreterError
from importaudit.measure import scratch

PROBE = Path(__file__).parent.parent / "probe"

# Runs in the target's interpreter: the code objects of a folder's files, by their names.
COMPILE = """
import marshal, os, sys
folder, names = sys.argv[1], sys.argv[2:]
codes = {}
for name in names:
    path = os.path.join(folder, name + ".py")
    with open(path, "rb") as file:
        codes[name] = compile(file.read(), path, "exec", dont_inherit=True, optimize=2)
sys.stdout.buffer.write(marshal.dumps(codes))
"""
LIGHT = ("start", "output", "clock", "imports", "hooks", "tracer", "children")


def code(python: Path, *, detail: bool) -> Path:
    """The file of bytecode that a run of PYTHON loads, with what a detail run needs or without.

    Raises InterpreterError when PYTHON cannot compile it, AuditError when there is no place for it.
    """
    return compiled(python, (*LIGHT, "detail") if detail else LIGHT)


@cache
def compiled(python: Path, names: tuple[str, ...]) -> Path:
    """The bytecode of the files NAMES of the probe, in a file that lasts as long as we do."""
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-B", "-c", COMPILE, PROBE, *names],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
    except OSError as error:
        raise InterpreterError(f"cannot run {python}: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip().splitlines() or [str(error)]
        raise InterpreterError(f"{python} cannot compile the probe: {said[-1]}") from error
    descriptor, name = tempfile.mkstemp(dir=private(), suffix=".marshal")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(done.stdout)
    except OSError as error:
        raise scratch.no_place("the probe's bytecode", error) from error
    return Path(name)


@cache
def private() -> Path:
    """A folder for the bytecode, gone when this process ends."""
    folder = scratch.create("the probe's bytecode")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
