"""Containers to measure in: the only module that talks to a container engine.

A container runs the guest's ``agent`` in place of what its image would start, with the guest code
mounted and nothing installed, without a network, as the image's user. It has a name of its own and
is removed however the audit ends: by us, and by the engine as soon as the agent has, which ends
when the connection to us does.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import docker
from docker.constants import DEFAULT_UNIX_SOCKET
from docker.context import ContextAPI
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import Healthcheck, Mount
from docker.utils import kwargs_from_env
from requests.exceptions import RequestException

from importaudit.errors import ContainerError
from importaudit.measure import disks, pythons
from importaudit.measure.inside import Agent, Inside
from importaudit.measure.machine import PROBE
from importaudit.measure.pythons import Found
from importaudit.plan import Container
from importaudit.record import Image

OURS = "/.importaudit"  # what is ours in a container: the guest code, and places to write to
GUEST = f"{OURS}/importaudit/probe"
# Go's os.FileMode, in which the engine tells what is at a path.
GO_FOLDER, GO_LINK = 1 << 31, 1 << 27

NOT_FOUND = 404

Choose = Callable[[Sequence[str]], str]  # the interpreter to audit, of several


@dataclass(frozen=True)
class Started:
    """A container that runs, and the interpreter in it that is to be audited."""

    name: str
    machine: Inside
    python: str


@contextmanager
def started(asked: Container, python: str | None, choose: Choose) -> Iterator[Started]:
    """A container as ASKED for, for as long as the block lasts.

    PYTHON is what the user calls that; where there are several and no answer, CHOOSE tells. Raises
    ContainerError when there is no engine, no image, or no way to start it; InterpreterError when
    there is no such interpreter.
    """
    engine = Engine()
    about = engine.image(asked.image)
    found = engine.python(about, python, choose)
    with engine.container(asked, about, found) as name:
        guest = Agent(engine.attach(name))
        with told(f"cannot start a container of {asked.image}"):
            engine.api.start(name)
        # The page cache tells of files only who may write them, which is what that one is for.
        root = None if about.root else Agent(engine.second(name, found))
        yield Started(name, Inside(guest, root, engine.facts(asked, about), GUEST, OURS), found)


class Engine:
    """A container engine that answers."""

    def __init__(self) -> None:
        settings = address()
        where = str(settings.get("base_url", DEFAULT_UNIX_SOCKET)).removeprefix("http+")
        try:
            self.api = docker.APIClient(version="auto", **settings)
            self.version = self.api.version()
            self.info = self.api.info()
        except (DockerException, RequestException) as error:
            raise unreachable(where, error) from error

    def image(self, reference: str) -> About:
        """What the image says of itself; raises ContainerError where it could not run."""
        try:
            with told(f"cannot look at {reference}"):
                found = self.api.inspect_image(reference)  # type: ignore[no-untyped-call]
        except ImageNotFound:
            raise ContainerError(
                f"no image {reference} on this machine's engine", f"docker pull {reference}"
            ) from None
        about = About(found)
        wanted, ours = about.platform, f"{self.version['Os']}/{self.version['Arch']}"
        if wanted != ours and (wanted, ours) != ("linux/386", "linux/amd64"):
            raise ContainerError(
                f"{reference} is for {wanted}, and this machine is {ours}: times of an emulated"
                " processor tell nothing",
                f"docker pull --platform {ours} {reference}, or audit it on such a machine",
            )
        return about

    def python(self, about: About, asked: str | None, choose: Choose) -> str:
        """The interpreter to audit in an image, looked for without starting anything."""
        with self.created(about, ["nothing-that-is-ever-started"], {}) as name:

            def look(path: str) -> Found | None:
                return self.look(name, path)

            if asked is not None:
                return pythons.named(asked, about.environment, about.folder, look)
            found = pythons.search(about.environment, look)
        return found[0] if len(found) == 1 else choose(found)

    def look(self, name: str, path: str) -> Found | None:
        """What is at PATH of a container; None where there is nothing."""
        # ``get_archive`` of the SDK asks for the same, and has the engine pack the file as well.
        where = f"{self.api.base_url}/v{self.api.api_version}/containers/{name}/archive"
        with told(f"cannot look into {name}"):
            answer = self.api.head(where, params={"path": path}, timeout=self.api.timeout)
        if answer.status_code == NOT_FOUND:
            return None
        found = json.loads(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]))
        mode = found["mode"]
        target = found["linkTarget"] if mode & GO_LINK else path
        if mode & GO_LINK:
            return None if target == path else self.look(name, target)
        return Found(target, bool(mode & GO_FOLDER), bool(mode & 0o111))

    @contextmanager
    def created(
        self, about: About, command: Sequence[str], settings: Mapping[str, Any], *,
        host: Mapping[str, Any] | None = None, keep: bool = False,
    ) -> Iterator[str]:  # fmt: skip
        """A container that runs COMMAND once it is started; gone afterwards, unless it is kept."""
        name = f"importaudit-{secrets.token_hex(6)}"
        try:
            with told(f"cannot make a container of {about.reference}"):
                self.api.create_container(
                    about.id,
                    entrypoint=list(command),
                    name=name,
                    labels={"importaudit": version("importaudit")},
                    healthcheck=Healthcheck(test=["NONE"]),  # it would run beside what is measured
                    host_config=self.api.create_host_config(**(host or {})),
                    **settings,
                )
            yield name
        finally:
            if not keep:
                self.remove(name)

    def container(self, asked: Container, about: About, python: str) -> Any:
        """The container to measure in."""
        self.check_volumes(asked)
        host = {
            "auto_remove": not asked.keep,
            "network_mode": "none",
            "read_only": asked.read_only,
            "tmpfs": {f"{OURS}/scratch": "mode=1777"},
            "mounts": [
                Mount(GUEST, str(PROBE), type="bind", read_only=True),
                *(Mount(m.target, m.source, type=m.kind, read_only=m.read_only)
                  for m in asked.mounts),
            ],
            "security_opt": ["label=disable"],  # SELinux: the guest code keeps its own label
            "device_read_iops": self.throttle(asked.read_iops),
        }  # fmt: skip
        settings = {
            "environment": [f"{name}={value}" for name, value in asked.environment.items()],
            "volumes": [f"{OURS}/disk"],
            "stdin_open": True,
            # Attached: when we are gone, so is its standard input, and with that the agent.
            "detach": asked.keep,
        }
        command = agent(python)
        return self.created(about, command, settings, host=host, keep=asked.keep)

    def check_volumes(self, asked: Container) -> None:
        """Raise ContainerError for a volume that is not there: an engine would make it, to stay."""
        for mount in asked.mounts:
            if mount.kind == "volume":
                try:
                    with told(f"cannot look for the volume {mount.source}"):
                        self.api.inspect_volume(mount.source)
                except NotFound:
                    raise ContainerError(
                        f"no volume is called {mount.source}",
                        f"for a folder here, give its path: ./{mount.source}",
                    ) from None

    def throttle(self, rate: int) -> list[dict[str, Any]]:
        """The limit of RATE reads a second for the disk that images are on; none for 0."""
        if not rate:
            return []
        return [{"Path": disks.of(self.info["DockerRootDir"]), "Rate": rate}]

    def attach(self, name: str) -> Stream:
        """To the agent's input and output, before it is started: nothing is missed."""
        parameters = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        with told(f"cannot attach to {name}"):
            return Stream(self.api.attach_socket(name, parameters))

    def second(self, name: str, python: str) -> Stream:
        """A second agent in a container, which runs as root."""
        with told(f"cannot start a second process in {name}"):
            made = self.api.exec_create(name, agent(python), stdin=True, user="0", workdir="/")
            return Stream(self.api.exec_start(made["Id"], socket=True))

    def remove(self, name: str) -> None:
        """Remove a container that may be running, gone, or being removed, with its volumes."""
        with suppress(APIError, RequestException):
            self.api.remove_container(name, force=True, v=True)

    def facts(self, asked: Container, about: About) -> Image:
        """What a Record says of the image; the user is known to those inside."""
        names = [part["Name"] for part in self.version.get("Components", [])]
        name = "Podman" if any("podman" in part.lower() for part in names) else "Docker"
        return Image(
            reference=asked.image,
            id=about.id,
            user="?",
            engine=f"{name} {self.version['Version']}",
            storage=self.info["Driver"],
            read_only=asked.read_only,
            read_iops=asked.read_iops,
        )


class About:
    """What an image says of itself."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        config = found.get("Config") or {}
        self.id: str = found["Id"]
        self.platform = f"{found['Os']}/{found['Architecture']}"
        self.root = (config.get("User") or "root").partition(":")[0] in ("root", "0")
        self.folder: str = config.get("WorkingDir") or "/"
        pairs = (variable.partition("=") for variable in config.get("Env") or [])
        self.environment = {name: value for name, _, value in pairs}
        self.reference = next(iter(found.get("RepoTags") or []), self.id)


def agent(python: str) -> list[str]:
    """The command line of the guest that works for us."""
    return [python, "-I", "-S", "-B", f"{GUEST}/agent.py"]


class Stream:
    """The input and output of a process in a container, as the engine multiplexes them.

    https://docs.docker.com/reference/api/engine/version/v1.41/#operation/ContainerAttach
    """

    STDOUT = 1

    def __init__(self, connection: Any) -> None:
        self.connection = connection  # which closes the socket when it is dropped
        self.socket = getattr(connection, "_sock", connection)
        self.socket.settimeout(None)  # a target may take longer than the engine's answers
        self.ready = bytearray()
        self.said = bytearray()  # on stderr

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise self.ended() from error

    def receive(self, size: int) -> bytes:
        while len(self.ready) < size:
            head = self.exactly(8)
            data = self.exactly(int.from_bytes(head[4:], "big"))
            (self.ready if head[0] == self.STDOUT else self.said).extend(data)
        taken = bytes(self.ready[:size])
        del self.ready[:size]
        return taken

    def exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self.socket.recv(size)
            if not part:
                raise self.ended()
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def ended(self) -> ContainerError:
        """The error to raise when there is nobody at the other end."""
        said = self.said.decode("utf-8", "replace").strip().splitlines()
        why = f": {said[-1]}" if said else ": it was killed, or ran out of memory"
        return ContainerError(f"what works for importaudit in the container has ended{why}")


# --- errors --------------------------------------------------------------------------------


@contextmanager
def told(what: str) -> Iterator[None]:
    """Say WHAT did not work, and what the engine says of it."""
    try:
        yield
    except NotFound:
        raise
    except APIError as error:
        raise ContainerError(f"{what}: {error.explanation or error}") from error
    except (DockerException, RequestException) as error:
        raise ContainerError(f"{what}: the engine has stopped to answer: {error}") from error


def address() -> dict[str, Any]:
    """Where the engine is: DOCKER_HOST, else the context that the docker command uses."""
    settings: dict[str, Any] = {**kwargs_from_env()}
    if "base_url" not in settings:
        with suppress(DockerException, OSError, ValueError):
            context = ContextAPI.get_current_context()
            if context.name != "default":
                settings["base_url"] = context.Host
                if context.TLSConfig is not None:
                    settings["tls"] = context.TLSConfig
    return settings


def unreachable(where: str, error: Exception) -> ContainerError:
    """The error to raise when no engine answers at WHERE."""
    if "PermissionError" in str(error) or "Permission denied" in str(error):
        return ContainerError(
            f"no permission to use the container engine at {where}",
            "sudo usermod -aG docker $USER, and log in again; or run this with sudo",
        )
    return ContainerError(
        f"no container engine answers at {where}",
        "start one (sudo systemctl start docker), or set DOCKER_HOST to the address of one",
    )
