"""What differs between two Records, and how it is drawn."""

from __future__ import annotations

import re

import pytest
from support.edited import COLD, MS, after, earlier, flat, loaded, render, run
from support.records import tiny

from importaudit.analysis.difference import (
    DEFAULT_STATE,
    Contrast,
    Mover,
    by_distribution,
    difference,
)
from importaudit.analysis.statistics import Verdict
from importaudit.record import Failure, Record


def names(found: list[Mover]) -> list[str]:
    return [mover.module for mover in found]


# --- times ---------------------------------------------------------------------------------


def test_each_state_is_compared_by_each_clock() -> None:
    cold, warm = difference(earlier(), after()).states

    assert (cold.state, warm.state) == (COLD, DEFAULT_STATE)
    assert (warm.wall.a.median, warm.wall.b.median) == (500 * MS, 700 * MS)
    assert warm.wall.ratio == pytest.approx(1.4)
    assert warm.wall.difference == pytest.approx(200 * MS)
    assert (warm.wall.verdict, warm.cpu.verdict) == (Verdict.MORE, Verdict.MORE)
    assert (cold.wall.verdict, cold.cpu.verdict) == (Verdict.UNKNOWN, Verdict.NO_DIFFERENCE)


def test_what_a_run_did_is_named_where_it_differs() -> None:
    cold, warm = difference(earlier(), after()).states

    assert warm.counts == []
    assert cold.counts == [
        Contrast("modules", "3", "4"),
        Contrast("bytes from disk", "7000000", "3500000"),
        Contrast("compiled", "3", "0"),
    ]


def test_a_lower_bound_is_said_to_be_one() -> None:
    theirs = after()
    theirs.states[0].lower_bound = "shared with other processes"
    text = render(difference(earlier(), theirs), 100)

    assert "  a lower bound in B: shared with other processes\n" in text
    assert "a lower bound in A" not in text


def test_the_detail_run_is_no_timing_run() -> None:
    assert difference(earlier(), after()).states[1].wall.a.count == 3


def test_one_run_is_too_few() -> None:
    found = difference(tiny(), tiny()).states[0]

    assert (found.wall.ratio, found.wall.interval, found.wall.verdict) == (1, None, "unknown")
    assert "too few runs" in render(difference(tiny(), tiny()), 100)


def test_a_clock_that_stood_still_has_no_ratio() -> None:
    still = tiny(runs=[run(5, 0), run(5, 0), run(5, 0)])
    found = difference(still, still).states[0]

    assert (found.cpu.ratio, found.cpu.verdict) == (None, None)
    assert found.wall.verdict is Verdict.NO_DIFFERENCE


def test_a_state_that_one_lacks_is_not_comparable() -> None:
    less = after()
    less.runs = less.runs[:4]
    found = difference(earlier(), less)

    assert [row.state for row in found.states] == [DEFAULT_STATE]
    assert (found.only_a, found.only_b) == ([COLD], [])
    assert f"not comparable: state {COLD}: run (A), not run (B)" in render(found, 100)
    assert f"not comparable: state {COLD}: not run (A), run (B)" in render(
        difference(less, earlier()), 100
    )


# --- conditions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "part", "field", "value"),
    [
        ("target", "", "target", "other"),
        ("interpreter", "interpreter", "version", "3.12.1 (main)"),
        ("implementation", "interpreter", "cache_tag", "pypy311"),
        ("optimise level", "interpreter", "optimize", 2),
        ("machine", "environment", "machine", "aarch64"),
        ("kernel", "environment", "kernel", "6.2"),
        ("processors", "environment", "processors", 8),
        ("file system", "environment", "file_system", "overlay"),
    ],
)
def test_times_under_other_conditions_are_not_judged(
    what: str, part: str, field: str, value: object
) -> None:
    ours, theirs = earlier(), after()
    owner = getattr(theirs, part) if part else theirs
    was = getattr(getattr(ours, part) if part else ours, field)
    setattr(owner, field, value)
    found = difference(ours, theirs)
    text = render(found, 100)

    said = str(was) or "unknown"
    assert found.not_comparable == [Contrast(what, said, str(value))]
    assert f"not comparable: {what}: {said} (A), {value} (B)" in text
    assert {times.verdict for row in found.states for times in (row.wall, row.cpu)} == {None}
    assert (found.movers_wall, found.movers_cpu) == ([], [])
    assert [one.module for one in found.new] == ["fresh.sub", "fresh"]
    assert text.count("not judged") == 4 + 1
    assert "0.500" in text


@pytest.mark.parametrize("both", [False, True])
def test_a_target_that_failed_is_said_and_not_judged(both: bool) -> None:
    ours, theirs = earlier(), after()
    theirs.failure = Failure("exception", "ImportError: no")
    if both:
        ours.failure = Failure("exception", "ImportError: never")
    found = difference(ours, theirs)
    text = render(found, 100)

    assert found.not_comparable == [Contrast("outcome", "failed" if both else "fine", "failed")]
    assert "failed: ImportError: no\n" in text
    assert ("failed: ImportError: never" in text) == both


def test_what_else_differs_is_said_and_judged() -> None:
    ours, theirs = earlier(), after()
    ours.environment.variables = {"PYTHONHASHSEED": "0", "PYTHONPATH": "x", "PYTHONHOME": ""}
    theirs.environment.variables = {"PYTHONHASHSEED": "1", "PYTHONPATH": "x"}
    theirs.interpreter.prefix = "/other"
    found = difference(ours, theirs)

    assert found.also == [
        Contrast("prefix", "/srv", "/other"),
        Contrast("PYTHONHASHSEED", "0", "1"),
        Contrast("PYTHONHOME", "(empty)", "(not set)"),
    ]
    assert found.not_comparable == []
    assert "also differs: PYTHONHASHSEED: 0 (A), 1 (B)" in render(found, 100)


# --- modules -------------------------------------------------------------------------------


def test_modules_new_and_gone_with_their_own_time() -> None:
    found = difference(earlier(), after())

    assert [(m.module, m.distribution, m.wall // MS) for m in found.new] == [
        ("fresh.sub", "fresh 0.1", 25),
        ("fresh", "fresh 0.1", 20),
    ]
    assert [(m.module, m.distribution, m.cpu // MS) for m in found.gone] == [
        ("old", "tools 1.0", 30)
    ]
    assert by_distribution(found.new) == [("fresh 0.1", 2)]


def test_a_module_made_by_hand_counts_and_a_failed_import_does_not() -> None:
    theirs = after()
    theirs.processes[0].by_hand = []
    gone = [one.module for one in difference(earlier(), theirs).gone]

    assert gone == ["old", "made"]


def test_the_largest_movers_come_first_and_noise_is_called_so() -> None:
    found = difference(earlier(), after())

    for movers in (found.movers_wall, found.movers_cpu):
        assert names(movers) == ["slow", "steady"]
        assert [mover.verdict for mover in movers] == [Verdict.MORE, Verdict.NO_DIFFERENCE]
        assert movers[0].difference == 200 * MS


def test_a_certain_mover_goes_before_a_larger_one_within_noise() -> None:
    ours, theirs = earlier(), after()
    theirs.spreads["steady"] = flat(900, 50, 999)

    assert names(difference(ours, theirs).movers_wall) == ["slow", "steady"]


def test_ranges_of_two_runs_say_nothing() -> None:
    ours, theirs = earlier(), after()
    del ours.runs[3]
    ours.runs = [r for r in ours.runs if not r.state]

    assert {m.verdict for m in difference(ours, theirs).movers_wall} == {Verdict.UNKNOWN}


def test_a_record_beside_itself_does_not_differ() -> None:
    found = difference(earlier(), earlier())

    assert (found.new, found.gone, found.movers_wall, found.movers_cpu) == ([], [], [], [])
    assert {t.verdict for row in found.states for t in (row.wall, row.cpu)} <= {
        Verdict.NO_DIFFERENCE,
        Verdict.UNKNOWN,
    }


def test_a_record_without_processes_can_be_compared() -> None:
    empty = tiny(processes=[], failure=Failure("vanished", "gone"))

    assert [m.module for m in difference(tiny(), empty).gone] == ["one"]
    assert difference(empty, empty).gone == []


# --- drawn ---------------------------------------------------------------------------------

WHOLE = """\
A  one
   /srv/bin/python  Python 3.11.7
   2026-01-02T03:04:05+00:00, importaudit 0.1.0
B  one
   /srv/bin/python  Python 3.11.7
   2026-01-03T03:04:05+00:00, importaudit 0.1.0

cold-as-shipped     A s     B s   B / A  95 % interval
wall              1.000   1.000    1.00   0.80 to 1.26  within noise, wide
CPU               0.500   0.500    1.00   0.98 to 1.02  within noise
  modules 3 → 4, bytes from disk 7,000,000 → 3,500,000, compiled 3 → 0

warm-as-shipped     A s     B s   B / A  95 % interval
wall              0.500   0.700    1.40   1.37 to 1.43  more
CPU               0.480   0.680    1.42   1.40 to 1.43  more

Largest movers, wall    A ms    B ms   B - A
slow                   100.0   300.0  +200.0  more
steady                  50.0    52.0    +2.0  within noise

Largest movers, CPU    A ms    B ms   B - A
slow                  100.0   300.0  +200.0  more
steady                 50.0    52.0    +2.0  within noise

New in B: 2 modules, 45.0 ms of self time, 45.0 of CPU.
  2 of fresh 0.1
  module     self ms  CPU ms
  fresh.sub     25.0    25.0  fresh 0.1
  fresh         20.0    20.0  fresh 0.1

Gone, in A alone: 1 module, 30.0 ms of self time, 30.0 of CPU.
  1 of tools 1.0
  module  self ms  CPU ms
  old        30.0    30.0  tools 1.0

Medians. more, less: the 95 % interval of B / A leaves 1 out. within noise: it does not; wide: it
reaches beyond 5 % more or less, so such a difference may hide in it. Modules are within noise where
the ranges of their self times overlap. Two Records differ as well by what the machine was doing at
the time.
"""


def test_the_whole_report() -> None:
    assert render(difference(earlier(), after()), 100) == WHOLE.removesuffix("\n")


def with_long_names() -> Record:
    record = after()
    tail = ".a_rather_long_package_name.and_a_module_in_it_with_a_long_name"
    for event in record.processes[0].events:
        if event.module.startswith("fresh"):
            event.module += tail
    record.spreads[f"slow{tail}"] = flat(1000, 900, 1100)
    record.distributions["a-distribution-of-a-long-name 1.0.post20260102+cu126"] = [
        event.module for event in record.processes[0].events
    ]
    return record


@pytest.mark.parametrize("width", [60, 79, 80, 120])
def test_nothing_is_wider_than_the_terminal_and_no_figure_is_cut(width: int) -> None:
    ours = earlier()
    ours.spreads |= {n: flat(1, 1, 2) for n in with_long_names().spreads if "." in n}
    for a, b in ((ours, with_long_names()), (ours, tiny()), (with_long_names(), ours)):
        text = render(difference(a, b), width)
        assert max(map(len, text.splitlines())) <= width
        # In the figures an ellipsis would stand where digits or a column are missing.
        assert not re.search(r"\d…|…\d", re.sub(r"\S*[a-z_]\S*", "", text))
    text = render(difference(ours, after()), width)
    assert ("1.37 to 1.43" in text) == (width >= 80)
    assert ("from 80 columns on: the 95 % interval" in text) == (width < 80)
    for word in ("more", "within noise", "within noise, wide"):
        assert word in text


def test_rows_beyond_the_top_are_counted() -> None:
    text = render(difference(earlier(), after()), 100, top=1)

    assert text.count("  … 1 more: --top 2, or --json FILE for all") == 3  # movers twice, new once


def test_what_would_steer_a_terminal_does_not_reach_it() -> None:
    evil = "\x1b[2J\x1b]0;title\x07\x9b1m\rlast"
    theirs = after()
    theirs.target = theirs.interpreter.version = theirs.interpreter.executable = evil
    theirs.environment.variables = {"PYTHONPATH": evil}
    theirs.processes[0].events.append(loaded(9, evil, 1))
    theirs.distributions[evil] = [evil]
    theirs.runs.append(run(1, 1, state=evil))
    text = render(difference(earlier(), theirs), 200)

    assert text.count("last") >= 6
    assert [c for c in text if c != "\n" and not c.isprintable()] == []
