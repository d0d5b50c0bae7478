"""What can go wrong, as facts; ``cli`` alone turns them into text on stderr and exit codes."""

from __future__ import annotations


class AuditError(Exception):
    """The base of everything that importaudit raises on purpose.

    ``problem`` says what failed and where, ``hint`` what to do next.
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


class UsageError(AuditError):
    """The command line asks for something that cannot be."""


class InterpreterError(AuditError):
    """The target interpreter is missing, too old, or not a Python."""


class ContainerError(AuditError):
    """A container cannot be had: no engine, no image, or it does not start."""


class RecordError(AuditError):
    """A Record cannot be read: not there, not a Record, malformed, or from another version."""


class OutputError(AuditError):
    """A result cannot be written."""
