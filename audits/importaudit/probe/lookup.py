"""Guest, apart from the probe: looks at files where the target would.

For the host's ``importaudit.files``; in a container ``agent`` calls these functions. Plain values
in and out; they raise OSError.
"""

import os
import stat
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

HEAD = 32  # bytes of a bytecode file that are told with its name: the header, and what follows it


def look(folder: str) -> "list[tuple[str, bool, int, int, float, str]]":
    """What is in FOLDER: name, whether it is a link, mode, size, mtime; heads of bytecode files.

    Links are followed; the mode of one that leads nowhere is 0. Heads are in hexadecimal: asking
    for each file apart would take a message for each.
    """
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat()
            except OSError:
                found.append((entry.name, entry.is_symlink(), 0, 0, 0.0, ""))
                continue
            start = head(entry.path) if entry.name.endswith(".pyc") else ""
            figures = (status.st_mode, status.st_size, status.st_mtime)
            found.append((entry.name, entry.is_symlink(), *figures, start))
    return found


def head(path: str) -> str:
    """The first bytes of the file at PATH, "-" where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return "-"
    try:
        return os.read(descriptor, HEAD).hex()
    except OSError:
        return "-"
    finally:
        os.close(descriptor)


def read(path: str) -> bytes:
    """The content of the file at PATH."""
    with open(path, "rb") as file:
        return file.read()


def real(path: str) -> str:
    """PATH without links."""
    return os.path.realpath(path)


def existing(paths: "Iterable[str]") -> "list[str]":
    """Those of PATHS that are files."""
    return [path for path in paths if os.path.isfile(path)]


def obstacle(folder: str) -> str:
    """Why importlib could not create a file in FOLDER, making it if need be; "" when it could.

    By the mount and the permission bits. For root nothing is forbidden but by the mount; a folder
    that nobody may write to has been sealed all the same, and counts as that.
    """
    while True:
        try:
            status = os.stat(folder)
            break
        except FileNotFoundError:
            folder = folder.rpartition("/")[0] or "/"
        except OSError as error:
            return (error.strerror or "unreachable").lower()
    if not stat.S_ISDIR(status.st_mode):
        return "%s is not a folder" % folder.encode("utf-8", "backslashreplace").decode()
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "read-only file system"
    if not status.st_mode & 0o222 or not os.access(folder, os.W_OK | os.X_OK):
        return "folder not writable"
    return ""


def mounts(table: str) -> "list[tuple[str, str]]":
    """The places and types of the mounts in TABLE (/proc/self/mountinfo), as they were made."""
    found = []
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        found.append((before.split()[4].replace("\\040", " "), after.split()[0]))
    return found


def file_system(path: str, mounted: "list[tuple[str, str]]") -> str:
    """The type of the file system that PATH, without links, is on, by the MOUNTED ones."""
    found = ("", "unknown")
    for place, kind in mounted:
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(found[0]):  # of two on one place, the later hides the other
            found = (place, kind)
    return found[1]


def folder_in(place: str) -> str:
    """A new folder in PLACE, which only its owner can read."""
    return tempfile.mkdtemp(prefix="importaudit-", dir=place)


def put(path: str, data: bytes) -> None:
    """Write DATA to PATH."""
    with open(path, "wb") as file:
        file.write(data)


def below(folder: str) -> "list[str]":
    """Every file below FOLDER."""
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]
