"""Running the real command, as a user does."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from dataclasses import dataclass, replace
from pathlib import Path

from importaudit import record as records
from importaudit.record import Record

COMMAND = Path(sysconfig.get_path("scripts"), "importaudit")
PATIENCE = 120.0  # seconds for a command; far more than any needs


@dataclass
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str
    file: Path | None = None

    @property
    def record(self) -> Record:
        """The Record that it wrote."""
        assert self.file is not None
        return records.read(self.file)


def importaudit(*words: str | Path, cwd: Path, **variables: str) -> Done:
    """Run ``importaudit WORDS`` in the folder CWD; VARIABLES are put into its environment."""
    environment = os.environ | {"COLUMNS": "200"} | variables
    done = subprocess.run(
        [COMMAND, *words],
        cwd=cwd,
        env={name: value for name, value in environment.items() if value},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    # Strict: whatever the target prints, what we print is text.
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def audit(*words: str | Path, cwd: Path, **variables: str) -> Done:
    """The same with one timing run, of one state, and with the Record written beside CWD."""
    few = ["--runs", "1", "--states", "warm-as-shipped"]
    file = cwd.parent / f"{cwd.name}.record.json"
    done = importaudit(*few, "--json", file, *words, cwd=cwd, **variables)
    return replace(done, file=file)
