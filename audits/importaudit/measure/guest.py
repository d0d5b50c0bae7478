"""The guest code as the target's interpreter compiles it, once for all runs of an audit.

Compiling it in every run would be 30 ms of a target's time. Docstrings are left out.
"""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path

from importaudit.errors import InterpreterError
from importaudit.measure import scratch
from importaudit.measure.machine import HERE, Machine

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


def code(machine: Machine, python: Path, *, detail: bool) -> str:
    """The file of bytecode that a run of PYTHON loads, with what a detail run needs or without.

    Raises InterpreterError when PYTHON cannot compile it, AuditError when there is no place for it.
    """
    return compiled(machine, python, (*LIGHT, "detail") if detail else LIGHT)


@cache
def compiled(machine: Machine, python: Path, names: tuple[str, ...]) -> str:
    """The bytecode of the files NAMES of the probe, in a file that lasts as long as we do."""
    command = [str(python), "-I", "-S", "-B", "-c", COMPILE, machine.probe, *names]
    try:
        done = machine.capture(command)
    except OSError as error:
        raise InterpreterError(f"cannot run {python}: {error.strerror}") from error
    if done is None or done.status:
        said = done.err.decode("utf-8", "replace").strip().splitlines() if done else []
        why = said[-1] if said else f"status {done.status if done else '?'}"
        raise InterpreterError(f"{python} cannot compile the probe: {why}")
    path = f"{private(machine)}/{names[-1]}.marshal"
    try:
        machine.put(path, done.out)
    except OSError as error:
        raise scratch.no_place("the probe's bytecode", error) from error
    return path


@cache
def private(machine: Machine) -> str:
    """A folder for the bytecode, gone when this process ends."""
    folder = machine.folder("the probe's bytecode")
    if machine is HERE:  # a container's folders go with it
        atexit.register(machine.remove, folder)
    return folder
