"""The report: whole rendered output of small Records, at several widths."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from support.records import tiny

from importaudit.record import (
    Cost,
    Edge,
    Environment,
    Event,
    Failure,
    FirstUse,
    HotLine,
    Interpreter,
    Link,
    Process,
    Record,
    Run,
    Spread,
)
from importaudit.views import terminal

MS = 1_000_000
SITE = "/srv/lib/python3.11/site-packages"


def body(own: int) -> dict[str, Cost]:
    """Phases of an import of OWN milliseconds, one in ten of them finding."""
    return {
        "find": Cost(own * MS // 10, own * MS // 10, 0),
        "body": Cost(own * MS * 9 // 10, own * MS * 8 // 10, own * MS // 20),
        "gc": Cost(7 * MS, 7 * MS, 0),
    }


def example() -> Record:
    """Two packages of one distribution, a shared module, and a lazy target."""

    def loaded(number: int, parent: int, name: str, wall: int, own: int, **more: Any) -> Event:
        origin = f"{SITE}/{name.replace('.', '/')}.py"
        return Event(number, parent, name, start=number * MS, wall=wall * MS, phases=body(own),
                     line=number * 10, origin=origin, **more)  # fmt: skip

    events = [
        Event(0, -1, "__main__", start=0, wall=900 * MS, phases=body(20), loader=""),
        loaded(1, 0, "actor", 880, 100, file="<string>"),
        loaded(2, 1, "numbers_", 500, 300),
        loaded(3, 2, "shared", 200, 200),
        loaded(4, 1, "tools", 280, 280),
        Event(5, 4, "absent", start=5 * MS, outcome="failed", error="ImportError", loader=""),
    ]
    rows = {
        "start": Cost(30 * MS, 28 * MS, 1 * MS),
        "find": Cost(90 * MS, 90 * MS, 0),
        "body": Cost(810 * MS, 720 * MS, 40 * MS),
        "gc": Cost(42 * MS, 42 * MS, 0),
        "shutdown": Cost(8 * MS, 8 * MS, 0),
        "unattributed": Cost(-400, -400, 0),
    }
    apart = {"threads": 55 * MS, "children": 1 * MS}
    run = Run("timing", 980 * MS, 944 * MS, rows, apart, 5, 4, 0)
    slower = Run("timing", 1230 * MS, 1100 * MS, rows, apart, 5, 4, 0)
    faster = Run("timing", 950 * MS, 900 * MS, rows, apart, 5, 4, 0)
    source = "TABLE = [expensive(number) for number in range(1_000_000) if number % 7 in WANTED]"
    return tiny(
        target="actor",
        modules=["actor"],
        interpreter=Interpreter(
            "/srv/bin/python", "3.11.7 (main, Dec  4 2023) [GCC]", "/srv", "/usr",
            ["", "/srv/lib/python3.11", SITE], optimize=2,
        ),
        environment=Environment({"PYTHONDONTWRITEBYTECODE": "1"}, "overlay", 1, 1.25, "x86_64",
                                "6.1"),
        runs=[Run("detail", 2000 * MS, 1900 * MS, {}, {}, 5, 4, 0), slower, run, faster],
        representative=2,
        processes=[
            Process(7, events=events, by_hand=["made"], finished=True),
            Process(8, parent=7, started_by="fork", events=events[:2], finished=True),
        ],
        spreads={"actor": Spread([100 * MS] * 3, [100 * MS] * 3)},
        edges={"tools": [Edge("shared", 3)], "actor": [Edge("numbers_", 20)]},
        lines=[
            HotLine("tools", f"{SITE}/tools.py", 7, 200 * MS, source),
            HotLine("tools", f"{SITE}/tools.py", 9, 5 * MS, "x = 1"),  # too little for a row
            HotLine("shared", f"{SITE}/shared.py", 1, 4 * MS, "import this"),
        ],
        distributions={
            "(the command itself)": ["__main__"],
            "actor 1.0": ["actor"],
            "maths 2.5.1": ["numbers_", "shared"],
            "tools 3": ["tools"],
            "(no distribution)": ["absent", "made"],
        },
        first_use=FirstUse(["actor.a", "actor.b", "actor.c", "actor.d"], 12, 1500 * MS, 1400 * MS,
                           ["actor.d"]),
        notes=["no scheduler statistics here: runnable time is counted as blocked"],
        output_lines=3,
    )  # fmt: skip


def failing() -> Record:
    """A target that failed two imports deep, with more output than is shown."""
    chain = [Link("top", "<string>", 1), Link("top.middle", f"{SITE}/top/__init__.py", 30),
             Link("top.bottom", f"{SITE}/top/middle.py", 4)]  # fmt: skip
    said = [f"warning {n}" for n in range(42)]
    said += ["Traceback (most recent call last):", "  …", "ImportError: no"]
    return tiny(
        target="top",
        runs=[Run("timing", 50 * MS, 45 * MS, {"start": Cost(20 * MS, 20 * MS)}, {}, 3, 0, 1)],
        processes=[Process(7)],
        failure=Failure("exception", "ImportError: no, while importing top.bottom",
                        "run it alone", chain, "\n".join(said)),
    )  # fmt: skip


def render(record: Record, width: int, top: int = 15) -> str:
    """The report as a pipe gets it, without the blanks that end a line."""
    stream = StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    terminal.show(record, console, top)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


# --- whole reports -------------------------------------------------------------------------

EXAMPLE = """\
actor
/srv/bin/python  Python 3.11.7
PYTHONDONTWRITEBYTECODE=1 · optimised (-OO) · overlay file system · 1 processor · load 1.2 ·
bytecode not written (-B)

Wall 0.98 s (0.95 to 1.23, 3 runs), CPU 0.94 s (0.90 to 1.10, 3 runs) from exec to exit; 5 imports,
4 modules. Below: the run of median wall time.

                            wall s  on CPU  runnable  blocked   share
interpreter start and site   0.030   0.028     0.001    0.001   3.1 %
finding (path scan, stat)    0.090   0.090     0.000    0.000   9.2 %
module bodies                0.810   0.720     0.040    0.050  82.7 %
garbage collection           0.042   0.042     0.000    0.000   4.3 %
shutdown                     0.008   0.008     0.000    0.000   0.8 %
unattributed                 0.000   0.000     0.000    0.000   0.0 %
other threads (CPU)                  0.055

Distributions  self s  exclusive  cumulative   below  first imported at
actor 1.0       0.100      0.880       0.880       3  <string>:10
maths 2.5.1     0.500      0.500       0.500       1  actor.py:20
tools 3         0.280      0.280       0.280       0  actor.py:40

Modules   self s  exclusive  cumulative   below  first imported at
actor      0.100      0.880       0.880       3  <string>:10
numbers_   0.300      0.300       0.500       1  actor.py:20
tools      0.280      0.280       0.280       0  actor.py:40
shared     0.200      0.200       0.200       0  numbers_.py:30

self: without what it imports and without collections. exclusive: what goes away if it is never
imported (a package with its submodules); the rest is needed elsewhere too. cumulative: while it was
imported first. below: modules loaded meanwhile.

Hottest lines  sampled s
tools.py:7         0.200  TABLE = [expensive(number) for number in range(1_000_000) if number % 7 i…
shared.py:1        0.004  import this
  and 1 more below 20 ms: --json FILE for all

The target is lazy itself: it names 4 modules that it has not loaded (actor.a, actor.b, actor.c, …).
Importing them as well loads 12 modules more and takes 1.5 s more, 1.4 of CPU (one run). 1 of them
failed.

Note: no scheduler statistics here: runnable time is counted as blocked.
Note: 1 child process with 1 import recorded apart: 8 (fork).
Note: 1 module put into sys.modules by hand, without an import.
Note: the target printed 3 lines.
"""

FAILING = """\
top
/srv/bin/python  Python 3.11.7
ext4 file system · 2 processors · load 0.5 · bytecode not written (-B)

Failed: ImportError: no, while importing top.bottom
  top  <string>:1
  └ top.middle  /srv/lib/python3.11/site-packages/top/__init__.py:30
    └ top.bottom  /srv/lib/python3.11/site-packages/top/middle.py:4
The target's own output, stderr:
  … 5 lines before, all in --json
  warning 5
  warning 6
  warning 7
  warning 8
  warning 9
  warning 10
  warning 11
  warning 12
  warning 13
  warning 14
  warning 15
  warning 16
  warning 17
  warning 18
  warning 19
  warning 20
  warning 21
  warning 22
  warning 23
  warning 24
  warning 25
  warning 26
  warning 27
  warning 28
  warning 29
  warning 30
  warning 31
  warning 32
  warning 33
  warning 34
  warning 35
  warning 36
  warning 37
  warning 38
  warning 39
  warning 40
  warning 41
  Traceback (most recent call last):
    …
  ImportError: no
Next: run it alone

"""


@pytest.mark.parametrize(
    ("record", "expected"), [(example(), EXAMPLE), (failing(), FAILING)], ids=["fine", "failing"]
)
def test_the_whole_report(record: Record, expected: str) -> None:
    assert render(record, 100) == expected.removesuffix("\n")


# --- widths --------------------------------------------------------------------------------


def with_long_names() -> Record:
    """The example with names, folders and source lines that no terminal has room for."""
    record = example()
    tail = "a_rather_long_package_name.and_a_module_in_it_with_a_long_name"
    renamed = {"numbers_": f"numbers_.{tail}", "shared": f"shared.{tail}"}
    for event in record.processes[0].events:
        if event.module in renamed:
            event.module = renamed[event.module]
            event.origin = f"{SITE}/{event.module.replace('.', '/')}.py"
    record.distributions["a-distribution-of-a-long-name 2.5.1.post20260102+cu126"] = [
        renamed[name] for name in record.distributions.pop("maths 2.5.1")
    ]
    record.lines[0].file = f"{SITE}/{tail.replace('.', '/')}.py"
    return record


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("make", [example, with_long_names, failing])
def test_nothing_is_wider_than_the_terminal_and_no_figure_is_cut(
    make: Callable[[], Record], width: int
) -> None:
    text = render(make(), width)

    assert max(map(len, text.splitlines())) <= width
    # In the figures an ellipsis would stand where digits or a column are missing.
    assert not re.search(r"\d…|…\d", re.sub(r"\S*[a-z_]\S*", "", text))
    if make is not failing:
        for line in ("0.810   0.720     0.040    0.050  82.7 %", "0.500      0.500       0.500"):
            assert line in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_an_ellipsis_stands_only_where_something_was_cut(width: int) -> None:
    whole = render(with_long_names(), 500)
    full = {word for line in whole.splitlines() for word in line.split("  ") if word}
    cut = [
        word.strip()
        for line in render(with_long_names(), width).splitlines()
        for word in line.split("  ")
        if "…" in word and "lazy" not in line and "actor.b" not in line
    ]

    assert cut
    for word in cut:
        start, _, end = word.partition("…")
        assert any(w.strip().startswith(start) and w.strip().endswith(end) for w in full), word


def test_with_room_nothing_is_cut() -> None:
    text = render(with_long_names(), 500)

    assert text.count("…") == 1  # the fourth of the modules that first use would load
    assert "range(1_000_000) if number % 7 in WANTED]" in text


def test_a_narrow_terminal_is_told_which_column_it_lacks() -> None:
    note = "from 80 columns on: where each was first imported"

    assert "first imported at" not in render(example(), 79)
    assert render(example(), 79).count(note) == 2
    assert render(example(), 80).count("first imported at") == 2
    assert note not in render(example(), 80)


def test_rows_beyond_the_top_are_counted() -> None:
    text = render(example(), 100, top=3)

    assert "  … 1 more: --top 4, or --json FILE for all" in text
    assert text.count(" more: --top") == 1  # of the distributions, none is left out
    assert "… 2 more: --top 3" in render(example(), 100, top=1)


# --- parts ---------------------------------------------------------------------------------


def test_a_failed_import_is_no_row_and_what_it_imported_is() -> None:
    events = [
        Event(0, -1, "__main__", start=0, wall=9 * MS, loader=""),
        Event(1, 0, "optional", start=1, wall=8 * MS, outcome="failed", error="E", line=1),
        Event(2, 1, "heavy", start=2, wall=7 * MS, phases={"body": Cost(7 * MS, 0, 0)}, line=2),
    ]
    text = render(tiny(processes=[Process(7, events=events)]), 100)

    assert "optional" not in text
    assert re.search(r"heavy +0\.007 +0\.007 +0\.007", text)


def test_a_negative_remainder_is_shown_and_nothing_has_the_sign_of_zero() -> None:
    rows = {"start": Cost(2 * MS, 9 * MS, 0), "unattributed": Cost(-3 * MS, -100, 0)}
    text = render(tiny(runs=[Run("timing", 9 * MS, 8 * MS, rows, {}, 1, 1, 0)]), 100)

    assert re.search(r"unattributed +-0\.003 +0\.000 +0\.000 +-0\.003 +-33\.3 %", text)
    assert re.search(r"start and site +0\.002 +0\.009 +0\.000 +-0\.007", text)


def test_first_use_that_failed_claims_no_time() -> None:
    text = render(tiny(first_use=FirstUse(["one.a"], failed=["one.a"])), 200)

    assert "it names 1 module that it has not loaded (one.a)." in text
    assert "Importing them failed here, so what first use would add is not known." in text
    assert "takes" not in text


def test_names_that_look_like_markup_are_shown_as_they_are() -> None:
    text = render(tiny(target="[bold]one[/bold] :smile:", notes=["see [red]this[/red]"]), 100)

    assert text.startswith("[bold]one[/bold] :smile:\n")
    assert "Note: see [red]this[/red]." in text


def test_what_would_steer_a_terminal_does_not_reach_it() -> None:
    evil = "\x1b[2J\x1b]0;title\x07\x9b1m\rlast"
    events = [
        Event(0, -1, "__main__", start=0, wall=9 * MS, loader=""),
        Event(1, 0, evil, start=1, wall=8 * MS, file=f"/{evil}.py", line=1),
    ]
    record = tiny(
        target=evil,
        interpreter=Interpreter(f"/{evil}", "3.11.7", "", "", []),
        environment=Environment({"PYTHONPATH": evil}, "ext4", 2, 0.5, "x86_64", "6.1"),
        processes=[Process(7, events=events)],
        lines=[HotLine("m", f"/{evil}", 1, MS, evil)],
        distributions={evil: [evil]},
        first_use=FirstUse([evil]),
        notes=[evil],
        failure=Failure("exception", evil, evil, [Link(evil, evil, 1)], f"said\n{evil}\n"),
    )
    text = render(record, 200)

    assert text.count("last") >= 12
    assert [c for c in text if c != "\n" and not c.isprintable()] == []
