"""What the command line says of a container, without one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support.command import importaudit

from importaudit.cli.images import container_of, mount, variable
from importaudit.errors import ContainerError, UsageError
from importaudit.measure import disks
from importaudit.plan import Container, Mount


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("{0}/data:/there", Mount("{0}/data", "/there")),
        ("./data:/there:ro", Mount("{0}/data", "/there", read_only=True)),
        ("./data:/there:rw", Mount("{0}/data", "/there")),
        (".:/there", Mount("{0}", "/there")),
        ("cache:/there", Mount("cache", "/there", kind="volume")),
        ("type=bind,source=./data,target=/there,readonly", Mount("{0}/data", "/there", True)),
        ("type=bind,src=data,dst=/there", Mount("{0}/data", "/there")),
        ("source=cache,destination=/there,ro=true", Mount("cache", "/there", True, "volume")),
    ],
)
def test_mounts_as_docker_has_them(folder: Path, words: str, expected: Mount) -> None:
    found = mount(words.format(folder))

    assert found == Mount(
        expected.source.format(folder), expected.target, expected.read_only, expected.kind
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("data", "not understood"),
        ("./data:there", "not understood"),
        (":/there", "not understood"),
        ("./data:/there:rx", "not understood (rx)"),
        ("type=tmpfs,target=/there", "not understood"),
        ("type=bind,source=data,target=/there,color=red", "not understood (color)"),
        ("./none:/there", "no file or folder at"),
    ],
)
def test_what_is_no_mount(words: str, problem: str) -> None:
    with pytest.raises(UsageError, match=re.escape(problem)) as caught:
        mount(words)
    assert words in caught.value.problem
    assert "--mount /here:/there" in caught.value.hint


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "a=b")
    monkeypatch.delenv("NOBODYS", raising=False)

    assert [variable(w) for w in ("X=", "X=a=b", "OURS")] == [
        ("X", ""),
        ("X", "a=b"),
        ("OURS", "a=b"),
    ]
    for wrong in ("NOBODYS", "=x"):
        with pytest.raises(UsageError):
            variable(wrong)


def test_all_of_it() -> None:
    found = container_of("image", ["A=1"], ["cache:/there"], True, 50, True)

    assert found == Container(
        "image", {"A": "1"}, (Mount("cache", "/there", kind="volume"),), True, True, 50
    )
    assert container_of(None, [], [], False, None, False) is None


@pytest.mark.parametrize(
    "words", [["--env", "A=1"], ["--mount", "./data:/x"], ["--read-only"], ["--read-iops", "5"],
              ["--keep"]]
)  # fmt: skip
@pytest.mark.parametrize("command", [["json"], ["bytecode"]])
def test_options_of_containers_without_one(
    folder: Path, command: list[str], words: list[str]
) -> None:
    done = importaudit(*command, *words, cwd=folder)

    assert (done.code, done.out) == (2, "")
    assert f"{words[0]} is for containers" in done.err
    assert "--image REF" in done.err


def test_without_the_sdk(folder: Path) -> None:
    """A module that stands for one that is not installed: it fails as that would."""
    blocked = folder / "blocked"
    blocked.mkdir()
    (blocked / "docker.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'docker'\", name='docker')"
    )
    done = importaudit("--image", "any", "json", cwd=folder, PYTHONPATH=str(blocked))

    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert "needs the Docker SDK" in done.err
    assert "pip install 'importaudit[docker]'" in done.err


def test_the_disk_of_a_folder() -> None:
    try:
        disk = disks.of("/")
    except ContainerError:
        pytest.skip("the root file system is not on a disk of its own")
    name = Path(disk).name
    assert Path("/sys/block", name.replace("/", "!")).exists()  # a disk, not a partition
    assert os.path.exists(disk)  # noqa: PTH110


@pytest.mark.parametrize("folder", ["/proc", "/none/such"])
def test_no_disk(folder: str) -> None:
    with pytest.raises(ContainerError, match="no disk is known") as caught:
        disks.of(folder)
    assert folder in caught.value.problem
