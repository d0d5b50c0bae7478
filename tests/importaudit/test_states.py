"""Tables of the states, and the stack that explains the cold one; from Records by hand."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.records import tiny

from importaudit.analysis import advice, costs, states
from importaudit.analysis.statistics import Spread
from importaudit.record import Cost, Edge, HotLine, Record, Run, State

MS = 1_000_000
NAMES = ("warm-complete", "warm-as-shipped", "cold-as-shipped", "warm-as-shipped-no-gc")


def run(state: str, wall: int, **more: int) -> Run:
    """A run of WALL milliseconds, 10 of which are no body."""
    rows = {"start": Cost(4 * MS, 4 * MS), "gc": Cost(6 * MS, 6 * MS)}
    compiled = more.pop("compile", 0)
    asleep = more.pop("asleep", 0)
    body = wall - 10 - compiled
    rows["body"] = Cost(body * MS, (body - asleep) * MS)
    rows["compile"] = Cost(compiled * MS, compiled * MS)
    cpu = (wall - asleep) * MS
    made = Run("timing", wall * MS, cpu, rows, {}, 1, 1, 0, state=state)
    return msgspec.structs.replace(made, **more)


def record(*runs: Run) -> Record:
    """A Record of RUNS; the states are theirs, and all of a run is the distribution "d 1"'s."""
    found = []
    for name in dict.fromkeys(one.state for one in runs):
        cache, _, bytecode = name.partition("-")
        own = next(one.rows for one in runs if one.state == name)
        phases = {"d 1": {phase: cost for phase, cost in own.items() if phase != "start"}}
        found.append(State(name, cache, bytecode, distributions=phases))
    return tiny(runs=list(runs), states=found)


# --- rows --------------------------------------------------------------------------------


def test_a_row_has_the_median_and_the_spread_of_its_runs() -> None:
    walls = (30, 20, 90)
    found = states.rows(record(*(run("warm-none", w, disk=w, files=2) for w in walls)))

    assert [row.state.name for row in found] == ["warm-none"]
    assert found[0].wall == Spread(30 * MS, 20 * MS, 90 * MS, 3)
    assert (found[0].disk, found[0].files, found[0].compiled) == (30, 2, 0)


def test_runs_that_failed_are_in_no_row() -> None:
    failed = Run("timing", 5, 5, {}, {}, 0, 0, 1, state="warm-none")

    assert [row.wall.count for row in states.rows(record(run("warm-none", 20), failed))] == [1]
    assert states.rows(record(failed)) == []


# --- the stack ---------------------------------------------------------------------------


def test_the_cold_time_is_split_into_what_was_there_compiling_and_disk() -> None:
    warm = run("warm-complete", 100)
    cold = run("cold-as-shipped", 290, compile=80, asleep=70, compiled=3)
    found = states.stack(record(warm, run("warm-as-shipped", 180, compile=80, compiled=3), cold))

    assert found is not None
    parts = {part.name: part.wall // MS for part in found.parts if part.wall}
    assert (found.base, found.wall) == ("warm-complete", 290 * MS)
    assert parts == {
        "module bodies": 90,
        "garbage collection": 6,
        "interpreter start and end": 4,
        "compiling what has no bytecode": 80,
        "waiting for the disk": 70,
        "kernel's work for that, and noise": 40,
    }
    disk = next(part for part in found.parts if part.name == "waiting for the disk")
    assert disk.distributions == {"d 1": 70 * MS}


@given(st.integers(20, 200), st.integers(100, 500), st.integers(0, 60), st.integers(0, 90))
def test_the_parts_add_up_exactly(warm: int, cold: int, compiled: int, asleep: int) -> None:
    runs = [run("warm-complete", warm), run("warm-as-shipped", warm, compiled=1)]
    found = states.stack(
        record(*runs, run("cold-as-shipped", cold, compile=min(compiled, cold - 20), asleep=asleep))
    )

    assert found is not None
    assert sum(part.wall for part in found.parts) == found.wall == cold * MS


def test_as_shipped_is_the_base_when_it_is_complete() -> None:
    shipped, cold = run("warm-as-shipped", 100), run("cold-as-shipped", 150)
    found = states.stack(record(shipped, cold))

    assert found is not None
    assert found.base == "warm-as-shipped"


@pytest.mark.parametrize("left", [1, 2])
def test_without_the_states_for_it_there_is_no_stack(left: int) -> None:
    runs = [run("warm-as-shipped", 100, compiled=1), run("cold-as-shipped", 150)]

    assert states.stack(record(*runs[:left])) is None


# --- what to do next ---------------------------------------------------------------------


def several(state: str, *walls: int, **more: int) -> list[Run]:
    return [run(state, wall, **more) for wall in walls]


def steps(found: Record) -> list[advice.Step]:
    return advice.steps(found, costs.graph_of(found))


def test_measured_savings_come_largest_first_and_name_how_they_are_known() -> None:
    shipped = several("warm-as-shipped", 200, 201, 202, compiled=2)
    complete = several("warm-complete", 100, 100, 101)
    paused = several("warm-as-shipped-no-gc", 150, 151, 152)
    found = steps(record(*shipped, *complete, *paused))

    assert [(step.what, step.known) for step in found[:2]] == [
        ("bake the bytecode", "measured: overlay, 3 pairs of runs"),
        ("pause garbage collection while importing", "measured: 3 pairs of runs"),
    ]
    assert [step.saving / MS for step in found[:2]] == pytest.approx([100, 50], abs=2)
    assert found[1].how == "import gc; gc.disable(); import one; gc.enable()"


def test_what_is_within_noise_is_no_advice() -> None:
    shipped = several("warm-as-shipped", 200, 120, 202)
    paused = several("warm-as-shipped-no-gc", 190, 130, 250)

    assert steps(record(*shipped, *paused)) == []


def test_one_run_a_state_proves_no_saving() -> None:
    runs = [run("warm-as-shipped", 200, compiled=2), run("warm-complete", 100)]

    assert steps(record(*runs)) == []


def test_a_saving_below_one_percent_is_not_worth_a_line() -> None:
    lines = [HotLine("one", "/srv/lib/one.py", 3, 9 * MS, "x = 1")]
    found = record(*several("warm-as-shipped", 1000, 1001, 1002))
    found.lines = lines
    assert steps(found) == []
    found = record(*several("warm-as-shipped", 100, 101, 102))
    found.lines = lines
    (step,) = steps(found)

    # Sampled in the detail run; in this one the module has 2 ms of its own.
    assert (step.saving, step.what, step.how) == (2 * MS, "look at one", "x = 1  at")
    assert step.where is not None
    assert (step.where.file, step.where.line) == ("/srv/lib/one.py", 3)


def test_a_distribution_is_to_be_deferred_where_it_is_first_imported() -> None:
    found = record(*several("warm-as-shipped", 20, 21, 22))
    found.modules, found.distributions = ["another"], {"one 1.0": ["one"]}
    found.edges = {"__main__": [Edge("one", 1)]}
    (step,) = steps(found)

    assert (step.saving, step.what) == (2 * MS, "defer one 1.0")
    assert step.known == "predicted: exclusive cost"
    assert step.where is not None
    assert (step.where.file, step.where.line) == ("<string>", 1)
