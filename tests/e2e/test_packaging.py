"""What a release would hold: an sdist, and the wheel built from it, installed and imported."""

import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "importaudit": ROOT / "audits",
    "lazystubs": ROOT / "lazyimports",
    "imagebake": ROOT / "build",
}

# One worker builds, and tests what it built.
pytestmark = pytest.mark.xdist_group("packaging")


@dataclass(frozen=True)
class Release:
    sdist: Path
    wheel: Path

    def sdist_files(self) -> set[str]:
        with tarfile.open(self.sdist) as tar:
            return {name.partition("/")[2] for name in tar.getnames()}

    def wheel_files(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("dist")
    # Neither --sdist nor --wheel: the wheel then comes from the unpacked sdist.
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return Release(sdist, wheel)


def sources(root: Path, package: str) -> set[str]:
    return {
        str(path.relative_to(root))
        for path in (root / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_holds_three_packages_and_its_metadata(release: Release) -> None:
    names = {name.split("/")[0] for name in release.wheel_files()}

    assert names == {*PACKAGES, "importaudit-0.1.0.dist-info"}


@pytest.mark.parametrize("package", PACKAGES)
def test_wheel_holds_every_file_of_the_package(release: Release, package: str) -> None:
    packed = {name for name in release.wheel_files() if name.startswith(package + "/")}

    assert f"{package}/py.typed" in packed
    assert packed == sources(PACKAGES[package], package)


def test_wheel_holds_the_probe_and_no_start_up_hook(release: Release) -> None:
    names = release.wheel_files()

    assert "importaudit/probe/start.py" in names
    assert [name for name in names if name.endswith((".pth", ".start"))] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_sdist_holds_every_file_of_the_package(release: Release, package: str) -> None:
    root = PACKAGES[package]
    wanted = {f"{root.name}/{name}" for name in sources(root, package)}

    assert wanted - release.sdist_files() == set()


def test_sdist_holds_what_its_tests_need(release: Release) -> None:
    wanted = {"LICENSE", "Makefile", "pyproject.toml", "scripts/env.py", "tests/conftest.py"}

    assert wanted - release.sdist_files() == set()


def test_wheel_installs_and_its_packages_import(release: Release, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv/bin/python"
    # Only our files are in question here: --no-deps keeps the network out.
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", release.wheel],
        check=True,
        capture_output=True,
    )
    code = "import importaudit, lazystubs, imagebake; print(imagebake.__file__)"
    output = subprocess.check_output([python, "-I", "-c", code], cwd=tmp_path, text=True)

    assert Path(output.strip()).is_relative_to(tmp_path / "venv")
    assert (tmp_path / "venv/bin/importaudit").exists()


def test_build_is_pypas_although_we_have_a_folder_of_that_name() -> None:
    code = "import build; print(build.__file__)"
    # From the root, where a folder build/ comes first on sys.path.
    output = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)

    assert output.strip().endswith("site-packages/build/__init__.py")
