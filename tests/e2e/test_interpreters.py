"""Finding interpreters: one that is there but does not run is no interpreter."""

import subprocess
import sys
from pathlib import Path

import interpreters
import pytest


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without interpreters; returns the only folder on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return folder


def running() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def link(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    return path


def test_a_target_is_what_its_version_says(target_python: Path) -> None:
    code = "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix == sys.base_prefix)"
    output = subprocess.check_output([target_python, "-I", "-c", code], text=True)

    version, outside_an_environment = output.split()
    assert interpreters.find(version) == target_python
    assert outside_an_environment == "True"


def test_the_versions_supported_are_listed() -> None:
    assert interpreters.wanted() == ["3.10", "3.11", "3.12", "3.13"]


@pytest.mark.usefixtures("nowhere")
def test_nothing_is_found_where_nothing_is() -> None:
    assert interpreters.find(running()) is None


def test_one_on_path_is_found(nowhere: Path) -> None:
    link(nowhere / f"python{running()}")

    assert interpreters.find(running()) is not None


def test_a_shim_that_fails_gives_way_to_pyenvs_own(nowhere: Path, tmp_path: Path) -> None:
    shim = nowhere / f"python{running()}"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    link(tmp_path / "pyenv/versions" / f"{running()}.1/bin/python")

    assert interpreters.find(running()) is not None


def test_one_of_another_version_is_not_taken(nowhere: Path) -> None:
    link(nowhere / "python3.99")

    assert interpreters.find("3.99") is None
