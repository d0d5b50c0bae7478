"""Comparing two series of measurements: which one is more, by how much, or that neither is.

A series is one figure of repeated runs: wall time or CPU time, never both; callers compare each
apart. Everything is a ratio, ours to theirs, since what disturbs a run does so in proportion.
The answer is an interval of 95 %, and a verdict that follows from it alone:

- MORE or LESS: 1 lies outside the interval.
- NO_DIFFERENCE, which is an answer: 1 lies inside, and the whole interval within a margin around
  it (5 %, given by the caller where another matters). A larger difference would have been seen.
- UNKNOWN: 1 lies inside, and so do differences that matter; or there are too few runs for an
  interval. More runs, or a quieter machine, would tell.

How the interval is found depends on the number of runs, of the shorter series:

- From FEW (5) on, by bootstrap: medians of values drawn from the series, with replacement. The
  plain percentile interval is too narrow for so few runs; its ends are moved outwards as far as
  Student's distribution is wider than the normal one (Hesterberg 2015, "What Teachers Should
  Know About the Bootstrap", section 5.3, the expanded percentile interval).
- Below that, by Student's t of the logarithms. Three values that are drawn from three say next to
  nothing: the range of three pairs holds the true median in 75 % of the cases, the range of all
  ratios of three runs to three in 90 %. Student's holds it in 95 % where noise is lognormal, and
  more often where it has heavier tails; one run that was disturbed makes it wide, not wrong.
- With fewer than three pairs, or two runs of each, there is none.

Nothing here knows what drifts between two series: what was recorded on another day differs by
the day as well. Interleaved pairs do not, so `paired` says more than `unpaired`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, isfinite, log, sqrt
from statistics import NormalDist, fmean, median, variance

LEVEL = 0.95  # how often an interval holds the true ratio
MARGIN = 0.05  # a difference of less is none, when nothing else is said
FEW = 5  # runs from which there is a bootstrap
ROUNDS = 10_000  # of the bootstrap


class Verdict(StrEnum):
    """What a comparison says of ours, beside theirs."""

    MORE = "more"
    LESS = "less"
    NO_DIFFERENCE = "no difference"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Spread:
    """A series in short, in its own unit."""

    median: float
    least: float
    most: float
    count: int


@dataclass(frozen=True)
class Interval:
    """Where a figure lies."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Comparison:
    """Ours beside theirs."""

    ours: Spread
    theirs: Spread
    ratio: float  # ours to theirs
    interval: Interval | None  # of the ratio; None where there are too few runs
    margin: float = MARGIN

    @property
    def verdict(self) -> Verdict:
        """What the interval says; the docstring of the module has the rules."""
        if self.interval is None:
            return Verdict.UNKNOWN
        if self.interval.low > 1:
            return Verdict.MORE
        if self.interval.high < 1:
            return Verdict.LESS
        least, most = 1 / (1 + self.margin), 1 + self.margin
        if least <= self.interval.low and self.interval.high <= most:
            return Verdict.NO_DIFFERENCE
        return Verdict.UNKNOWN

    @property
    def difference(self) -> float:
        """What the ratio makes of the median of theirs, in the unit of the series."""
        return (self.ratio - 1) * self.theirs.median

    @property
    def difference_interval(self) -> Interval | None:
        """The interval of that difference; it holds 0 where that of the ratio holds 1."""
        if self.interval is None:
            return None
        middle = self.theirs.median
        return Interval((self.interval.low - 1) * middle, (self.interval.high - 1) * middle)


def spread(values: Sequence[float]) -> Spread:
    """Median, least and most of VALUES; raises ValueError when there are none."""
    return Spread(median(values), min(values), max(values), len(values))


def overlap(ours: Interval, theirs: Interval) -> bool:
    """Whether the two have a value in common: then a difference may be noise."""
    return ours.low <= theirs.high and theirs.low <= ours.high


def paired(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    margin: float = MARGIN,
    rounds: int = ROUNDS,
) -> Comparison:
    """Compare two series whose runs were taken in turn: the n-th of ours goes with the n-th.

    The ratio is the median of the ratios of the pairs (in logarithms, so that it turns around
    when the series are swapped). Raises ValueError for series of different lengths, for empty
    ones, and for values that are not above zero.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"pairs of {len(ours)} runs and {len(theirs)}: give as many of each")
    check(ours, theirs)
    ratios = [log(a) - log(b) for a, b in zip(ours, theirs, strict=True)]
    middle = median(ratios)
    if len(ratios) >= FEW:
        found = bootstrap(
            lambda pick: median(draw(ratios, pick)), len(ratios), len(ratios) - 1, rounds
        )
    elif len(ratios) >= 3:
        found = student(fmean(ratios), sqrt(variance(ratios) / len(ratios)), len(ratios) - 1)
    else:
        found = None
    return Comparison(spread(ours), spread(theirs), exp(middle), around(middle, found), margin)


def unpaired(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    margin: float = MARGIN,
    rounds: int = ROUNDS,
) -> Comparison:
    """Compare two series that were recorded independently, as those of two Records.

    The ratio is that of the medians. Raises ValueError for an empty series, and for values that
    are not above zero.
    """
    check(ours, theirs)
    one, other = sorted(map(log, ours)), sorted(map(log, theirs))
    middle = log(median(ours)) - log(median(theirs))
    if one > other:  # so that swapped series draw the same numbers
        found = independent(other, one, rounds)
        found = None if found is None else Interval(-found.high, -found.low)
    else:
        found = independent(one, other, rounds)
    return Comparison(spread(ours), spread(theirs), exp(middle), around(middle, found), margin)


# --- intervals, of logarithms --------------------------------------------------------------


def independent(ours: Sequence[float], theirs: Sequence[float], rounds: int) -> Interval | None:
    """The interval of the difference of two independent series."""
    one, other = len(ours), len(theirs)
    fewer, freedom = min(one, other), one + other - 2
    if fewer < 2:
        return None
    if fewer >= FEW:
        return bootstrap(
            lambda pick: median(draw(ours, pick)) - median(draw(theirs, pick)),
            fewer, freedom, rounds,
        )  # fmt: skip
    pooled = ((one - 1) * variance(ours) + (other - 1) * variance(theirs)) / freedom
    return student(fmean(ours) - fmean(theirs), sqrt(pooled * (1 / one + 1 / other)), freedom)


def bootstrap(
    statistic: Callable[[random.Random], float], count: int, freedom: int, rounds: int
) -> Interval:
    """The expanded percentile interval of ROUNDS values of STATISTIC, over COUNT runs or more.

    The numbers that it draws are the same each time, so that one comparison has one answer.
    """
    pick = random.Random(0)
    values = sorted(statistic(pick) for _ in range(rounds))
    outside = NormalDist().cdf(-sqrt(count / (count - 1)) * quantile(freedom))
    skipped = min(int(rounds * outside), (rounds - 1) // 2)
    return Interval(values[skipped], values[-1 - skipped])


def draw(values: Sequence[float], pick: random.Random) -> list[float]:
    """As many of VALUES as there are, each time any of them."""
    return pick.choices(values, k=len(values))


def student(mean: float, error: float, freedom: int) -> Interval:
    """Student's interval around MEAN, of standard error ERROR."""
    half = quantile(freedom) * error
    return Interval(mean - half, mean + half)


def quantile(freedom: int, level: float = LEVEL) -> float:
    """Student's t that is exceeded either way in 1 - LEVEL of the cases.

    By the expansion 26.7.5 of Abramowitz and Stegun; at 95 % it is 0.8 % too small for 2 degrees
    of freedom, and closer for more.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + first / freedom + second / freedom**2 + third / freedom**3 + fourth / freedom**4


def around(middle: float, found: Interval | None) -> Interval | None:
    """FOUND as ratios; it holds MIDDLE, also where a mean and a median lie far apart."""
    if found is None:
        return None
    return Interval(exp(min(found.low, middle)), exp(max(found.high, middle)))


def check(*series: Sequence[float]) -> None:
    """Raise ValueError for what has no ratio."""
    for values in series:
        if not values:
            raise ValueError("a series without runs: there is nothing to compare")
        for value in values:
            if not (isfinite(value) and value > 0):
                raise ValueError(f"a run of {value!r}: a ratio needs figures above zero")
