"""Which states are measured when nobody has named any, in which order, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importaudit.plan import (
    AROUND,
    AS_SHIPPED,
    COLD,
    CONDITIONS,
    DETAIL,
    PAUSED,
    Condition,
    Plan,
    Schedule,
    Target,
    chosen,
    schedule,
)

NONE = {Condition("warm", "none"), Condition("cold", "none")}
COMPLETE = {Condition("warm", "complete")}
ALWAYS = {AS_SHIPPED, COLD, PAUSED}


@pytest.mark.parametrize(
    ("compiled", "expected"),
    [(0, ALWAYS | NONE), (1, ALWAYS | NONE | COMPLETE), (50, ALWAYS | COMPLETE)],
    ids=["all bytecode is there", "some is missing", "there is none"],
)
def test_what_is_shipped_already_is_not_measured_twice(
    compiled: int, expected: set[Condition]
) -> None:
    assert set(chosen(compiled, 50)) == expected


def test_names_are_distinct_and_say_what_they_are() -> None:
    names = [condition.name for condition in CONDITIONS]

    assert len(set(names)) == len(names)
    assert AS_SHIPPED.name == "warm-as-shipped"
    assert PAUSED.name == "warm-as-shipped-no-gc"
    assert {Condition("cold", "none").name, COLD.name} <= set(names)


@given(st.permutations(CONDITIONS), st.integers(1, len(CONDITIONS)), st.integers(1, 6))
def test_every_round_has_each_state_once(
    conditions: list[Condition], count: int, runs: int
) -> None:
    rounds = Schedule(tuple(conditions[:count]), runs, 0).rounds

    assert [set(one) for one in rounds] == [set(conditions[:count])] * runs
    assert all(len(one) == count for one in rounds)


def test_the_order_turns_so_that_drift_favours_none() -> None:
    first, second, third = Schedule((AS_SHIPPED, COLD), 3, 0).rounds

    assert first == third == second[::-1]


def planned(*states: Condition, runs: int = 1, compiled: int = 0) -> float:
    plan = Plan(Path("python"), Target(("m",)), runs, states=states)
    return schedule(plan, compiled, 100, 10.0 * DETAIL).seconds


def test_the_expected_time_grows_with_what_a_state_costs() -> None:
    warm, cold = planned(AS_SHIPPED), planned(COLD)

    assert warm == pytest.approx(10.0 + AROUND)  # what the first run took, without its detail
    assert warm < cold < planned(Condition("cold", "none"))
    assert planned(AS_SHIPPED, COLD, runs=3) == pytest.approx(3 * (warm + cold))
    # A first run that compiled everything is what a run without bytecode costs.
    assert planned(Condition("warm", "none"), compiled=100) == pytest.approx(10.0 + AROUND)
