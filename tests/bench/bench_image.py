"""The real sglang in two containers, with bytecode and without: what an audit inside says."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from statistics import median

import engine
import images
import msgspec
from support import command

from importaudit import record as records
from importaudit.record import BytecodeReport, Verdict

SITE = f"/opt/sglang/lib/python{images.VERSION}/site-packages"
TARGET = "sglang.multimodal_gen.runtime.launch_server"
RUNS = "2"
LATER = 3  # sources among 22,000 that are written for a later Python
STATES = ("warm-as-shipped", "cold-as-shipped")


def loadable(image: str, folder: Path) -> tuple[int, int]:
    """How many sources the image's environment has, and how many have usable bytecode."""
    done = command.importaudit("bytecode", "--image", image, SITE, "--json", "-", cwd=folder)
    assert done.code == 0, done.err
    summary = msgspec.json.decode(done.out, type=BytecodeReport).summary
    return summary.verdicts.get(Verdict.LOADABLE, 0), summary.sources


def walls(image: str, folder: Path) -> list[float]:
    """Seconds of median wall time of each of STATES in a container of the image."""
    file = folder / "record.json"
    words = ["--runs", RUNS, "--states", ",".join(STATES), TARGET]
    done = command.importaudit("--image", image, "--json", file, *words, cwd=folder)
    assert done.code == 0, done.err
    runs = records.read(file).runs
    return [median(run.wall for run in runs if run.state == state) / 1e9 for state in STATES]


def bench_image(tmp_path: Path) -> None:
    command.PATIENCE = 1800.0
    os.environ["DOCKER_HOST"], _ = engine.provide()
    with closing(images.client()) as client:
        baked, bare = images.sglang(client)
    counts = {image: loadable(image, tmp_path) for image in (baked, bare)}
    for image, (usable, sources) in counts.items():
        print(f"\n{image}: {usable:,} of {sources:,} sources have bytecode that is loaded")
    times = walls(baked, tmp_path) + walls(bare, tmp_path)
    names = ["warm, baked", "cold, baked", "warm, bare", "cold, bare"]
    for name, wall in zip(names, times, strict=True):
        print(f"{name}: {wall:.1f} s (median of {RUNS})")

    usable, sources = counts[baked]
    assert usable >= sources - LATER
    assert counts[bare][0] == 0
    assert times == sorted(times)  # in the order of size that other machines have them in
