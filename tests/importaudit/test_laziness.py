"""What a target that is lazy itself names and has not loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.targets import write_tree

from importaudit.analysis.laziness import LARGEST, known_not_loaded

GETATTR = "def __getattr__(name):\n    raise AttributeError(name)\n"


def known(root: Path, target: str, loaded: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
    """What ``known_not_loaded`` says of TARGET in ROOT."""
    path = root.joinpath(*target.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return known_not_loaded([target], {target: str(file)}, {target} | loaded)


@pytest.mark.parametrize(
    "body",
    [
        "def __getattr__(name):\n    from . import heavy\n    return heavy\n",
        "def __getattr__(name):\n    import package.heavy\n    return package.heavy\n",
        "def __getattr__(name):\n    from package.heavy import thing\n    return thing\n",
        GETATTR + "NAMES = {'thing': 'package.heavy'}\n",
        GETATTR + "NAMES = {'thing': '.heavy'}\n",
        GETATTR + "NAMES = {'heavy': ['thing']}\n",
        "import lazy_loader\n__getattr__, *_ = lazy_loader.attach(__name__, ['heavy'])\n",
        "from util import LazyModule\nheavy = LazyModule('package.heavy')\n",
    ],
)
def test_the_ways_to_put_an_import_off(tmp_path: Path, body: str) -> None:
    write_tree(tmp_path, {"package/__init__.py": body, "package/heavy.py": ""})

    assert known(tmp_path, "package") == ["package.heavy"]
    assert known(tmp_path, "package", {"package.heavy"}) == []


@pytest.mark.parametrize(
    "body",
    [
        "def later():\n    from . import heavy\n",  # not lazy as a module
        GETATTR + "import os.path\nOTHER = 'json.decoder'\n",  # not its own package
        GETATTR + "NAME = 'package.missing'\n",  # not there
        GETATTR + "NAME = 'heavy words'\n",
        "def __getattr__(:\n",
        "\0",
    ],
)
def test_what_puts_nothing_off(tmp_path: Path, body: str) -> None:
    write_tree(tmp_path, {"package/__init__.py": body, "package/heavy.py": ""})

    assert known(tmp_path, "package") == []


def test_relative_names_count_from_the_package_of_the_target(tmp_path: Path) -> None:
    body = "def __getattr__(name):\n    from ..beside import thing\n    from .. import other\n"
    files = {
        "top/__init__.py": "",
        "top/beside.py": "",
        "top/other/__init__.py": "",
        "top/inner/__init__.py": body,
        "top/inner/module.py": body.replace("..beside", ".near"),
        "top/inner/near.py": "",
    }
    write_tree(tmp_path, files)

    assert known(tmp_path, "top.inner", {"top"}) == ["top.beside", "top.other"]
    assert known(tmp_path, "top.inner.module", {"top", "top.inner"}) == [
        "top.inner.near",
        "top.other",
    ]


def test_a_registry_of_thousands_is_cut(tmp_path: Path) -> None:
    names = [f"m{n:04}" for n in range(LARGEST + 5)]
    write_tree(tmp_path, {f"package/{name}.py": "" for name in names})
    write_tree(tmp_path, {"package/__init__.py": f"{GETATTR}NAMES = {names!r}\n"})

    assert len(known(tmp_path, "package")) == LARGEST


def test_a_target_without_source_names_nothing() -> None:
    assert known_not_loaded(["m"], {}, set()) == []
    assert known_not_loaded(["m"], {"m": "/nowhere/m.py"}, set()) == []
    assert known_not_loaded(["m"], {"m": "/nowhere/m.so"}, set()) == []
