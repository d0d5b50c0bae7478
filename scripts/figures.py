"""Puts the figures of docs/bench into README and docs, between markers that name them.

    <!-- figure: NAME -->...<!-- end -->

`make bench` measures and then calls this; with --check nothing is written, and the exit status
is 1 when a document differs from what the measurements say.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent.parent
RESULTS = HERE / "docs" / "bench"
MARKED = re.compile(r"(<!-- figure: ([a-z-]+) -->)(.*?)(<!-- end -->)", re.DOTALL)


def result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def overhead() -> str:
    """The cost of tracing, with its interval and where it was measured."""
    sys.path.insert(0, str(HERE / "tests"))
    from bench.paired import ratio_interval

    found = result("overhead")
    samples = found["samples"]
    traced, untraced = ([s["cpu"] for s in samples[arm]] for arm in ("traced", "untraced"))
    ratio, low, high = ratio_interval(traced, untraced)
    return (
        f"{ratio:.3f} times the CPU time of an untraced one (95 % interval {low:.3f} to"
        f" {high:.3f}, {len(traced)} interleaved pairs, {median(untraced):.1f} CPU-s untraced,"
        f" commit {found['commit'][:9]}, {found['machine']['processor']})"
    )


def startup() -> str:
    """What `importaudit --help` takes beside an interpreter that does nothing."""
    samples = result("startup")["samples"]
    shown, bare = (1000 * median(s["wall"] for s in samples[arm]) for arm in ("help", "bare"))
    return f"{shown:.0f} ms, of which the bare interpreter {bare:.0f}"


def bytecode() -> str:
    """How long judging all bytecode takes, beside stat of the same files."""
    sys.path.insert(0, str(HERE / "tests"))
    from bench.paired import ratio_interval

    found = result("bytecode")
    samples = found["samples"]
    ours, stat = ([s["wall"] for s in samples[arm]] for arm in ("bytecode", "stat"))
    ratio, low, high = ratio_interval(ours, stat)
    return (
        f"{median(ours):.1f} s for {found['sources']:,} sources, {ratio:.2f} times what"
        f" `find … | xargs stat` takes over them and their bytecode (95 % interval {low:.2f} to"
        f" {high:.2f}, {len(ours)} interleaved pairs)"
    )


def report() -> str:
    """The README's report, as it was printed."""
    return f"\n\n```text\n{(RESULTS / 'report.txt').read_text().rstrip()}\n```\n\n"


FIGURES: dict[str, Callable[[], str]] = {
    "overhead": overhead,
    "startup": startup,
    "bytecode": bytecode,
    "report": report,
}


def documents() -> list[Path]:
    return [HERE / "README.md", *sorted((HERE / "docs").glob("*.md"))]


def filled(text: str) -> str:
    """TEXT with every marked figure as the measurements have it."""
    return MARKED.sub(lambda m: m[1] + FIGURES[m[2]]() + m[4], text)


def main() -> int:
    stale = [path for path in documents() if filled(path.read_text()) != path.read_text()]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.name} differs from docs/bench: run scripts/figures.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(filled(path.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
