"""What tests ask a container engine for."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable

import docker

LABEL = "importaudit"
PATIENCE = 30.0  # seconds


def ours(engine: docker.APIClient) -> list[str]:
    """The names of the containers that importaudit has made, running or not."""
    found = engine.containers(all=True, filters={"label": LABEL})
    return [container["Names"][0].removeprefix("/") for container in found]


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether CONDITION holds before patience ends."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def of_another_machine(engine: docker.APIClient, architecture: str) -> str:
    """An image for ARCHITECTURE: nothing in it, since nothing of it may be started.

    As ``docker save`` writes one:
    https://github.com/moby/moby/blob/v20.10.24/image/spec/v1.2.md
    """
    reference = f"importaudit-test-{architecture}:1"
    rootfs = {"type": "layers", "diff_ids": []}
    config = {"architecture": architecture, "os": "linux", "config": {}, "rootfs": rootfs}
    manifest = [{"Config": "config.json", "RepoTags": [reference], "Layers": []}]
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content in (("config.json", config), ("manifest.json", manifest)):
            text = json.dumps(content).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    list(engine.load_image(data.getvalue()))  # type: ignore[no-untyped-call]
    return reference
