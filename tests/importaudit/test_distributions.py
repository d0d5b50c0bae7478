"""Which distribution a module came from, on search paths laid out as installers do."""

from __future__ import annotations

import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import click
import msgspec
import pytest
from support.targets import write_tree

from importaudit.analysis.distributions import (
    MAIN,
    STDLIB,
    UNKNOWN,
    Distributions,
    assign,
    version_text,
)


def install(site: Path, name: str, *files: str, **more: str) -> None:
    """Lay NAME out in SITE as pip does, with FILES in its RECORD and MORE metadata files."""
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    record = "".join(f"{file},sha256=x,1\n" for file in [*files, f"{info}/METADATA"])
    write_tree(site, {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/RECORD": record,
        **{f"{info}/{file.replace('__', '.')}": text for file, text in more.items()},
    })  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site-packages"


def owner(site: Path, file: str) -> str:
    return Distributions([str(site)], []).of_file(file)


def test_packages_modules_and_extensions_belong_to_who_installed_them(site: Path) -> None:
    install(site, "pack-age", "other_name/__init__.py", "single.py", "fast.cpython-311.so")
    for file in ("other_name/sub/x.py", "single.py", "fast.cpython-311.so"):
        assert owner(site, f"{site}/{file}") == "pack-age 1.0"
    assert owner(site, f"{site}/nobody.py") == UNKNOWN
    assert owner(site, "/elsewhere/single.py") == UNKNOWN


def test_names_in_quotes_are_read(site: Path) -> None:
    install(site, "odd", '"odd/a,b.py"')

    assert owner(site, f"{site}/odd/x.py") == "odd 1.0"


def test_two_distributions_in_one_namespace_are_told_apart(site: Path) -> None:
    install(site, "nvidia-a", "nvidia/a/__init__.py", "nvidia/a/deep/x.py", "nvidia/top_a.py")
    install(site, "nvidia-b", "nvidia/b/__init__.py", "nvidia/b/deep/x.py", "nvidia/top_b.py")

    for letter in "ab":
        for file in (f"{letter}/__init__.py", f"{letter}/deep/x.py", f"top_{letter}.py"):
            assert owner(site, f"{site}/nvidia/{file}") == f"nvidia-{letter} 1.0"


def test_an_editable_install_owns_its_folder(site: Path, tmp_path: Path) -> None:
    project = tmp_path / "my project"
    url = project.as_uri()
    direct = msgspec.json.encode({"url": url, "dir_info": {"editable": True}}).decode()
    install(site, "mine", "__editable__mine.pth", direct_url__json=direct)
    install(site, "broken", "x.py", direct_url__json="{")
    install(site, "wheel", "y.py", direct_url__json='{"url": "file:///", "dir_info": {}}')

    assert owner(site, f"{project}/src/mine/x.py") == "mine 1.0"
    assert owner(site, f"{project}-2/x.py") == UNKNOWN


def test_a_distribution_without_a_file_list_stops_nothing(site: Path) -> None:
    install(site, "whole", "whole.py")
    write_tree(site, {"bare-1.0.dist-info/METADATA": "Name: bare\nVersion: 1.0\n"})
    write_tree(site, {"empty-1.0.dist-info/x": "", "egg-2.egg-info": "Name: egg\nVersion: 2\n"})

    assert owner(site, f"{site}/bare/x.py") == UNKNOWN
    assert owner(site, f"{site}/whole.py") == "whole 1.0"


def test_modules_without_a_file_go_with_their_package() -> None:
    site = Path(sysconfig.get_path("purelib"))
    modules = {
        "__main__": "",
        "click": str(click.__file__),
        "click.made_by_hand": "",
        "json": f"{sys.base_prefix}/lib/python{version_text(sys.version)}/json/__init__.py",
        "json.made_by_hand": "",
        "sys": "built-in",
        "zipimport": "frozen",
        "made_by_hand": "",
        "space": "",
        "space.click": str(click.__file__),
    }
    groups = assign(modules, [str(site)], sys.base_prefix, sys.platlibdir,
                    version_text(sys.version))  # fmt: skip

    assert groups == {
        MAIN: ["__main__"],
        f"click {version('click')}": ["click", "click.made_by_hand", "space", "space.click"],
        STDLIB: ["json", "json.made_by_hand", "sys", "zipimport"],
        UNKNOWN: ["made_by_hand"],
    }


def test_packages_inside_the_library_folder_are_no_standard_library(tmp_path: Path) -> None:
    finder = Distributions([], [str(tmp_path)])

    assert finder.of_file(f"{tmp_path}/json/__init__.py") == STDLIB
    assert finder.of_file(f"{tmp_path}/site-packages/json.py") == UNKNOWN


def test_the_version_of_a_library_folder() -> None:
    assert version_text("3.13.0rc1+ (main, x) [GCC]") == "3.13"
