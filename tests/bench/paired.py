"""Comparing two arms on a noisy machine: runs them in turn, or at the same moment, in pairs."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from importaudit.analysis import statistics

RESULTS = Path(__file__).parents[2] / "docs" / "bench"
PR_SET_THP_DISABLE = 41
Sample = Mapping[str, float]


def quiet() -> None:
    """Take noise away that has nothing to do with the arms, for this process and its children.

    Transparent huge pages come or do not come by the state of the host's memory, and zeroing
    them is up to 5 % of the CPU time of a large import. Hash seeds change the order of sets.
    """
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    os.environ["PYTHONHASHSEED"] = "0"
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        os.environ.pop(name, None)


def interleave(
    arms: Mapping[str, Callable[[], Sample]], pairs: int, warm_up: int = 1
) -> dict[str, list[Sample]]:
    """Run every arm PAIRS times, in turn, the order reversed from one round to the next."""
    names = list(arms)
    for _ in range(warm_up):
        for name in names:
            arms[name]()
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    for _ in range(pairs):
        for name in names:
            samples[name].append(arms[name]())
        names.reverse()
    return samples


def side_by_side(
    arms: Mapping[str, Callable[[], Sample]], pairs: int, warm_up: int = 1
) -> dict[str, list[Sample]]:
    """Run two arms at the same moment, each on a processor of its own, PAIRS times.

    A shared machine is slow for seconds and minutes at a time: what runs at the same moment
    meets the same neighbours. The processors are swapped from one pair to the next, so that a
    slower one is no arm's fault.
    """
    processors = sorted(os.sched_getaffinity(0))[:2]
    assert len(processors) == len(arms) == 2
    samples: dict[str, list[Sample]] = {name: [] for name in arms}

    def one(processor: int, arm: Callable[[], Sample]) -> Sample:
        os.sched_setaffinity(0, {processor})  # of this thread, and so of what it spawns
        return arm()

    with ThreadPoolExecutor(2) as pool:
        for number in range(warm_up + pairs):
            found = list(pool.map(one, processors, arms.values()))
            processors.reverse()
            if number >= warm_up:
                for name, sample in zip(arms, found, strict=True):
                    samples[name].append(sample)
    return samples


def ratio_interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Median of the ratios of pairs, and the ends of its interval; raises for fewer than three."""
    found = statistics.paired(ours, theirs)
    assert found.interval is not None, "no interval of fewer than three pairs"
    return found.ratio, found.interval.low, found.interval.high


def spawn(command: Sequence[str], cwd: Path | None = None) -> Sample:
    """Wall and CPU seconds of COMMAND, from before it is spawned to after it is reaped."""
    began = time.perf_counter()
    child = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    took = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return {"wall": took, "cpu": usage.ru_utime + usage.ru_stime}


def save(name: str, samples: Mapping[str, Sequence[Sample]], **more: object) -> None:
    """Write the raw samples of a benchmark, with the commit and the machine, for the docs."""
    result = {
        "benchmark": name,
        "commit": git("rev-parse", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--", "audits")),
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": machine(),
        **more,
        "samples": samples,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def machine() -> dict[str, object]:
    """What the figures depend on."""
    return {
        "processor": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def git(*words: str) -> str:
    return subprocess.check_output(["git", *words], text=True, cwd=Path(__file__).parent).strip()
