"""Names and numbers as they are drawn: in the room that there is, and harmless to a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from importaudit.record import Cost, Image, Link, Record

# What must not reach a terminal: escape sequences as a whole, and other control characters.
ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)")
CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], "\ufffd") | {9: " "}
FIRST = "first imported at"
WIDE = 80  # columns from which there is room for the last columns of the tables


def grid(title: str, *columns: str) -> Table:
    """A table without lines: names to the left, figures to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(Text(title, style="bold"), no_wrap=True, overflow="ellipsis")
    for column in columns:
        text = column in (FIRST, "")
        if text:
            table.add_column(column, no_wrap=True)
        else:  # a figure is shown whole or not at all
            table.add_column(column, justify="right", no_wrap=True, min_width=max(6, len(column)))
    return table


def seconds(nanoseconds: float) -> str:
    """Seconds with three decimals; what rounds to nothing has no sign."""
    return f"{round(nanoseconds / 1e9, 3) + 0.0:.3f}"


def number(count: int, one: str, many: str = "") -> str:
    """ "1 module", "2 modules"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def figures(cost: Cost) -> tuple[str, str, str, str]:
    return seconds(cost.wall), seconds(cost.cpu), seconds(cost.waiting), seconds(cost.blocked)


def share(part: int, whole: int) -> str:
    return f"{round(100 * part / whole, 1) + 0.0:.1f} %" if whole else ""


def spread(values: Sequence[int]) -> str:
    """Least and most of several values, in seconds; nothing for one."""
    if len(values) < 2:
        return ""
    return f" ({min(values) / 1e9:.2f} to {max(values) / 1e9:.2f}, {len(values)} runs)"


def place(link: Link, record: Record | None = None) -> str:
    """file:line, the file below the search path entry that it was found on."""
    file = link.file
    if record is not None:
        for entry in sorted(record.interpreter.path, key=len, reverse=True):
            if entry and file.startswith(entry + os.sep):
                file = file[len(entry) + 1 :]
                break
    return f"{' '.join(visible(file))}:{link.line}" if file else ""


def fit(room: int, first: Sequence[str], second: Sequence[str]) -> tuple[int, int]:
    """How much of ROOM two columns of text get: half each, and what the other leaves over."""
    one, two = (max(map(len, texts), default=0) for texts in (first, second))
    half = room // 2
    if two <= room - half:
        return room - two, two
    return min(one, half), room - min(one, half)


def visible(text: str) -> list[str]:
    """The lines of TEXT, which anybody may have written, without what would steer a terminal."""
    return [line.translate(CONTROLS) for line in ESCAPES.sub("", text).split("\n")]


def left(text: str, room: int) -> str:
    """TEXT in ROOM characters, cut at the left with an ellipsis."""
    return text if len(text) <= room else "…" + text[len(text) - room + 1 :]


def right(text: str, room: int) -> str:
    """TEXT in ROOM characters, cut at the right with an ellipsis."""
    return text if len(text) <= room else text[: room - 1] + "…"


def middle(text: str, room: int) -> str:
    """TEXT in ROOM characters, cut in the middle with an ellipsis."""
    if len(text) <= room:
        return text
    head = room // 2
    return text[:head] + "…" + text[len(text) - (room - head - 1) :]


def container(image: Image) -> list[str]:
    """The facts of the container that the target ran in."""
    facts = [f"in {image.reference} as {image.user}", f"{image.engine} ({image.storage})"]
    if image.read_only:
        facts.append("read-only root")
    if image.read_iops:
        facts.append(f"{image.read_iops:,} reads a second at most")
    return facts
