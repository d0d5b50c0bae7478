"""What all tests share: a clean environment, and the interpreters that audits are run in."""

import os
from pathlib import Path

import env
import interpreters
import pytest

# Set on some developers' machines; a target started by a test must behave alike everywhere.
for _name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONSAFEPATH", "PYTHONWARNINGS"):
    os.environ.pop(_name, None)


@pytest.fixture(scope="session", params=interpreters.wanted())
def target_python(request: pytest.FixtureRequest) -> Path:
    """Each interpreter of tests/interpreters.txt in turn."""
    version: str = request.param
    found = interpreters.find(version)
    if found is not None:
        return found
    reason = f"no CPython {version} that runs: not on PATH, not under pyenv's versions"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def sglang_python() -> Path:
    """The interpreter of an environment in which the real sglang can be imported (6 GB)."""
    return env.provide(env.RECIPES["realworld"], env.cache_folder())
