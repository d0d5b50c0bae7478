"""`importaudit bytecode` on the real sglang environment, against stat of the same files.

Whole commands, ours with the start of two interpreters. The other arm walks the same folders: it
leaves out those that no import can name, as ours does.
"""

import os
import shlex
import sysconfig
from pathlib import Path

from bench import paired

from importaudit.measure.survey import survey

PAIRS = int(os.environ.get("PAIRS", "20"))
LIMIT = 3.0  # of the upper end of the interval


def bench_bytecode(sglang_python: Path, tmp_path: Path) -> None:
    paired.quiet()
    found = survey(sglang_python)
    ours = [str(Path(sysconfig.get_path("scripts"), "importaudit")), "bytecode",
            "--python", str(sglang_python), "--json", str(tmp_path / "result.json")]  # fmt: skip
    roots = shlex.join(root.path for root in found.roots)
    theirs = (
        f"find {roots} -mindepth 1 -type d -name '*[!a-zA-Z0-9_]*' -prune"
        f" -o '(' -name '*.py' -o -name '*.{found.facts.cache_tag}.pyc' ')' -print0"
        " | xargs -0 stat"
    )
    samples = paired.interleave(
        {
            "bytecode": lambda: paired.spawn(ours),
            "stat": lambda: paired.spawn(["sh", "-c", theirs]),
        },
        PAIRS,
    )
    wall = {arm: [s["wall"] for s in taken] for arm, taken in samples.items()}
    ratio, low, high = paired.ratio_interval(wall["bytecode"], wall["stat"])
    paired.save("bytecode", samples, sources=found.summary.sources)
    print(f"\nwall, bytecode/stat: {ratio:.2f} ({low:.2f} to {high:.2f}), {PAIRS} pairs,"
          f" {found.summary.sources:,} sources")  # fmt: skip
    assert high < LIMIT
