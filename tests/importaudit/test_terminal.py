"""The report: whole rendered output of small Records, at several widths."""

from __future__ import annotations

from io import StringIO
from textwrap import dedent
from typing import Any

import pytest
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
from rich.console import Console
from support.records import tiny

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
        runs=[slower, run, faster, Run("detail", 2000 * MS, 1900 * MS, {}, {}, 5, 4, 0)],
        representative=1,
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


# --- tests
