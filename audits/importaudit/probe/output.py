"""Where the trace goes: a file of its own, whatever the target does to its descriptors.

The descriptor is high, so that the target gets the numbers that it would get without us, and
close-on-exec. Before each write its identity is compared with the file that we opened: where
the target closed it (``os.closerange``) or put another file in its place (``os.dup2``), the
file is opened again by its name. When nothing can be written (a full disk), tracing goes on
and the lines are lost: the host sees that the closing line is missing.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HIGHEST = 1 << 16


def move_high(descriptor: int) -> int:
    """Move DESCRIPTOR to the highest free number and return that."""
    try:
        number = min(os.sysconf("SC_OPEN_MAX"), HIGHEST) - 1
    except (ValueError, OSError):
        return descriptor
    for _ in range(64):
        try:
            os.fstat(number)
        except OSError:
            break
        number -= 1
    try:
        moved = os.dup2(descriptor, number, False)
    except OSError:
        return descriptor
    os.close(descriptor)
    return moved


def escape(text: str) -> str:
    """Keep TEXT within one field of one line."""
    if "\\" in text or "\t" in text or "\n" in text or "\r" in text:
        text = text.replace("\\", "\\\\").replace("\t", "\\t")
        text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text


class Output:
    """The trace file of this process."""

    move_high = staticmethod(move_high)

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.strings: "dict[str, int]" = {}
        self.pending: "list[str]" = []
        self.numbers = iter(range(1, 1 << 60))  # 0 is no string
        self.reopen()

    def reopen(self) -> None:
        """Open the file of this process; also used in a forked child, for its own."""
        self.path = "%s.%d" % (self.prefix, os.getpid())
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self.descriptor = move_high(os.open(self.path, flags, 0o600))
            status = os.fstat(self.descriptor)
            self.identity = (status.st_dev, status.st_ino)
        except OSError:
            self.descriptor = -1
            self.identity = (-1, -1)

    def restart(self) -> None:
        """Begin the file of a forked child: nothing of the parent's strings is in it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.strings.clear()
        self.pending.clear()
        self.reopen()

    def string(self, text: str) -> int:
        """Return the number that stands for TEXT; the next ``write`` says what it stands for.

        Threads may race here: two numbers for one text do no harm, since each is written.
        """
        number = self.strings.get(text)
        if number is None:
            number = self.strings[text] = next(self.numbers)
            self.pending.append("S\t%d\t%s\n" % (number, escape(text)))
        return number

    def line(self, kind: str, *fields: "Any") -> None:
        """Write one line; strings among FIELDS are escaped."""
        parts = [escape(f) if isinstance(f, str) else str(f) for f in fields]
        self.write(kind + "\t" + "\t".join(parts) + "\n")

    def write(self, text: str) -> None:
        """Append TEXT, opening the file again where the target took it from us."""
        if self.pending:
            pending, self.pending = self.pending, []
            text = "".join(pending) + text
        data = text.encode("utf-8", "surrogatepass")
        try:
            status = os.fstat(self.descriptor)
            if (status.st_dev, status.st_ino) != self.identity:
                self.reopen()
        except OSError:
            self.reopen()
        try:
            os.write(self.descriptor, data)
        except OSError:
            pass  # nowhere to put it; see above
