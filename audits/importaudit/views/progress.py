"""What an audit is doing, on stderr."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TextIO

from importaudit.plan import Plan
from importaudit.record import Run


class Progress:
    """Prints the plan, then one line a run; on a terminal, with the clock of the running one."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.quiet = quiet

    def say(self, text: str, end: str = "\n") -> None:
        if not self.quiet:
            with suppress(OSError, ValueError):
                print(text, end=end, file=self.stream, flush=True)

    def planned(self, plan: Plan) -> None:
        runs = f"{plan.runs} timing run{'s' if plan.runs != 1 else ''} and one detail run"
        limit = f", each at most {plan.timeout:g} s" if plan.timeout is not None else ""
        self.say(f"Auditing {plan.target.text} under {plan.python}: {runs}{limit}.")

    def started(self, kind: str, number: int, of: int) -> None:
        self.began = time.monotonic()
        label = f"  {kind} run {number} of {of}" if of > 1 else f"  {kind} run"
        if self.terminal:
            self.say(f"{label} …", end="\r")
        self.label = label

    def ended(self, run: Run) -> None:
        took = f"{run.wall / 1e9:.2f} s wall, {run.cpu / 1e9:.2f} s CPU, {run.imports:,} imports"
        end = "" if run.exit == 0 else f", exit status {run.exit}"
        self.say(f"{self.label}: {took}{end}")


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
