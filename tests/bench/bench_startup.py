"""How long a user waits for `importaudit --help`, against an interpreter that does nothing."""

import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from statistics import median

SCRIPT = Path(sysconfig.get_path("scripts"), "importaudit")


def seconds(*command: str | Path) -> float:
    def once() -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    return median(once() for _ in range(15))


def bench_help() -> None:
    bare = 1000 * seconds(sys.executable, "-c", "")
    shown = 1000 * seconds(sys.executable, SCRIPT, "--help")
    print(f"\nimportaudit --help: {shown:.0f} ms, of which the interpreter {bare:.0f}")
