"""Every module imports alone and without a warning, and the command loads little."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "audits"
SCRIPT = Path(sysconfig.get_path("scripts"), "importaudit")


def module_names() -> list[str]:
    paths = sorted(SOURCE.glob("importaudit/**/*.py"))
    parts = [path.relative_to(SOURCE).with_suffix("").parts for path in paths]
    # The probe is not imported but executed, inside the target.
    return [".".join(part).removesuffix(".__init__") for part in parts if "probe" not in part]


@pytest.mark.parametrize("module", module_names())
def test_module_imports_alone(module: str) -> None:
    # A cycle shows only when this module is the first of it to be imported.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import {module}"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_help_loads_none_of_the_heavy_libraries() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", SCRIPT, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}

    assert "Usage: importaudit" in done.stdout
    assert "click" in loaded  # else the line format changed and the next line proves nothing
    assert loaded & {"rich", "msgspec", "networkx", "importlib_metadata"} == set()
