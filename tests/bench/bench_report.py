"""The report that the README shows: one real audit, as text."""

import os
import subprocess
import sysconfig
from pathlib import Path

from bench import paired

COMMAND = "importaudit sglang.multimodal_gen.runtime.launch_server --top 5"


def bench_report(sglang_python: Path) -> None:
    name, *arguments = COMMAND.split()
    script = Path(sysconfig.get_path("scripts"), name)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    report = subprocess.run(
        [script, "--python", sglang_python, *arguments],
        env={**environment, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    # The folder of the environment is this machine's own business.
    report = report.replace(str(sglang_python.parent.parent), "/srv/venv")
    text = "\n".join(line.rstrip() for line in report.splitlines())
    (paired.RESULTS / "report.txt").write_text(f"$ {COMMAND}\n{text}\n")
