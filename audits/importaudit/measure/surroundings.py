"""What else changes the answer: the interpreter, the machine, and the environment."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from importaudit.measure.trace import Trace
from importaudit.record import Environment, Interpreter, text


def interpreter_facts(trace: Trace) -> Interpreter:
    """What the guest said of its interpreter; empty where it said nothing."""
    facts = trace.facts
    return Interpreter(
        executable=facts.get("executable", ""),
        version=facts.get("version", ""),
        prefix=facts.get("prefix", ""),
        base_prefix=facts.get("base_prefix", ""),
        path=trace.path,
        cache_tag=facts.get("cache_tag", ""),
        platlibdir=facts.get("platlibdir", "lib"),
        optimize=int(facts.get("optimize", "0")),
        pycache_prefix=facts.get("pycache_prefix", ""),
    )


def environment(variables: Mapping[str, str], facts: Interpreter, load: float) -> Environment:
    """The surroundings that change the answer."""
    return Environment(
        variables={k: text(v) for k, v in sorted(variables.items()) if k.startswith("PYTHON")},
        file_system=file_system(site_packages(facts)),
        processors=len(os.sched_getaffinity(0)),
        load=load,
        machine=platform.machine(),
        kernel=platform.release(),
    )


def site_packages(facts: Interpreter) -> str:
    """The first folder of installed packages on the target's path, or its prefix."""
    packages = (p for p in facts.path if p.endswith(("site-packages", "dist-packages")))
    return next(packages, facts.prefix or "/")


def file_system(path: str) -> str:
    """The type of the file system that PATH is on, as the kernel's mount table has it."""
    found = ("", "unknown")
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    real = os.path.realpath(path)
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = before.split()[4].replace("\\040", " ")
        inside = real == mount or real.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(found[0]):
            found = (mount, after.split()[0])
    return found[1]
