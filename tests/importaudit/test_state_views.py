"""The states as they are drawn: the table, the cold stack, bytecode, and what to do next."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.console import Console
from support.records import tiny

from importaudit.record import Bytecode, BytecodeRow, Cost, Record, Run, State, Verdict
from importaudit.views import terminal

MS = 1_000_000
VM = "a virtual machine: its host may cache the disk"
WALLS = {
    "warm-complete": (100, 101, 103),
    "warm-as-shipped": (200, 201, 204),
    "warm-none": (400, 402, 403),
    "cold-as-shipped": (900, 901, 950),
    "cold-none": (1300, 1310, 1290),
}
COMPILED = {"warm-as-shipped": 3, "cold-as-shipped": 3, "warm-none": 9, "cold-none": 9}


def run(state: str, wall: int) -> Run:
    compiling = COMPILED.get(state, 0) * 30
    asleep = wall // 2 if state.startswith("cold") else 0
    rows = {
        "body": Cost((wall - compiling) * MS, (wall - compiling - asleep) * MS),
        "compile": Cost(compiling * MS, compiling * MS),
    }
    return Run(
        "timing", wall * MS, (wall - asleep) * MS, rows, {}, 12, 11, 0, state=state,
        disk=7_000_000 if asleep else 0, faults=17 if asleep else 0, files=1234,
        compiled=COMPILED.get(state, 0),
    )  # fmt: skip


def state(name: str, rows: dict[str, Cost]) -> State:
    cache, _, bytecode = name.partition("-")
    cold = cache == "cold"
    return State(
        name, cache, bytecode, files=1300, bytes=50_000_000,
        resident=500_000 if cold else 50_000_000,
        lower_bound=VM if cold else "", distributions={"one 1.0": rows},
    )  # fmt: skip


@pytest.fixture
def record() -> Record:
    runs = [run(name, wall) for name, walls in WALLS.items() for wall in walls]
    first = {one.state: one.rows for one in reversed(runs)}
    verdicts = {Verdict.MISSING: 3, Verdict.LOADABLE: 6}
    row = BytecodeRow("one 1.0", "site-packages", 9, verdicts, 4096)
    return tiny(
        runs=runs,
        representative=3,
        states=[state(name, first[name]) for name in WALLS],
        bytecode=Bytecode(4, 1, verdicts, [row], 4096),
        distributions={"one 1.0": ["one"]},
    )


def drawn(record: Record, width: int) -> str:
    out = StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    terminal.show(record, console, 5)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_the_sections(record: Record) -> None:
    text = drawn(record, 98)

    assert text[text.index("States") : text.index("Distributions")] == SECTIONS


SECTIONS = """\
States                        wall s                CPU s
warm-complete    0.10 (0.10 to 0.10)  0.10 (0.10 to 0.10)
warm-as-shipped  0.20 (0.20 to 0.20)  0.20 (0.20 to 0.20)
warm-none        0.40 (0.40 to 0.40)  0.40 (0.40 to 0.40)
cold-as-shipped  0.90 (0.90 to 0.95)  0.45 (0.45 to 0.47)
cold-none        1.30 (1.29 to 1.31)  0.65 (0.65 to 0.66)
                 MB read   files  major faults  compiled
warm-complete        0.0   1,234             0         0
warm-as-shipped      0.0   1,234             0         3
warm-none            0.0   1,234             0         9
cold-as-shipped      7.0   1,234            17         3
cold-none            7.0   1,234            17         9
  median (least to most) of 3 runs each, interleaved
  cold-as-shipped, cold-none: 50 of 50 MB evicted (99.0 %, 1,300 files); lower bound: a virtual
machine: its host may cache the disk

Where the cold time goes           wall s   share
module bodies                       0.101  11.2 %  one 1.0 0.10
unmarshalling                       0.000   0.0 %
dlopen                              0.000   0.0 %
garbage collection                  0.000   0.0 %
finding and reading, cached         0.000   0.0 %
interpreter start and end           0.000   0.0 %
compiling what has no bytecode      0.090  10.0 %  one 1.0 0.09
waiting for the disk                0.450  49.9 %  one 1.0 0.45
kernel's work for that, and noise   0.260  28.9 %
cold-as-shipped                     0.901
  The first rows are those of warm-complete; the others come on top of them.

Bytecode of the chain
1 of 4 package directories have no usable bytecode (25.0 %); 9 sources. Baking it adds about 0.004
MB.
What is missing costs 0.10 s of CPU at each start (measured: warm-as-shipped against
warm-complete, 3 pairs of runs).
Having none at all costs 0.30 s of CPU at each start (measured: warm-none against warm-complete, 3
pairs of runs).
Distribution                 sources  loadable  missing  adds MB
one 1.0       site-packages        9         6        3    0.004

"""


def test_what_to_do_next_ends_the_report(record: Record) -> None:
    text = drawn(record, 120)

    assert (
        "What to do next\n    0.10 s  bake the bytecode  (measured: overlay, 3 pairs of runs)"
        in text
    )
    assert "/srv/bin/python -m compileall -q -j 0" in text


@pytest.mark.parametrize("width", [58, 60, 72, 80, 100, 115, 160])
def test_no_figure_is_cut_and_nothing_is_wider(record: Record, width: int) -> None:
    text = drawn(record, width)
    table = text[text.index("States") : text.index("Bytecode of the chain")]

    assert max(map(len, text.splitlines())) <= width
    assert re.findall(r"^cold-none.*", table, re.MULTILINE)[-1].split()[-1] == "9"
    assert "901" in re.sub(r"\s+", "", table)  # 0.901, the whole stack
    if width < 72:
        assert "from 72 columns on: least and most" in " ".join(text.split())
    else:
        assert "1.30 (1.29 to 1.31)" in table


def test_one_run_a_state_has_no_spread_and_no_advice(record: Record) -> None:
    record.runs = [run(name, walls[0]) for name, walls in WALLS.items()]
    record.representative = 1
    text = drawn(record, 120)

    assert "1.30 (one run)" in text
    assert "interleaved" not in text
    assert "What to do next" not in text


def test_a_state_that_is_not_what_its_name_says_is_told(record: Record) -> None:
    record.states[0].resident = 20_000_000
    for one in record.runs:
        one.compiled += one.state == "warm-complete"
    text = " ".join(drawn(record, 120).split())

    assert "warm-complete: only 40.0 % of the files' bytes were in the page cache" in text
    assert "warm-complete: 1 module compiled all the same" in text
    assert "warm-none: only" not in text


def test_a_single_state_needs_no_table(record: Record) -> None:
    record.states = record.states[1:2]
    record.runs = [one for one in record.runs if one.state == "warm-as-shipped"]
    record.representative = 0

    assert "States" not in drawn(record, 120)


def test_control_characters_in_names_do_not_reach_the_terminal(record: Record) -> None:
    rows = record.states[3].distributions.pop("one 1.0")
    for one in record.states:
        one.distributions = {"ev\x1b[31mil": rows}

    assert "\x1b" not in drawn(record, 120)
