"""The light tracer: every import of the process, and what each moment of it was spent on.

``imports`` says where imports begin and end, ``hooks`` what happens between; here is what starts
and ends the whole.
"""

import sys
from _thread import get_ident
from time import perf_counter_ns, sleep, thread_time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # In the guest all files of the tracer share their globals (see `start`).
    from importaudit.probe.clock import (
        FAILED,
        LOADED,
        PROBE,
        THREAD,
        Thread,
        close_quietly,
        off_processor,
    )
    from importaudit.probe.hooks import collections, install_hooks
    from importaudit.probe.imports import (
        Import,
        begin,
        close,
        detail,
        mark,
        message,
        modules,
        output,
        root,
        threads,
        tracing,
        unwind,
    )

PATIENCE = 1.0  # seconds that threads get to finish their imports after the main thread


def install(to: "Any", with_detail: "Any") -> None:
    """Start tracing, with the import of ``__main__`` as the root of everything."""
    global output, detail, tracing
    output, detail = to, with_detail
    install_hooks()
    output.put("M", *sorted(modules))
    tracing = True
    thread = threads[get_ident()] = Thread(root)
    write_root(thread)


def write_root(thread: Thread) -> None:
    key = thread.key // THREAD
    output.put("R", key, thread.ident, thread.wall, thread.cpu, thread.waited)


def finish(kind: "type[BaseException] | None", value: "BaseException | None") -> None:
    """Close the root, wait for other threads' imports for a moment, and say what is left."""
    global tracing
    thread = threads.get(get_ident())
    if thread is None:
        return
    unwind(thread, root)
    thread.phase = PROBE
    mark(thread.key + PROBE, perf_counter_ns(), thread_time_ns())
    deadline = perf_counter_ns() + int(PATIENCE * 1e9)
    while len(threads) > 1 and perf_counter_ns() < deadline:
        sleep(0.005)
    tracing = False
    if kind is not None:
        output.put("E", 0, kind.__qualname__, message(value))
    close(thread, root, LOADED if kind is None else FAILED)
    for other in list(threads.values()):
        if other is not thread:
            output.put("T", other.ident, other.event.number)
    output.put("N", *list(modules))
    for entry in sys.path:
        output.put("F", "final_path", str(entry))
    output.put("C", *collections)
    off_processor(thread)
    output.put("D", perf_counter_ns(), thread_time_ns(), thread.waited)
    threads.clear()


def restart_in_child() -> None:
    """After a fork: the imports that were open go on here, with clocks that start now."""
    global root
    thread = threads.get(get_ident())
    threads.clear()
    if thread is None or not tracing:
        return
    if detail is not None:
        detail.forget()
    threads[thread.ident] = thread
    close_quietly(thread.descriptor)
    thread.restart()
    innermost, phase = thread.event, thread.phase
    line: list[Import] = []
    event: Import | None = innermost
    while event is not None:
        line.append(event)
        event = event.upper
    root = thread.event = line.pop()
    write_root(thread)
    for event in reversed(line):
        before_it = event.phase
        begin(event, event._name)
        event.phase = before_it
    thread.phase = phase
    mark(thread.key + phase, perf_counter_ns(), thread_time_ns())
