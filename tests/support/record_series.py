"""Records the series that the tests of the statistics judge.

    PYTHONPATH=tests .venv/bin/python -m support.record_series quiet|neighbours|hogs

Arms in turn, each a fresh interpreter that imports a generated package: `base`, `again` and
`witness` do the same work, the bodies of `more` do a quarter more. NAME says what was going on
beside them: `quiet` is recorded until the machine was, or TRIES times, of which the quietest is
kept; `neighbours` is whatever else a shared host was doing, and `hogs` are two processes that keep
a processor busy each. How quiet it was is judged by `witness`, which is compared with nothing:
to pick by an arm is to pick a recording in which this arm was lucky. (The quiet series kept is
the quietest of two such sessions; the other two are older than the witness and lack it.)
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import paired
from support.targets import write_tree

DATA = Path(__file__).parents[1] / "importaudit" / "data"
ROUNDS = 10
MODULES = 30
WORK = 100_000  # turns of the loop in each body; 30 of these are about 0.3 s
HOGS = 2
TRIES = 15
QUIET = 1.15  # times the least CPU time, for the most


def package(name: str, work: int) -> dict[str, str]:
    """The files of a package that imports MODULES modules, each of which turns a loop."""
    body = f"total = 0\nfor number in range({work}):\n    total += number * number\n"
    files = {f"{name}/part_{n}.py": body for n in range(MODULES)}
    files[f"{name}/__init__.py"] = "".join(f"import {name}.part_{n}\n" for n in range(MODULES))
    return files


@contextmanager
def hogs(count: int) -> Iterator[None]:
    """COUNT processes that do nothing but keep a processor busy."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def record(root: Path) -> Mapping[str, Sequence[paired.Sample]]:
    """Wall and CPU seconds of each arm, ROUNDS times in turn."""
    names = {"base": "base", "witness": "base", "more": "more", "again": "base"}
    arms = {
        arm: partial(paired.spawn, [sys.executable, "-c", f"import {name}"], root)
        for arm, name in names.items()
    }
    return paired.interleave(arms, ROUNDS)


def unrest(samples: Mapping[str, Sequence[paired.Sample]]) -> float:
    """How far apart the runs of `witness` are, as a ratio of CPU times."""
    cpu = [sample["cpu"] for sample in samples["witness"]]
    return max(cpu) / min(cpu)


def recordings(root: Path, tries: int) -> list[Mapping[str, Sequence[paired.Sample]]]:
    """As many as it takes until one is quiet, TRIES at most; the quietest is the last."""
    found = [record(root)]
    while len(found) < tries and unrest(found[-1]) > QUIET:
        found.append(record(root))
    return sorted(found, key=unrest, reverse=True)


def main(name: str) -> None:
    paired.quiet()
    tries = TRIES if name == "quiet" else 1
    with TemporaryDirectory() as folder, hogs(HOGS if name == "hogs" else 0):
        root = write_tree(Path(folder), package("base", WORK) | package("more", WORK * 5 // 4))
        found = recordings(root, tries)
    result = {
        "made by": "tests/support/record_series.py",
        "unit": "seconds",
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": paired.machine(),
        "recordings": len(found),
        "samples": found[-1],
    }
    (DATA / f"series-{name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
