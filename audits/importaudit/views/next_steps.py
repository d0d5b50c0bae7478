"""What to do next, at most a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from importaudit.analysis.advice import Step
from importaudit.record import Record
from importaudit.views.figures import place, visible

ROOM = " " * 12  # below the text of the line above


def steps(found: Sequence[Step], record: Record) -> RenderableType:
    """One step after the other: what it saves, what to do and how that is known; below it, how."""
    if not found:
        return Group()
    parts: list[RenderableType] = [Text("What to do next", style="bold")]
    for step in found:
        line = Text(f"  {step.saving / 1e9:6.2f} s  ")
        line.append(" ".join(visible(step.what)), style="bold")
        line.append(f"  ({step.known})", style="dim")
        parts.append(line)
        where = place(step.where, record) if step.where is not None else ""
        how = " ".join([*visible(step.how), *([where] if where else [])])
        parts.append(Text(f"{ROOM}{how}", style="cyan"))
    return Group(*parts, Text())
