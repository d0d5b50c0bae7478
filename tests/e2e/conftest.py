"""A real container engine, and the images that tests look into."""

from __future__ import annotations

import os
from collections.abc import Iterator

import docker
import engine as engines
import images
import pytest


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.APIClient]:
    """One that answers, for us and for the commands that we run."""
    try:
        host, started = engines.provide()
    except engines.EngineProblem as problem:
        if os.environ.get("CI") == "true":
            pytest.fail(str(problem))
        pytest.skip(str(problem))
    before = os.environ.get("DOCKER_HOST")
    os.environ["DOCKER_HOST"] = host
    client = docker.APIClient(host, version="auto", timeout=600)
    yield client
    client.close()
    del os.environ["DOCKER_HOST"]
    if before is not None:
        os.environ["DOCKER_HOST"] = before
    # Of several workers, none knows when the others are done; what was started stays for the next.
    if started and "PYTEST_XDIST_WORKER" not in os.environ:
        engines.stop()


@pytest.fixture(scope="session")
def nonroot_image(engine: docker.APIClient) -> str:
    """One that runs as 1234:4321 in /app, and whose entrypoint is no Python."""
    return images.build(engine, "nonroot")


@pytest.fixture(scope="session")
def two_pythons_image(engine: docker.APIClient) -> str:
    """One with the distribution's Python and a virtual environment on its PATH."""
    return images.build(engine, "two-pythons")


@pytest.fixture(scope="session")
def pandas_image(engine: docker.APIClient) -> str:
    """One with pandas in /opt/packages, and no bytecode for it."""
    return images.build(engine, "pandas", {"packages": images.packages()})


@pytest.fixture(scope="session")
def baked_image(engine: docker.APIClient, pandas_image: str) -> str:
    """The same with bytecode for all of it."""
    return images.derive(engine, "pandas-baked", {}, pandas_image)
