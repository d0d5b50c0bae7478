"""The environment that the other tests here measure is the one that is written down."""

import subprocess
from pathlib import Path

import env

_VERSIONS = """
from importlib.metadata import distributions
for one in distributions():
    print(one.name + "==" + one.version)
"""


def normal(requirement: str) -> str:
    name, _, version = requirement.partition("==")
    return name.lower().replace("_", "-").replace(".", "-") + "==" + version


def test_every_pin_is_installed(sglang_python: Path) -> None:
    listed = {
        normal(line)
        for line in env.RECIPES["realworld"].requirements.read_text().splitlines()
        if line and not line.startswith("#")
    }
    output = subprocess.check_output([sglang_python, "-I", "-c", _VERSIONS], text=True)

    assert listed - {normal(line) for line in output.splitlines()} == set()
