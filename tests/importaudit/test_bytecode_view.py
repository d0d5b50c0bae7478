"""What ``importaudit bytecode`` shows, and what its gates say."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from support.bytecode import report

from importaudit.cli.bytecode import gates, parse_verdicts
from importaudit.errors import UsageError
from importaudit.record import Bytecode, Verdict
from importaudit.views import bytecode as view

# --- gates ---------------------------------------------------------------------------------


def test_gates_name_themselves_and_the_numbers() -> None:
    found = Bytecode(8, 2, {Verdict.LOADABLE: 10, Verdict.STALE: 3}, [])

    assert gates(found, [Verdict.STALE, Verdict.MISSING], 24.9) == [
        "--fail-on stale: 3 of 13 sources",
        "--max-missing-percent 24.9: 25.0 % (2 of 8 package directories)",
    ]
    assert gates(found, [Verdict.MISSING], 25) == []


def test_verdicts_are_parsed() -> None:
    assert parse_verdicts("stale, missing", verify=False) == [Verdict.STALE, Verdict.MISSING]
    assert parse_verdicts(None, verify=False) == []
    assert parse_verdicts("not-compilable", verify=True) == [Verdict.NOT_COMPILABLE]


@pytest.mark.parametrize("words", ["", "loadable", "stale,wrong", "not-compilable"])
def test_wrong_verdicts_are_refused(words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_verdicts(words, verify=False)

    if words != "not-compilable":
        assert "one of missing, stale, other-tag, wrong-magic" in caught.value.hint


# --- view ----------------------------------------------------------------------------------


def drawn(width: int, top: int = 15, **changes: Any) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    view.show(report(**changes), console, top)
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def test_the_whole_report() -> None:
    expected = """\
/srv/venv/bin/python  Python 3.11.7
looks for *.cpython-311.opt-1.pyc
1 of 2 package directories have no usable bytecode (50.0 %); 4 sources. Baking it adds about 1.5 MB.

  loadable              1
  missing               2
  stale                 1  1 mtime

Distribution                 sources  loadable  missing   stale  adds MB
torch 2.0     site-packages        3         1        2       0      1.5
/srv/own      path                 1         0        0       1      0.0

Next (sealed folders): /srv/venv/bin/python -m compileall -q -j 0 -o 1 --invalidation-mode\
 unchecked-hash /srv/venv/site-packages
Next (edited folders): /srv/venv/bin/python -m compileall -q -j 0 -f -o 1 --invalidation-mode\
 checked-hash /srv/own
Some may be templates that never compile: --verify tells them apart.

Note: cannot look into /srv/x: Permission denied."""
    assert drawn(100) == expected


def test_a_narrow_terminal_has_fewer_columns_and_no_line_too_long() -> None:
    text = drawn(60, top=1)

    assert "  … and 1 more: --top 2, or --json FILE for all" in text
    table = text[text.index("Distribution") : text.index("Next")].splitlines()
    assert table[0].split() == ["Distribution", "sources", "unusable", "adds", "MB"]
    assert max(map(len, table)) <= 60


def test_names_cannot_steer_the_terminal() -> None:
    text = drawn(100, notes=["a\x1b[31mb\x07\nc"])

    assert "\x1b" not in text
    assert "ab\ufffd c" in text
