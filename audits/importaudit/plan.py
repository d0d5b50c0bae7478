"""What an audit is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal


@dataclass(frozen=True)
class Target:
    """What is to run: modules to import, a string of code, or a script with arguments."""

    modules: tuple[str, ...] = ()
    code: str | None = None
    script: Path | None = None  # as the user wrote it
    argv: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The target as the user would write it."""
        if self.script is not None:
            return " ".join([str(self.script), *self.argv])
        return self.code if self.code is not None else " ".join(self.modules)

    def statement(self, work: str) -> str:
        """What follows the probe on its line; the target works in the folder WORK."""
        if self.script is not None:  # tracebacks name it in full, as under plain Python
            file = str(PurePosixPath(work, self.script))
            read = f'(lambda f:(f.read(),f.close())[0])(open({file!r},"rb"))'
            return f'exec(compile({read},{file!r},"exec"))'
        if self.code is not None:
            return f'exec(compile({self.code!r},"<string>","exec"))'
        return "import " + ", ".join(self.modules)


@dataclass(frozen=True)
class Mount:
    """A folder, file or volume of the engine's machine, to be seen in a container."""

    source: str
    target: str
    read_only: bool = False
    kind: Literal["bind", "volume"] = "bind"


@dataclass(frozen=True)
class Container:
    """A container to carry the plan out in."""

    image: str
    environment: Mapping[str, str] = field(default_factory=dict)  # beside the image's own
    mounts: tuple[Mount, ...] = ()
    keep: bool = False  # running, when all is done
    read_only: bool = False  # its root file system
    read_iops: int = 0  # reads a second that its disk is held to; 0: as fast as it is


@dataclass(frozen=True)
class Condition:
    """What the page cache and the bytecode are like when a run begins."""

    cache: str = "warm"  # page cache of the files that the chain opens: warm or cold
    bytecode: str = "as-shipped"  # or complete, none: through a private PYTHONPYCACHEPREFIX
    pause_gc: bool = False  # no collections until the import is done

    @property
    def name(self) -> str:
        """The name of its runs in a Record, and its name on the command line."""
        return f"{self.cache}-{self.bytecode}" + ("-no-gc" if self.pause_gc else "")


AS_SHIPPED = Condition()
COLD = Condition("cold")
PAUSED = Condition(pause_gc=True)
# Every state that can be asked for, in the order of the report.
CONDITIONS = (
    Condition("warm", "complete"),
    AS_SHIPPED,
    Condition("warm", "none"),
    Condition("cold", "complete"),
    COLD,
    Condition("cold", "none"),
    PAUSED,
)


def chosen(compiled: int, sources: int) -> tuple[Condition, ...]:
    """The states to measure when nobody has named any.

    COMPILED of the SOURCES that the chain loads have no usable bytecode as shipped: where that
    is none or all of them, as-shipped is one of the other states already.
    """
    skipped = {Condition("cold", "complete")}
    if compiled == 0:
        skipped.add(Condition("warm", "complete"))
    elif compiled >= sources:
        skipped |= {Condition("warm", "none"), Condition("cold", "none")}
    return tuple(condition for condition in CONDITIONS if condition not in skipped)


@dataclass(frozen=True)
class Plan:
    """What an audit will do."""

    python: Path
    target: Target
    runs: int = 3  # timing runs of each state; one detail run comes before them
    timeout: float | None = None  # seconds, for each run
    states: tuple[Condition, ...] | None = (AS_SHIPPED,)  # None: chosen after the detail run
    drop_caches: bool = False  # empty the whole machine's page cache for a cold run


@dataclass(frozen=True)
class Schedule:
    """The timing runs of an audit, once the detail run has shown what there is to measure."""

    conditions: tuple[Condition, ...]
    runs: int  # of each
    seconds: float  # that all of them are expected to take

    @property
    def rounds(self) -> list[list[Condition]]:
        """The runs, interleaved: one of each state a round, in turned order each other round.

        What drifts on a machine, drifts for all states alike.
        """
        turned = self.conditions[::-1]
        return [list(turned if number % 2 else self.conditions) for number in range(self.runs)]


# What a run costs beside a warm one with complete bytecode, for telling how long a plan takes;
# roughly what large chains do.
WEIGHT = {"complete": 1.0, "none": 2.2, "cold": 1.4}
AROUND = 0.15  # seconds that go by around a run: reading its trace, preparing the page cache
DETAIL = 1.3  # what a detail run costs, in warm timing runs


def schedule(plan: Plan, compiled: int, sources: int, seconds: float) -> Schedule:
    """The Schedule of PLAN, after a detail run of SECONDS that COMPILED so many of SOURCES."""
    conditions = plan.states if plan.states is not None else chosen(compiled, sources)
    missing = compiled / sources if sources else 0.0
    as_shipped = 1 + (WEIGHT["none"] - 1) * missing
    weights = [
        WEIGHT.get(condition.bytecode, as_shipped)
        * (WEIGHT["cold"] if condition.cache == "cold" else 1)
        for condition in conditions
    ]
    fill = WEIGHT["none"] if any(c.bytecode == "complete" for c in conditions) else 0
    expected = seconds / DETAIL / as_shipped * (sum(weights) * plan.runs + fill)
    expected += AROUND * len(conditions) * plan.runs
    return Schedule(conditions, plan.runs, expected)
