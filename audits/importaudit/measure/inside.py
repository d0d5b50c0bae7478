"""A container as a Machine: what is to be done there is done by the guest's ``agent``.

Requests and answers go over the standard input and output of a process in the container, so
nothing but its engine is needed; ``importaudit.probe.agent`` describes them.
"""

from __future__ import annotations

import io
import json
import signal
import stat
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, BinaryIO, Protocol

import msgspec

from importaudit.errors import AuditError
from importaudit.files import Entry, Files, Status
from importaudit.measure import scratch
from importaudit.measure.machine import Cached, Captured, Execution, Place
from importaudit.probe import lookup
from importaudit.record import Image


class Channel(Protocol):
    """Bytes to a process and back; raises AuditError when it has ended."""

    def send(self, data: bytes) -> None: ...
    def receive(self, size: int) -> bytes: ...


class Agent:
    """The guest at the other end of a channel."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.lock = threading.Lock()
        self.sending = self.stopping = False

    def call(self, function: str, *arguments: Any, data: bytes | None = None) -> Any:
        """The value of FUNCTION there; raises OSError as it does, AuditError when it fails."""
        with self.lock:
            self.sending = True
            self.send([function, *arguments], data or b"")
            self.sending = False
            if self.stopping:
                self.stop()
            sizes = self.channel.receive(8)
            text = self.channel.receive(int.from_bytes(sizes[:4], "big"))
            blob = self.channel.receive(int.from_bytes(sizes[4:], "big"))
        found = json.loads(text)
        if "error" in found:
            number, message, path = found["error"]
            raise OSError(number, message, path)
        if "failed" in found:
            raise AuditError(f"the agent in the container failed: {function}: {found['failed']}")
        if found["value"] is None and function in BYTES:
            return zlib.decompress(blob)
        return found["value"]

    def stop(self) -> None:
        """End what is being executed there. Safe in a signal handler."""
        self.stopping = self.sending
        if not self.sending:
            self.send(["stop"], b"")

    def send(self, request: list[Any], data: bytes) -> None:
        text = json.dumps(request).encode()
        head = len(text).to_bytes(4, "big") + len(data).to_bytes(4, "big")
        self.channel.send(head + text + data)


BYTES = ("read",)  # functions whose value is bytes


class Inside:
    """A container that AGENT runs in as the user of its image, and ROOT as root if it can."""

    def __init__(
        self, agent: Agent, root: Agent | None, image: Image | None, probe: str, volume: str
    ) -> None:
        self.agent = agent
        # The page cache tells of files only who may write them (mm/mincore.c, can_do_mincore).
        self.root = root or agent
        self.probe = probe
        self.memory, self.disk = f"{volume}/scratch", f"{volume}/disk"
        self.files: Files = Afar(agent, volume)
        self.described = agent.call("describe")
        self.work: str = self.described["folder"]  # where it works: the image's WORKDIR
        self.image = image and msgspec.structs.replace(image, user=self.described["user"])
        if root is not None:
            root.call("chmod", self.disk, 0o1777)

    @property
    def environment(self) -> Mapping[str, str]:
        found: dict[str, str] = self.described["environment"]
        return found

    @property
    def workers(self) -> int:
        return 1  # one agent, one request at a time

    def place(self) -> Place:
        told = self.described
        return Place(told["processors"], told["machine"], told["kernel"], told["mounts"])

    def execute(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        timeout: float | None,
    ) -> Execution:
        with instead_of_interrupts(self.agent.stop) as pressed:
            found = self.agent.call("execute", list(command), dict(environment), folder, timeout)
        if pressed and not found["interrupted"]:  # when it had just ended
            raise KeyboardInterrupt
        return Execution(**found)

    def capture(self, command: Sequence[str], timeout: float | None = None) -> Captured | None:
        done = self.agent.call("capture", list(command), timeout)
        return None if done is None else Captured(done[0], *(t.encode("latin-1") for t in done[1:]))

    def folder(self, purpose: str, *, on_disk: bool = False) -> str:
        place = self.disk if on_disk else self.memory
        try:
            made: str = self.agent.call("folder_in", place)
        except OSError as error:
            raise scratch.no_place(purpose, error) from error
        return made

    def remove(self, folder: str) -> None:
        self.agent.call("remove", folder)

    def put(self, path: str, data: bytes) -> None:
        self.agent.call("put", path, None, data=data)

    def below(self, folder: str) -> list[str]:
        found: list[str] = self.agent.call("below", folder)
        return found

    def sync(self) -> None:
        self.agent.call("sync")

    def cached(self, paths: Iterable[str]) -> Cached:
        files, size, resident = self.root.call("cached", list(paths))
        return Cached(files, size, resident if resident >= 0 else None)

    def evict(self, paths: Iterable[str]) -> None:
        self.root.call("evict", list(paths))

    def load(self, paths: Iterable[str]) -> None:
        self.root.call("load", list(paths))

    def virtual_machine(self) -> bool:
        return bool(self.agent.call("virtual_machine"))


@contextmanager
def instead_of_interrupts(act: Callable[[], None]) -> Iterator[list[int]]:
    """Ctrl-C calls ACT: an exception might come between an answer's bytes, and lose some.

    Yields the signals that came.
    """
    came: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        act()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)


# --- its files -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """An entry of a folder there, with what ``os.DirEntry`` and ``os.stat_result`` have."""

    name: str
    path: str
    link: bool
    st_mode: int
    st_size: int
    st_mtime: float
    head: str

    def is_file(self) -> bool:
        return stat.S_ISREG(self.st_mode)

    def is_dir(self) -> bool:
        return stat.S_ISDIR(self.st_mode)

    def is_symlink(self) -> bool:
        return self.link

    def stat(self) -> Status:
        if not self.st_mode:
            raise FileNotFoundError(2, "No such file or directory", self.path)
        return self


class Afar(Files):
    """The files of a container. Folders are looked at as a whole, and once.

    But for those below OURS, which we write to ourselves.
    """

    def __init__(self, agent: Agent, ours: str) -> None:
        self.agent = agent
        self.ours = f"{ours}/"
        self.folders: dict[str, dict[str, Seen] | OSError] = {}

    def look(self, folder: str) -> dict[str, Seen]:
        """What is in FOLDER, by name; raises OSError."""
        found = self.folders.get(folder)
        if found is None:
            base = folder.rstrip("/")
            try:
                entries = self.agent.call("look", folder or "/")
                found = {name: Seen(name, f"{base}/{name}", *rest) for name, *rest in entries}
            except OSError as error:
                found = error
            if not folder.startswith(self.ours):
                self.folders[folder] = found
        if isinstance(found, OSError):
            raise found
        return found

    def at(self, path: str) -> Seen:
        """What is at PATH; raises OSError."""
        folder, _, name = path.rpartition("/")
        found = self.look(folder or "/").get(name)
        if found is None or not found.st_mode:
            raise FileNotFoundError(2, "No such file or directory", path)
        return found

    def scan(self, folder: str) -> Sequence[Entry]:
        return list(self.look(folder).values())

    def names(self, folder: str) -> list[str]:
        return list(self.look(folder))

    def stat(self, path: str) -> Status:
        return self.at(path)

    def is_dir(self, path: str) -> bool:
        try:
            return path == "/" or self.at(path.rstrip("/")).is_dir()
        except OSError:
            return False

    def head(self, path: str, size: int) -> tuple[bytes, int]:
        found = self.at(path)
        if found.head == "-":
            raise PermissionError(13, "Permission denied", path)
        if size <= lookup.HEAD and path.endswith(".pyc"):
            return bytes.fromhex(found.head)[:size], found.st_size
        return self.read(path)[:size], found.st_size

    def read(self, path: str) -> bytes:
        data: bytes = self.agent.call("read", path)
        return data

    def open(self, path: str) -> BinaryIO:
        return io.BytesIO(self.read(path))

    def real(self, path: str) -> str:
        found: str = self.agent.call("real", path)
        return found

    def existing(self, paths: Iterable[str]) -> list[str]:
        found: list[str] = self.agent.call("existing", list(paths))
        return found

    def obstacle(self, folder: str) -> str:
        found: str = self.agent.call("obstacle", folder)
        return found
