"""Comparing series: on recorded ones, on simulated ones, and by what must hold of any."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations
from math import inf, isclose, nan
from pathlib import Path

import pytest
from bench.paired import ratio_interval
from hypothesis import given, settings
from hypothesis import strategies as st

from importaudit.analysis.statistics import (
    Comparison,
    Interval,
    Spread,
    Verdict,
    overlap,
    paired,
    quantile,
    spread,
    unpaired,
)

DATA = Path(__file__).parent / "data"
MACHINES = ("quiet", "neighbours", "hogs")  # what was going on: support/record_series.py
COMPARE = (paired, unpaired)
DIFFERENT = (Verdict.MORE, Verdict.LESS)

Compare = Callable[..., Comparison]


@cache
def samples(machine: str) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = json.loads(
        (DATA / f"series-{machine}.json").read_text()
    )["samples"]
    return found


def series(machine: str, arm: str, clock: str) -> list[float]:
    """Seconds of an arm: base, again (the same work) or more (a quarter more)."""
    return [sample[clock] for sample in samples(machine)[arm]]


# --- recorded series -----------------------------------------------------------------------


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("clock", ["wall", "cpu"])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_same_work_twice_is_neither_more_nor_less(
    compare: Compare, clock: str, machine: str
) -> None:
    found = compare(series(machine, "again", clock), series(machine, "base", clock))

    assert found.verdict not in DIFFERENT
    assert found.interval is not None
    assert 1 in found.interval


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("arm", ["base", "again"])
def test_a_quarter_more_is_found_on_a_quiet_machine(compare: Compare, arm: str) -> None:
    found = compare(series("quiet", "more", "cpu"), series("quiet", arm, "cpu"))

    assert found.verdict is Verdict.MORE
    assert found.interval is not None
    assert 1.24 in found.interval  # a start of 15 ms is no part of the quarter
    assert found.difference > 0


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("clock", ["wall", "cpu"])
@pytest.mark.parametrize("arm", ["base", "again"])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_quarter_more_is_never_called_less(
    compare: Compare, clock: str, arm: str, machine: str
) -> None:
    found = compare(series(machine, "more", clock), series(machine, arm, clock))

    assert found.verdict in (Verdict.MORE, Verdict.UNKNOWN)
    assert found.interval is not None
    assert 1.24 in found.interval


def test_wall_and_cpu_are_apart_beside_hogs() -> None:
    # Waiting for a processor is wall time alone: the two clocks disagree about the noise.
    wall = spread(series("hogs", "base", "wall"))
    cpu = spread(series("hogs", "base", "cpu"))

    assert wall.median > 1.2 * cpu.median


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("machine", MACHINES)
def test_three_runs_of_the_same_are_rarely_called_different(compare: Compare, machine: str) -> None:
    base, again = (series(machine, arm, "cpu") for arm in ("base", "again"))
    starts = range(len(base) - 2)
    said = [compare(again[n : n + 3], base[n : n + 3]).verdict for n in starts]

    assert sum(verdict in DIFFERENT for verdict in said) <= 1


# --- simulated series ----------------------------------------------------------------------


def noise(pick: random.Random, kind: str) -> float:
    """A run that takes 1, disturbed."""
    value = pick.lognormvariate(0, 0.08)
    return value * 1.8 if kind == "spikes" and pick.random() < 0.15 else value


@pytest.mark.parametrize("kind", ["lognormal", "spikes"])
@pytest.mark.parametrize("count", [3, 5, 10])
@pytest.mark.parametrize("compare", COMPARE)
def test_at_most_one_in_ten_is_called_different_when_nothing_differs(
    compare: Compare, count: int, kind: str
) -> None:
    pick = random.Random(count)
    rounds = 150
    wrong = 0
    for _ in range(rounds):
        ours, theirs = ([noise(pick, kind) for _ in range(count)] for _ in range(2))
        wrong += compare(ours, theirs, rounds=400).verdict in DIFFERENT

    assert wrong / rounds <= 0.1


def test_drift_that_a_pair_shares_is_no_difference_and_hides_none() -> None:
    pick = random.Random(0)
    drift = [pick.uniform(1, 3) for _ in range(10)]
    theirs = [d * pick.lognormvariate(0, 0.01) for d in drift]
    same = [d * pick.lognormvariate(0, 0.01) for d in drift]
    more = [1.1 * d * pick.lognormvariate(0, 0.01) for d in drift]

    assert paired(same, theirs).verdict is Verdict.NO_DIFFERENCE
    assert paired(more, theirs).verdict is Verdict.MORE
    assert unpaired(more, theirs).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("count", [3, 5])
def test_a_large_difference_is_found_with_few_runs(compare: Compare, count: int) -> None:
    theirs = [1.00, 1.02, 0.99, 1.01, 0.98][:count]
    ours = [1.31, 1.29, 1.30, 1.33, 1.28][:count]

    assert compare(ours, theirs).verdict is Verdict.MORE
    assert compare(theirs, ours).verdict is Verdict.LESS


@pytest.mark.parametrize("compare", COMPARE)
def test_one_disturbed_run_is_no_difference(compare: Compare) -> None:
    assert compare([1.0, 1.01, 2.5], [1.0, 0.99, 1.02]).verdict is Verdict.UNKNOWN


# --- verdicts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        (None, Verdict.UNKNOWN),
        (Interval(1.001, 1.02), Verdict.MORE),
        (Interval(0.9, 0.999), Verdict.LESS),
        (Interval(0.96, 1.05), Verdict.NO_DIFFERENCE),
        (Interval(0.96, 1.06), Verdict.UNKNOWN),
        (Interval(0.95, 1.01), Verdict.UNKNOWN),  # 1 / 1.05 is 0.952
        (Interval(1.0, 1.0), Verdict.NO_DIFFERENCE),
    ],
    ids=str,
)
def test_the_verdict_follows_from_the_interval(interval: Interval | None, verdict: Verdict) -> None:
    one = Spread(1, 1, 1, 3)

    assert Comparison(one, one, 1.0, interval).verdict is verdict


def test_the_margin_is_the_callers() -> None:
    ours, theirs = [1.0, 1.02, 0.98, 1.01, 0.99, 1.0], [1.0, 0.99, 1.01, 1.02, 0.98, 1.0]

    assert unpaired(ours, theirs, margin=0.2).verdict is Verdict.NO_DIFFERENCE
    assert unpaired(ours, theirs, margin=0.001).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("compare", "ours", "theirs"),
    [
        (paired, [2.0], [1.0]),
        (paired, [2.0, 2.1], [1.0, 1.1]),
        (unpaired, [2.0], [1.0]),
        (unpaired, [2.0], [1.0, 1.01, 1.02, 1.0, 1.0]),
    ],
)
def test_too_few_runs_have_a_ratio_and_no_interval(
    compare: Compare, ours: list[float], theirs: list[float]
) -> None:
    found = compare(ours, theirs)

    assert found.ratio > 1.8
    assert (found.interval, found.difference_interval) == (None, None)
    assert found.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("bad", [[], [1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, inf, 1], [nan] * 3])
def test_what_has_no_ratio_is_refused(compare: Compare, bad: list[float]) -> None:
    with pytest.raises(ValueError, match=r"without runs|a ratio needs figures above zero|pairs of"):
        compare(bad, [1.0, 1.0, 1.0])


def test_pairs_need_two_of_each() -> None:
    with pytest.raises(ValueError, match="pairs of 2 runs and 3"):
        paired([1.0, 1.0], [1.0, 1.0, 1.0])


def test_the_difference_is_in_the_unit_of_the_series() -> None:
    found = unpaired([150, 151, 149], [100, 101, 99])

    assert isclose(found.difference, 50)
    assert found.interval is not None
    assert found.difference_interval is not None
    assert isclose(found.difference_interval.low, 100 * (found.interval.low - 1))


def test_students_quantiles() -> None:
    for freedom, expected in {2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 21: 2.080}.items():
        assert isclose(quantile(freedom), expected, rel_tol=0.008)


def test_ranges_overlap_when_they_touch() -> None:
    assert overlap(Interval(1, 2), Interval(2, 3))
    assert overlap(Interval(0, 9), Interval(2, 3))
    assert not overlap(Interval(1, 2), Interval(2.1, 3))
    assert not overlap(Interval(2.1, 3), Interval(1, 2))


def test_the_benchmarks_use_the_same_intervals() -> None:
    ours, theirs = series("quiet", "more", "cpu"), series("quiet", "base", "cpu")
    found = paired(ours, theirs)

    assert found.interval is not None
    assert ratio_interval(ours, theirs) == (found.ratio, found.interval.low, found.interval.high)


# --- of any series -------------------------------------------------------------------------

VALUES = st.floats(0.01, 1000, allow_subnormal=False)
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12)
ROUNDS = 200


def close(one: Interval | None, other: Interval | None) -> bool:
    if one is None or other is None:
        return one is other
    return isclose(one.low, other.low, rel_tol=1e-6) and isclose(one.high, other.high, rel_tol=1e-6)


def split(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


@pytest.mark.parametrize("compare", COMPARE)
@given(pairs=PAIRS)
@settings(max_examples=40, deadline=None)
def test_the_interval_holds_the_ratio(compare: Compare, pairs: list[tuple[float, float]]) -> None:
    found = compare(*split(pairs), rounds=ROUNDS)

    assert found.interval is None or found.ratio in found.interval
    assert found.ours.least <= found.ours.median <= found.ours.most


@pytest.mark.parametrize("compare", COMPARE)
@given(pairs=PAIRS)
@settings(max_examples=40, deadline=None)
def test_swapped_series_have_the_inverse_ratio(
    compare: Compare, pairs: list[tuple[float, float]]
) -> None:
    ours, theirs = split(pairs)
    one, other = compare(ours, theirs, rounds=ROUNDS), compare(theirs, ours, rounds=ROUNDS)

    assert isclose(one.ratio, 1 / other.ratio, rel_tol=1e-9)
    found = other.interval
    assert close(one.interval, found and Interval(1 / found.high, 1 / found.low))


@pytest.mark.parametrize("compare", COMPARE)
@given(pairs=PAIRS, factor=st.sampled_from([0.001, 0.37, 2.0, 1e9]))
@settings(max_examples=40, deadline=None)
def test_the_unit_changes_nothing(
    compare: Compare, pairs: list[tuple[float, float]], factor: float
) -> None:
    ours, theirs = split(pairs)
    scaled = ([value * factor for value in values] for values in (ours, theirs))
    one, other = compare(ours, theirs, rounds=ROUNDS), compare(*scaled, rounds=ROUNDS)

    assert isclose(one.ratio, other.ratio, rel_tol=1e-9)
    assert close(one.interval, other.interval)


@given(pairs=PAIRS)
@settings(max_examples=20, deadline=None)
def test_the_same_again_says_the_same(pairs: list[tuple[float, float]]) -> None:
    for compare in COMPARE:
        assert compare(*split(pairs), rounds=ROUNDS) == compare(*split(pairs), rounds=ROUNDS)


@given(values=st.lists(VALUES, min_size=2, max_size=12))
@settings(max_examples=40, deadline=None)
def test_a_series_beside_itself_never_differs(values: list[float]) -> None:
    assert unpaired(values, values, rounds=ROUNDS).verdict not in DIFFERENT
    assert paired(values, values, rounds=ROUNDS).ratio == 1


def test_the_order_of_independent_runs_means_nothing() -> None:
    theirs = [1.0, 1.1, 1.3]
    found = {unpaired(list(ours), theirs).interval for ours in permutations([2.0, 2.2, 1.9])}

    assert len(found) == 1
