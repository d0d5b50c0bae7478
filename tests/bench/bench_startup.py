"""How long a user waits for `importaudit --help`, against an interpreter that does nothing."""

import sys
import sysconfig
from pathlib import Path

from bench import paired


def bench_startup() -> None:
    script = str(Path(sysconfig.get_path("scripts"), "importaudit"))
    samples = paired.interleave(
        {
            "help": lambda: paired.spawn([script, "--help"]),
            "bare": lambda: paired.spawn([sys.executable, "-c", ""]),
        },
        pairs=20,
    )
    paired.save("startup", samples)
