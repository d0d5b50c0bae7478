"""The environments of several GB that only these tests ask for."""

from pathlib import Path

import env
import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before -m picks by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.realworld)


@pytest.fixture(scope="session")
def sglang_python() -> Path:
    """The interpreter of an environment in which the real sglang can be imported."""
    return env.provide(env.RECIPES["realworld"], env.cache_folder())
