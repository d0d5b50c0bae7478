"""Images for tests and benchmarks, built without a network in their builds.

    python scripts/images.py base|sglang

prints references. `base` is the image that the others begin with: BASE_IMAGE where that is set,
which is pulled if need be, else one that is made here from Debian packages. `sglang` are two, with
and without bytecode, of the environment that the real-world tests look at (7 GB). The others are
tests/images/NAME.Dockerfile. Each is tagged with a digest of what it is made from, and built once
an engine.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import docker
import engine
import env
from docker.errors import APIError, DockerException, ImageNotFound

RECIPES = env.ROOT / "tests/images"
SUITE = "bookworm"
VERSION = "3.11"  # of the suite's Python
DEBIAN = ("--variant=minbase", "--include=python3,ca-certificates", SUITE)
REQUIREMENTS = env.ROOT / "Dockerfiles/demo/requirements.txt"
PLATFORMS = (f"manylinux_2_28_{platform.machine()}", f"manylinux2014_{platform.machine()}")

# While it is built: the environment is there as a tar file, unpacked, and in a layer.
ROOM = 25_000_000_000

Context = Mapping[str, bytes | Path]  # what a build sees: files and folders, by their names


class ImageProblem(Exception):
    """Why there is no such image, in words for the terminal."""


def client() -> docker.APIClient:
    """The engine's; raises EngineProblem when there is none."""
    host, _ = engine.provide()
    return docker.APIClient(host, version="auto", timeout=600)


def base(api: docker.APIClient) -> str:
    """The image that the others begin with."""
    named = os.environ.get("BASE_IMAGE")
    if named:
        if not present(api, named):
            api.pull(named)
        return named
    reference = f"importaudit-base:{digest(*DEBIAN)}"
    with building():
        if not present(api, reference):
            say(f"making {reference} from Debian packages")
            bootstrap(api, reference)
    return reference


def bootstrap(api: docker.APIClient, reference: str) -> None:
    """Make the base image from the packages of a Debian mirror (the one apt is set up for)."""
    with tempfile.TemporaryDirectory(prefix="importaudit-base-") as folder:
        tar = Path(folder) / "base.tar"
        command = ["mmdebstrap", "--quiet", *DEBIAN, str(tar)]
        try:
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        except FileNotFoundError:
            raise ImageProblem(
                "no base image: set BASE_IMAGE to one with a Python that can be pulled, or"
                " apt-get install mmdebstrap"
            ) from None
        except subprocess.CalledProcessError as error:
            raise ImageProblem(f"no base image: mmdebstrap: status {error.returncode}") from error
        name, _, tag = reference.partition(":")
        api.import_image_from_file(str(tar), repository=name, tag=tag)


def build(api: docker.APIClient, name: str, context: Context | None = None) -> str:
    """The image that tests/images/NAME.Dockerfile makes from CONTEXT and the base image."""
    return derive(api, name, {} if context is None else context, base(api))


def derive(api: docker.APIClient, name: str, context: Context, start: str, *, room: int = 0) -> str:
    """The same from the image START; building it takes ROOM bytes of disk for a while."""
    recipe = RECIPES / f"{name}.Dockerfile"
    made_from = [start, recipe.read_text(), *(f"{n} {contents(c)}" for n, c in context.items())]
    reference = f"importaudit-test-{name}:{digest(*made_from)}"
    with building():
        if not present(api, reference):
            env.check_disk(f"building {reference} wants", room, env.cache_folder())
            say(f"building {reference}")
            carry_out(api, recipe, context, start, reference)
    return reference


def carry_out(
    api: docker.APIClient, recipe: Path, context: Context, start: str, reference: str
) -> None:
    """Build the image REFERENCE; raises ImageProblem with what the engine says."""
    with packed({"Dockerfile": recipe, **context}) as file:
        steps = api.build(
            fileobj=file, custom_context=True, tag=reference, rm=True, forcerm=True,
            network_mode="none", buildargs={"BASE_IMAGE": start}, decode=True,
        )  # fmt: skip
        for step in steps:
            if "error" in step:
                raise ImageProblem(f"{recipe}: {step['error'].strip()}")


def sglang(api: docker.APIClient) -> tuple[str, str]:
    """The images of the real-world environment: with all of its bytecode, and with none."""
    python = env.provide(env.RECIPES["realworld"], env.cache_folder())
    site = python.parent.parent / f"lib/python{VERSION}/site-packages"
    baked = derive(api, "sglang", {"site-packages": site}, base(api), room=ROOM)
    return baked, derive(api, "sglang-bare", {}, baked)


def building() -> AbstractContextManager[None]:
    """While this lasts, nobody else builds."""
    return env.locked(engine.home() / "building")


@contextmanager
def packed(context: Context) -> Iterator[IO[bytes]]:
    """CONTEXT as a tar file on disk: some are gigabytes."""
    with tempfile.TemporaryFile(dir=env.cache_folder()) as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for name, content in context.items():
                if isinstance(content, Path):
                    tar.add(content, name, filter=as_root)
                else:
                    entry = tarfile.TarInfo(name)
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))
        file.seek(0)
        yield file


def as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def packages() -> Path:
    """A folder with the demo's packages for the base image's Python, without bytecode."""
    made = env.cache_folder() / "packages" / digest(REQUIREMENTS.read_text(), VERSION, *PLATFORMS)
    with building():
        if not made.is_dir():
            made.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=made.parent) as folder:
                subprocess.run(
                    [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--target", folder,
                     "--no-compile", "--disable-pip-version-check", "--require-hashes",
                     "--only-binary=:all:", "--python-version", VERSION,
                     *(f"--platform={name}" for name in PLATFORMS), "-r", str(REQUIREMENTS)],
                    check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr,
                )  # fmt: skip
                Path(folder).chmod(0o755)
                Path(folder).rename(made)
                Path(folder).mkdir()  # for the context manager to remove
    return made


def present(api: docker.APIClient, reference: str) -> bool:
    try:
        api.inspect_image(reference)  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return False
    return True


def contents(content: bytes | Path) -> str:
    """What stands for CONTENT in a digest: the path of a folder has one of what is in it."""
    return str(content) if isinstance(content, Path) else digest(content.decode())


def digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def say(text: str) -> None:
    print(f"images.py: {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Build an image for tests, once.")
    parser.add_argument("name", choices=["base", "sglang"])
    name = parser.parse_args().name
    try:
        print(*([base(client())] if name == "base" else sglang(client())), sep="\n")
    except (
        ImageProblem,
        engine.EngineProblem,
        env.EnvironmentProblem,
        APIError,
        DockerException,
    ) as problem:
        say(f"error: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
