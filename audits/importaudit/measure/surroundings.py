"""What else changes the answer: the interpreter, the machine, and the environment."""

from __future__ import annotations

from importaudit.measure.machine import Machine
from importaudit.measure.trace import Trace
from importaudit.probe import lookup
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


def environment(machine: Machine, facts: Interpreter, load: float) -> Environment:
    """The surroundings that change the answer."""
    place = machine.place()
    real = machine.files.real(site_packages(facts))
    variables = sorted(machine.environment.items())
    return Environment(
        variables={k: text(v) for k, v in variables if k.startswith("PYTHON")},
        file_system=lookup.file_system(real, lookup.mounts(place.mounts)),
        processors=place.processors,
        load=load,
        machine=place.machine,
        kernel=place.kernel,
        image=machine.image,
    )


def site_packages(facts: Interpreter) -> str:
    """The first folder of installed packages on the target's path, or its prefix."""
    packages = (p for p in facts.path if p.endswith(("site-packages", "dist-packages")))
    return next(packages, facts.prefix or "/")
