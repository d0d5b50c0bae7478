"""Why a target did not come to its end, from what its trace and its exit say."""

from __future__ import annotations

import difflib
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from importaudit.analysis.costs import chain
from importaudit.files import LOCAL, Files
from importaudit.record import Event, Failure, Link

Near = Callable[[str], list[str]]  # modules of similar names

CLOSE = 0.7  # of difflib's ratio: one letter of four may differ
MODULES_STAY = "a module must not end the process that imports it"
SUFFIXES = (".py", ".so", ".pyd", ".pyc")


def diagnose(
    events: Sequence[Event],
    *,
    exit_status: int,
    timed_out: bool,
    timeout: float | None,
    finished: bool,
    stderr: str,
    stdout: str = "",
    interrupted: bool = False,
    path: Iterable[str],
    wanted: Sequence[str],
    files: Files = LOCAL,
) -> Failure | None:
    """What went wrong, or None when the target's code came to its end without an exception."""
    near = partial(near_matches, path=path, files=files)
    found = cause(
        events, exit_status, timed_out, timeout, finished, stderr, near, wanted, interrupted
    )
    if found is not None:
        found.stdout = stdout
    return found


def cause(
    events: Sequence[Event],
    exit_status: int,
    timed_out: bool,
    timeout: float | None,
    finished: bool,
    stderr: str,
    near: Near,
    wanted: Sequence[str],
    interrupted: bool,
) -> Failure | None:
    """The same, without what the target wrote to stdout."""
    by_number = {event.number: event for event in events}
    root = by_number.get(0)
    if finished and not timed_out and root is not None and root.outcome == "failed":
        links = failed_chain(by_number)
        if root.error != "SystemExit":
            return exception(root, links, stderr, near, wanted)
        if exit_status == 0 and not links:  # code and scripts may end so; a module may not
            return None
        message = f"the target called sys.exit (exit status {exit_status})" + within(links)
        return Failure("exit", message, MODULES_STAY, links, stderr)
    links = open_chain(by_number)
    if interrupted:
        kind, message, hint = "interrupt", "the target was interrupted by Ctrl-C", ""
    elif timed_out:
        kind = "timeout"
        message = f"the target had not finished after {timeout:g} s"
        hint = "give it longer with --timeout, or look at the import that it hangs in"
    elif exit_status < 0:
        kind = "signal"
        message = f"the target was killed by {signal_name(-exit_status)}"
        hint = "the last import above is where native code went wrong" if links else ""
    elif root is None:
        kind = "vanished"
        message = f"nothing was recorded (exit status {exit_status}): the interpreter ended before"
        message += " the probe began, or there is no space for the trace"
        hint = "see that the interpreter runs alone, and that TMPDIR has space"
    elif not finished:
        kind = "vanished"
        message = f"the target left without ending its code (exit status {exit_status}):"
        message += " os._exit or exec"
        hint = f"{MODULES_STAY}; if none did, there was no space for the trace (see TMPDIR)"
    else:
        return None
    message += within(links) + (beside(by_number) if timed_out else "")
    return Failure(kind, message, hint, links, stderr)


def exception(
    root: Event, links: list[Link], stderr: str, near: Near, wanted: Sequence[str]
) -> Failure:
    """The failure of an exception; a module that is not there gets its near matches."""
    message = f"{root.error}: {root.message}" if root.message else root.error
    hint = "run the same import without importaudit to see it alone"
    if root.error == "ModuleNotFoundError" and links:
        missing = links[-1].module
        if missing in wanted or any(w.startswith(f"{missing}.") for w in wanted):
            similar = near(missing)
            hint = f"did you mean {' or '.join(similar)}?" if similar else "is it installed there?"
    return Failure("exception", message + within(links), hint, links, stderr)


def within(links: Sequence[Link]) -> str:
    return f", while importing {links[-1].module}" if links else ""


def beside(events: dict[int, Event]) -> str:
    """What threads other than the main one were importing, innermost."""
    running = {e.thread: e.module for e in events.values() if e.thread and e.outcome == "running"}
    return f"; other threads were importing {', '.join(running.values())}" if running else ""


def signal_name(number: int) -> str:
    """ "SIGSEGV (segmentation fault)", or the number where it has no name."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    description = signal.strsignal(number)
    return f"{name} ({description.lower()})" if description else name


def open_chain(events: dict[int, Event]) -> list[Link]:
    """The imports that had begun and not ended, outermost first."""
    running = [event.number for event in events.values() if event.outcome == "running"]
    main = [n for n in running if n and events[n].thread == 0]
    return chain(events, max(main or running, default=0))


def failed_chain(events: dict[int, Event]) -> list[Link]:
    """Down the imports that failed, from the last one of the root to the one that raised."""
    number = 0
    while True:
        failed = [
            e.number
            for e in events.values()
            if e.number and e.parent == number and e.outcome in ("failed", "abandoned")
        ]
        if not failed or not ended_it(events, number, max(failed)):
            return chain(events, number)
        number = max(failed)


def ended_it(events: dict[int, Event], parent: int, child: int) -> bool:
    """Whether CHILD's exception is what ended PARENT: the same kind, and nothing came after."""
    same = events[parent].error == events[child].error
    later = any(e.parent == parent and e.number > child for e in events.values() if e.number)
    return same and not later


def near_matches(module: str, path: Iterable[str], files: Files = LOCAL) -> list[str]:
    """Modules of a similar name, beside where MODULE would have been."""
    package, _, _name = module.rpartition(".")
    folders = [f"{entry or '.'}/{package.replace('.', '/')}" for entry in path]
    names = {name for folder in folders for name in importable(folder, files)}
    if not package:
        names |= set(sys.stdlib_module_names)
    prefix = f"{package}." if package else ""
    candidates = sorted(prefix + name for name in names if not name.startswith("__"))
    return difflib.get_close_matches(module, candidates, n=3, cutoff=CLOSE)


def importable(folder: str, files: Files) -> set[str]:
    """Names that FOLDER offers for import, to judge by their looks."""
    try:
        entries = files.scan(folder)
    except OSError:
        return set()
    names = set()
    for entry in entries:
        name = entry.name.partition(".")[0]
        if name.isidentifier() and (entry.name.endswith(SUFFIXES) or entry.is_dir()):
            names.add(name)
    return names
