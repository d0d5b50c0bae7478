"""What an audit is doing, on stderr."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TextIO

from importaudit.plan import Plan, Schedule
from importaudit.record import Run


class Progress:
    """Prints the plan, then one line a run; on a terminal, also the one that is running."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.quiet = quiet
        self.stopped = False  # by Ctrl-C

    def say(self, text: str, end: str = "\n") -> None:
        if not self.quiet:
            with suppress(OSError, ValueError):
                print(text, end=end, file=self.stream, flush=True)

    def began(self, plan: Plan) -> None:
        limit = f", each run at most {plan.timeout:g} s" if plan.timeout is not None else ""
        self.say(f"Auditing {plan.target.text} under {plan.python}{limit}.")

    def planned(self, schedule: Schedule) -> None:
        names = ", ".join(condition.name for condition in schedule.conditions)
        runs = f"{schedule.runs} runs each" if schedule.runs != 1 else "one run each"
        self.say(f"Plan: {names}; {runs}, about {duration(schedule.seconds)} in all.")

    def started(self, label: str, number: int, of: int) -> None:
        label = f"  {number} of {of}: {label}" if of > 1 else f"  {label} run"
        if self.terminal:
            self.say(f"{label} …", end="\r")
        self.label = label

    def ended(self, run: Run) -> None:
        took = f"{run.wall / 1e9:.2f} s wall, {run.cpu / 1e9:.2f} s CPU, {run.imports:,} import"
        took += "" if run.imports == 1 else "s"
        end = "" if run.exit == 0 else f", exit status {run.exit}"
        self.say(f"{self.label}: {took}{end}")

    def interrupted(self) -> None:
        self.stopped = True
        self.say("\nInterrupted; the report is of the runs until then.")


def duration(seconds: float) -> str:
    """A length of time in words, as precise as a guess deserves."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min"


class Ticker:
    """On a terminal, one line on stderr that says how far something is; elsewhere nothing."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.next = 0.0

    def __call__(self, what: str, done: int) -> None:
        if self.terminal and time.monotonic() >= self.next:
            self.next = time.monotonic() + 0.1
            self.say(f"\r  {done:,} sources {what} …")

    def end(self) -> None:
        if self.terminal:
            self.say("\r\x1b[K")

    def say(self, text: str) -> None:
        with suppress(OSError, ValueError):
            print(text, end="", file=self.stream, flush=True)
