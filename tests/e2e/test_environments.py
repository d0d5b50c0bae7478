"""scripts/env.py: environments are built once, never half, and not on a full disk."""

from pathlib import Path

import env
import pytest


@pytest.fixture
def recipe(tmp_path: Path) -> env.Recipe:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("# nothing\n")
    return env.Recipe("tiny", requirements, ("--no-index",), bytes_wanted=1)


def test_an_environment_is_built_once_and_half_built_ones_go(
    recipe: env.Recipe, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    half_built = tmp_path / "cache" / "tiny" / "0123456789abcdef"
    half_built.mkdir(parents=True)

    first = env.provide(recipe, tmp_path / "cache")
    built = first.stat().st_ctime_ns
    again = env.provide(recipe, tmp_path / "cache")

    assert not half_built.exists()
    assert again == first
    assert again.stat().st_ctime_ns == built
    assert capfd.readouterr().out == ""


def test_an_environment_without_its_marker_is_built_again(
    recipe: env.Recipe, tmp_path: Path
) -> None:
    python = env.provide(recipe, tmp_path / "cache")
    marker = python.parent.parent / env.MARKER
    marker.unlink()
    left_over = python.parent / "left-over"
    left_over.touch()

    assert env.provide(recipe, tmp_path / "cache") == python
    assert marker.exists()
    assert not left_over.exists()


def test_other_requirements_get_another_environment(recipe: env.Recipe, tmp_path: Path) -> None:
    old = env.provide(recipe, tmp_path / "cache")
    recipe.requirements.write_text("# nothing else\n")
    new = env.provide(recipe, tmp_path / "cache")

    assert new != old
    assert not old.exists()


def test_a_failed_installation_leaves_nothing_usable(recipe: env.Recipe, tmp_path: Path) -> None:
    recipe.requirements.write_text("no-such-distribution==1\n")

    for _ in range(2):  # the second try does not take the first one's remains for a success
        with pytest.raises(env.EnvironmentProblem, match=r"exit status 1 from .* pip install"):
            env.provide(recipe, tmp_path / "cache")


def test_too_little_disk_is_said_in_bytes_before_anything_is_built(
    recipe: env.Recipe, tmp_path: Path
) -> None:
    big = env.Recipe("tiny", recipe.requirements, (), bytes_wanted=10**18)

    with pytest.raises(env.EnvironmentProblem) as caught:
        env.provide(big, tmp_path / "cache")

    home = tmp_path / "cache" / "tiny"
    assert f"wants {10**18} bytes free in {home}, found " in str(caught.value)
    assert [path.name for path in home.iterdir()] == ["lock"]


def test_a_missing_interpreter_is_named(recipe: env.Recipe, tmp_path: Path) -> None:
    ancient = env.Recipe("tiny", recipe.requirements, (), bytes_wanted=1, version="2.99")

    with pytest.raises(env.EnvironmentProblem, match=r"needs CPython 2\.99: looked for"):
        env.provide(ancient, tmp_path / "cache")
