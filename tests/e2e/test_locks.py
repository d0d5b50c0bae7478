"""Locks name releases that anybody can get: nothing of the machine that made them leaks in."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HASHED = sorted(ROOT.glob("Dockerfiles/*/requirements.txt"))
PINNED = sorted(ROOT.glob("tests/realworld/*.txt"))

REFUSED = {
    "file URL": r"\bfile:",
    "absolute path": r"(?:^|[\s=@])/\w",
    "index or link option": r"^\s*(?:-i\b|-f\b|--(?:index-url|extra-index-url|find-links)\b)",
    "trusted host": r"--trusted-host\b",
    "address": r"\bhttps?://",
    "local version": r"==[^\s;]*\+",
}


def problems(text: str) -> list[str]:
    return [
        f"line {number}: {what}: {line}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in REFUSED.items()
        if re.search(pattern, line)
    ]


def requirements(text: str) -> list[str]:
    """The requirement lines, each with the options that follow it."""
    joined = text.replace("\\\n", " ").splitlines()
    return [line for line in joined if line.strip() and not line.lstrip().startswith("#")]


def test_locks_are_there() -> None:
    assert HASHED
    assert PINNED


@pytest.mark.parametrize("lock", HASHED + PINNED, ids=lambda lock: str(lock.relative_to(ROOT)))
def test_lock_is_portable(lock: Path) -> None:
    assert problems(lock.read_text()) == []


@pytest.mark.parametrize("lock", HASHED + PINNED, ids=lambda lock: str(lock.relative_to(ROOT)))
def test_lock_pins_everything(lock: Path) -> None:
    lines = requirements(lock.read_text())

    assert lines
    assert [line for line in lines if not re.match(r"[\w.-]+==[\w.!]+(?:\s|$)", line)] == []


@pytest.mark.parametrize("lock", HASHED, ids=lambda lock: str(lock.relative_to(ROOT)))
def test_lock_hashes_everything(lock: Path) -> None:
    lines = requirements(lock.read_text())

    assert [line for line in lines if "--hash=sha256:" not in line] == []


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://example.org/simple",
        "--extra-index-url=file:///srv/simple",
        "-f wheels",
        "--find-links ./wheels",
        "--trusted-host example.org",
        "pandas @ file:///srv/pandas.whl",
        "pandas @ https://example.org/pandas.whl",
        "/srv/pandas.whl",
        "    # via -r /home/me/requirements.in",
        "torch==2.14.1+cpu",
    ],
)
def test_what_is_refused(line: str) -> None:
    assert problems(line)


@pytest.mark.parametrize(
    "line", ["pandas==3.1.1 \\", "    --hash=sha256:0f/+", "    # via -r Dockerfiles/demo/r.in"]
)
def test_what_is_not_refused(line: str) -> None:
    assert problems(line) == []
