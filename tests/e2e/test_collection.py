"""pytest skips folders of certain names ("build" is one) without a word: none of ours is."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_file_is_collected() -> None:
    output = subprocess.check_output(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", ""],
        cwd=ROOT,
        text=True,
    )
    collected = {line.split("::")[0] for line in output.splitlines() if "::" in line}

    written = {str(path.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py")}
    assert collected == written
