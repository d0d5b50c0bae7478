"""Guest, apart from the probe: works for the host where it cannot, as inside a container.

    PYTHON -I -S -B agent.py

Requests come on stdin and are answered on stdout, one at a time. Either is two lengths, four bytes
each and the highest first, of a text in JSON and of bytes that belong to it. A request is
[function, argument...], with ``null`` for the bytes where they are an argument; the functions are
those of ``spawn``, ``pagecache`` and ``lookup``, and the ones here. An answer is {"value": …}, null
where the value is the bytes, packed by zlib; {"error": [errno, text, path]} for an OSError, or
{"failed": text}. Whatever comes in while ``execute`` runs, ends it. The end of stdin ends
everything: whoever has started this has gone.
"""

import os
import sys

# Its own folder is no place to import from: two levels above, there is a package of our name.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import json  # noqa: TID253
from shutil import rmtree
from zlib import compress

from importaudit.probe import lookup, pagecache, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

IN, OUT = 0, 3  # descriptors; the second is made: what anything prints must not get in between


def describe() -> "dict[str, Any]":
    """What the host needs to know of where we are."""
    return {
        "environment": dict(os.environ),
        "user": "%d:%d" % (os.geteuid(), os.getegid()),
        "folder": os.getcwd(),
        "processors": len(os.sched_getaffinity(0)),
        "machine": os.uname().machine,
        "kernel": os.uname().release,
        "mounts": lookup.read("/proc/self/mountinfo").decode("utf-8", "replace"),
    }


def execute(
    command: "list[str]", environment: "dict[str, str]", folder: str, timeout: "float | None"
) -> "dict[str, int | None]":
    return spawn.execute(command, environment, folder, timeout, IN)


def capture(command: "list[str]", timeout: "float | None") -> "tuple[Any, ...] | None":
    done = spawn.capture(command, timeout)
    return None if done is None else (done[0], *(text.decode("latin-1") for text in done[1:]))


def remove(folder: str) -> None:
    rmtree(folder, ignore_errors=True)


FUNCTIONS = {
    name: vars(module)[name]
    for module, names in (
        (pagecache, ("cached", "evict", "load", "virtual_machine")),
        (lookup, ("look", "read", "real", "existing", "obstacle", "folder_in", "put", "below")),
        (os, ("chmod", "sync")),
    )
    for name in names
}
FUNCTIONS.update(describe=describe, execute=execute, capture=capture, remove=remove)


def answer(request: "list[Any]", data: bytes) -> "tuple[dict[str, Any], bytes]":
    """Do what REQUEST asks for."""
    name, *arguments = request
    try:
        value = FUNCTIONS[name](*[data if one is None and data else one for one in arguments])
    except OSError as error:
        path = error.filename if isinstance(error.filename, str) else ""
        return {"error": [error.errno or 0, error.strerror or str(error), path]}, b""
    except Exception as error:
        return {"failed": "%s: %s" % (type(error).__name__, error)}, b""
    if isinstance(value, bytes):  # a trace is mostly room that was reserved, and that packs well
        return {"value": None}, compress(value, 1)
    return {"value": value}, b""


def receive(size: int) -> bytes:
    """SIZE bytes of stdin; ends the process where there are no more."""
    parts = []
    while size:
        part = os.read(IN, min(size, 1 << 20))
        if not part:
            sys.exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send(value: "dict[str, Any]", data: bytes) -> None:
    text = json.dumps(value).encode()
    rest = len(text).to_bytes(4, "big") + len(data).to_bytes(4, "big") + text + data
    while rest:
        rest = rest[os.write(OUT, rest) :]


def main() -> None:
    os.dup2(1, OUT, False)
    os.dup2(2, 1)
    while True:
        lengths = receive(8)
        text = receive(int.from_bytes(lengths[:4], "big"))
        data = receive(int.from_bytes(lengths[4:], "big"))
        request = json.loads(text)
        if request[0] != "stop":  # what ended `execute` already
            send(*answer(request, data))


if __name__ == "__main__":
    main()
