"""A container engine of our own, for tests and benchmarks.

    python scripts/engine.py start|stop

`start` prints the DOCKER_HOST of an engine: the one that is there already, else a private dockerd
(Debian's docker.io; root), which keeps its images below CACHE/engine and has no network, so that
it leaves the machine's as it is. `stop` ends that one. CACHE is that of scripts/env.py.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import env

PATIENCE = 60.0  # seconds for it to answer
USUAL = "unix:///var/run/docker.sock"


class EngineProblem(Exception):
    """Why there is no engine, in words for the terminal."""


def provide() -> tuple[str, bool]:
    """The address of an engine that answers, and whether it was started for that."""
    with env.locked(home() / "lock"):
        return found_or_started()


def found_or_started() -> tuple[str, bool]:
    for host in (os.environ.get("DOCKER_HOST"), USUAL, private()):
        if host and answers(host):
            return host, False
    if os.environ.get("DOCKER_HOST"):
        raise EngineProblem(f"nothing answers at DOCKER_HOST={os.environ['DOCKER_HOST']}")
    start()
    return private(), True


def home() -> Path:
    return env.cache_folder() / "engine"


def private() -> str:
    """The address of the private one; short, since the path of a socket must be."""
    digest = hashlib.sha256(str(home()).encode()).hexdigest()[:12]
    return f"unix://{tempfile.gettempdir()}/importaudit-engine-{digest}.sock"


def answers(host: str) -> bool:
    from docker import APIClient
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    if not listens(host):
        return False
    try:
        client = APIClient(host, timeout=10)
    except (DockerException, RequestException):
        return False
    client.close()
    return True


def listens(host: str) -> bool:
    """Whether somebody does; the SDK would leave a socket open where nobody does."""
    if not host.startswith("unix://"):
        return True
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(host.removeprefix("unix://")) == 0


def start() -> None:
    """Start the private one; raises EngineProblem."""
    if os.geteuid() != 0:
        raise EngineProblem("no engine answers, and starting one needs root")
    if shutil.which("dockerd") is None:
        raise EngineProblem("no engine answers, and there is no dockerd: apt-get install docker.io")
    log = home() / "log"
    command = [
        *("dockerd", "--host", private(), "--pidfile", str(home() / "pid")),
        *("--data-root", str(home() / "data"), "--exec-root", str(home() / "exec")),
        # Containers without a network need none of the machine's to be changed.
        *("--bridge", "none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"),
    ]
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    deadline = time.monotonic() + PATIENCE
    while not answers(private()):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            tail = "\n".join(log.read_text().splitlines()[-5:])
            raise EngineProblem(f"dockerd does not start; the end of {log}:\n{tail}")
        time.sleep(0.1)
    process.returncode = 0  # it outlives us, of which Popen would warn


def stop() -> None:
    """End the private one, if it runs; its images stay."""
    with suppress(OSError, ValueError):
        pid = int((home() / "pid").read_text())
        os.kill(pid, signal.SIGTERM)
        for _ in range(300):
            with suppress(ChildProcessError):  # it may be our own
                os.waitpid(pid, os.WNOHANG)
            os.kill(pid, 0)
            time.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(description="A container engine for tests.")
    parser.add_argument("action", choices=["start", "stop"])
    if parser.parse_args().action == "stop":
        stop()
        return 0
    try:
        print(provide()[0])
    except EngineProblem as problem:
        print(f"engine.py: error: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
