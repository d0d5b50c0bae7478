"""Which interpreters an image has, by its files alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from importaudit.errors import InterpreterError
from importaudit.measure.pythons import Found, Look, named, search

DISTRIBUTION = {
    "/usr/bin": "folder",
    "/usr/bin/python3": "/usr/bin/python3.11",
    "/usr/bin/python3.11": "program",
}
VENV = {
    "/opt/venv": "folder",
    "/opt/venv/pyvenv.cfg": "file",
    "/opt/venv/bin": "folder",
    "/opt/venv/bin/python": "/usr/bin/python3.11",
    "/opt/venv/bin/python3": "/usr/bin/python3.11",
}


def looking_at(files: Mapping[str, str]) -> Look:
    """A look at FILES: folders, programs, files, and links, which name where they lead."""

    def look(path: str) -> Found | None:
        kind = files.get(path.rstrip("/"))
        if kind is None:
            return None
        if kind.startswith("/"):
            return look(kind)
        return Found(path.rstrip("/"), kind == "folder", kind != "file")

    return look


@pytest.mark.parametrize(
    ("files", "environment", "expected"),
    [
        (DISTRIBUTION, {}, ["/usr/bin/python3"]),
        (DISTRIBUTION, {"PATH": "/usr/bin/:/usr/bin:bin:/none"}, ["/usr/bin/python3"]),
        (
            DISTRIBUTION | VENV,
            {"PATH": "/opt/venv/bin:/usr/bin"},
            ["/opt/venv/bin/python3", "/usr/bin/python3"],
        ),
        (DISTRIBUTION | VENV, {"PATH": "/usr/bin"}, ["/usr/bin/python3"]),
        (
            DISTRIBUTION | VENV,
            {"PATH": "/usr/bin", "VIRTUAL_ENV": "/opt/venv"},
            ["/opt/venv/bin/python"],
        ),
        (
            DISTRIBUTION,
            {"PATH": "/usr/bin", "VIRTUAL_ENV": "/opt/gone"},
            ["/usr/bin/python3"],
        ),
        (
            DISTRIBUTION | {"/bin": "folder", "/bin/python3": "/usr/bin/python3.11"},
            {"PATH": "/bin:/usr/bin"},
            ["/bin/python3"],
        ),
        (
            DISTRIBUTION | {"/usr/bin/python3.10": "program", "/usr/bin/python": "folder"},
            {"PATH": "/usr/bin"},
            ["/usr/bin/python3", "/usr/bin/python3.10"],
        ),
    ],
)
def test_search(
    files: Mapping[str, str], environment: Mapping[str, str], expected: list[str]
) -> None:
    assert search(environment, looking_at(files)) == expected


def test_no_python() -> None:
    with pytest.raises(InterpreterError, match="no Python on the image's PATH"):
        search({"PATH": "/usr/bin"}, looking_at({"/usr/bin": "folder", "/usr/bin/python3": "file"}))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("python3", "/usr/bin/python3"),
        ("python3.11", "/usr/bin/python3.11"),
        ("/opt/venv", "/opt/venv/bin/python"),
        ("/opt/venv/bin/python3", "/opt/venv/bin/python3"),
        ("venv", "/opt/venv/bin/python"),
        ("./venv/bin/python", "/opt/./venv/bin/python"),
    ],
)
def test_named(asked: str, expected: str) -> None:
    look = looking_at(DISTRIBUTION | VENV | {"/opt/./venv/bin/python": "program"})

    assert named(asked, {"PATH": "/usr/bin"}, "/opt", look) == expected


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("/none", "no interpreter at /none in the image"),
        ("/opt/empty", "no interpreter at /opt/empty/bin/python in the image"),
        ("/opt/venv/pyvenv.cfg", "/opt/venv/pyvenv.cfg in the image is not executable"),
        ("python2", "no interpreter at /work/python2 in the image"),
    ],
)
def test_nothing_of_that_name(asked: str, problem: str) -> None:
    look = looking_at(DISTRIBUTION | VENV | {"/opt/empty": "folder"})

    with pytest.raises(InterpreterError) as caught:
        named(asked, {"PATH": "/usr/bin"}, "/work", look)
    assert caught.value.problem == problem
