"""Records built by hand, for what reads and shows them."""

from __future__ import annotations

import random
from typing import Any

from importaudit.record import (
    FORMAT,
    VERSION,
    Cost,
    Environment,
    Event,
    Interpreter,
    Process,
    Record,
    Run,
)


def tiny(**changes: Any) -> Record:
    """One run of a target that imported one module; CHANGES replace its fields."""
    events = [
        Event(0, -1, "__main__", start=0, wall=5_000_000, loader=""),
        Event(1, 0, "one", start=1_000_000, wall=3_000_000, file="<string>", line=1,
              phases={"body": Cost(2_000_000, 1_500_000, 100_000)}, origin="/srv/lib/one.py"),
    ]  # fmt: skip
    fields: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "tool": "0.1.0",
        "created": "2026-01-02T03:04:05+00:00",
        "target": "one",
        "modules": ["one"],
        "interpreter": Interpreter(
            "/srv/bin/python", "3.11.7 (main)", "/srv", "/usr", ["", "/srv/lib"]
        ),
        "environment": Environment({}, "ext4", 2, 0.5, "x86_64", "6.1"),
        "runs": [
            Run("timing", 9_000_000, 8_000_000, {"body": Cost(2_000_000, 1_500_000)}, {}, 1, 1, 0)
        ],
        "representative": 0,
        "processes": [Process(7, events=events, finished=True)],
    }
    return Record(**(fields | changes))


def large(count: int, seed: int = 1) -> Record:
    """A target that imports COUNT modules of 40 packages, some of which many others need."""

    chance = random.Random(seed)
    names = [f"package{n % 40}.part{n % 400}.module{n}" for n in range(1, count + 1)]
    events = [Event(0, -1, "__main__", start=0, wall=count * 100_000, loader="")]
    for number, name in enumerate(names, 1):
        parent = chance.choice(
            (number - 1, number - 1, max(0, number - 2), chance.randrange(number))
        )
        cost = round(chance.paretovariate(1.2) * 20_000)
        events.append(Event(
            number, parent, name, start=number, wall=cost, file="x.py", line=number,
            phases={"body": Cost(cost // 2, cost // 3), "compile": Cost(cost // 2, cost // 2)},
            origin=f"/srv/lib/{name.replace('.', '/')}.py",
        ))  # fmt: skip
    owners: dict[str, list[str]] = {}
    for name in names:
        owners.setdefault(f"{name.partition('.')[0]} 1.0", []).append(name)
    sizes = {name: chance.randrange(100, 100_000) for name in names}
    return tiny(processes=[Process(7, events=events)], distributions=owners, sizes=sizes)
