"""What a timing run costs in CPU time, against the same import untraced, on the real sglang."""

import os
from pathlib import Path

from bench import paired

from importaudit.measure import launch
from importaudit.plan import Target

MODULE = "sglang.multimodal_gen.runtime.launch_server"
PAIRS = int(os.environ.get("PAIRS", "30"))
LIMIT = 1.03  # of the upper end of the interval


def bench_overhead(sglang_python: Path) -> None:
    paired.quiet()

    def untraced() -> paired.Sample:
        return paired.spawn([str(sglang_python), "-B", "-c", f"import {MODULE}"])

    def traced() -> paired.Sample:
        finished = launch.run(sglang_python, Target(modules=(MODULE,)))
        assert finished.main.closed is not None, finished.stderr
        return {"wall": (finished.exited - finished.spawned) / 1e9, "cpu": finished.cpu / 1e9}

    samples = paired.side_by_side({"traced": traced, "untraced": untraced}, PAIRS)
    cpu = {arm: [s["cpu"] for s in found] for arm, found in samples.items()}
    ratio, low, high = paired.ratio_interval(cpu["traced"], cpu["untraced"])
    paired.save("overhead", samples, module=MODULE)
    print(f"\nCPU traced/untraced: {ratio:.4f} ({low:.4f} to {high:.4f}), {PAIRS} pairs")
    assert high < LIMIT
