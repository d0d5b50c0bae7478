"""Imports begin and end where importlib takes and releases the module's lock.

`mark` and its like write straight into the trace: they take the place at ``output.position`` by
moving that on (see ``output``). Those four lines are repeated here and in ``hooks`` where a call
would cost more than they do.
"""

import _frozen_importlib as bootstrap
import sys
from _struct import Struct
from _thread import get_ident
from time import perf_counter_ns, thread_time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # In the guest all files of the tracer share their globals (see `start`).
    from importaudit.probe.clock import (
        ABANDONED,
        BEGIN,
        BODY,
        FAILED,
        FIND,
        GAP,
        LOADED,
        PRESENT,
        THREAD,
        WAITED,
        Thread,
        close_quietly,
        off_processor,
    )
    from importaudit.probe.output import HEAD, pack

BORDER = HEAD + 8  # bytes: where an import begins or ends, one more number follows

pack_border = Struct("=IIqqq").pack_into
threads: "dict[int, Thread]" = {}
modules = sys.modules
original_lock = bootstrap._ModuleLockManager  # type: ignore[attr-defined]
original_enter = original_lock.__enter__
original_exit = original_lock.__exit__
output: "Any" = None
detail: "Any" = None
on_load: "dict[str, Any]" = {}  # name of a module -> what to do with it once it is loaded
tracing = False


class Import(original_lock):  # type: ignore[misc,valid-type]
    """One import, as the ``_ModuleLockManager`` that importlib holds all the while."""

    __slots__ = ("number", "upper", "phase", "spec", "ran")
    number: int  # where the trace says that it begins; 0 once it has ended, if it is traced at all
    upper: "Import | None"  # the import that was running in this thread, and
    phase: int  # the phase it was in
    spec: "Any"  # what is being loaded, once that is known
    ran: bool  # its body has started

    def __enter__(self) -> None:
        if tracing:
            begin(self, self._name)
            if detail is not None:
                detail.asked(self, sys._getframe(1))
        else:
            self.number = 0
        try:
            original_enter(self)
        except BaseException as error:  # _DeadlockError: __exit__ will not be called
            end(self, type(error), error)
            raise

    def __exit__(self, kind: "Any", value: "Any", trace: "Any") -> None:
        original_exit(self, kind, value, trace)
        if kind is None and self.number and self.ran and self._name not in on_load:
            thread = threads.get(get_ident())
            if thread is not None and thread.event is self:  # as in `end`, which nearly all are
                close(thread, self, LOADED)
                return
        end(self, kind, value)


def begin(event: Import, name: str) -> None:
    """Open EVENT, the import of NAME."""
    thread = threads.get(get_ident())
    if thread is None:
        thread = new_thread()
    event.upper = upper = thread.event
    event.phase = thread.phase
    event.spec = None
    event.ran = False
    try:
        data = name.encode()
    except UnicodeEncodeError:
        data = name.encode("utf-8", "surrogatepass")
    size = 8 + len(data)
    wall = perf_counter_ns()
    cpu = thread_time_ns()
    off = wall - cpu
    if off - thread.off > GAP:
        mark(thread.key + WAITED, off_processor(thread), 0)
    thread.off = off
    start = output.position
    stop = start + HEAD + size
    if stop > output.limit:
        start = output.more(HEAD + size)
        stop = start + HEAD + size
    else:
        output.position = stop
    to = output.map
    pack_border(to, start, thread.key + BEGIN, size, wall, cpu, upper.number)
    to[start + BORDER : stop] = data
    event.number = output.base + start
    thread.phase = FIND
    thread.event = event  # last: an exception above (a signal's, the stack's end) undoes nothing


def new_thread() -> Thread:
    """What is known of this thread, from its first import on."""
    thread = threads[get_ident()] = Thread(new_root(""))
    output.put("K", thread.key // THREAD, thread.ident)
    return thread


def new_root(name: str) -> Import:
    """What a thread is in when it does not import."""
    root = Import(name)
    root.number = 0
    root.upper = root.spec = None
    root.phase = BODY
    root.ran = True
    return root


def end(event: Import, kind: "type[BaseException] | None", value: "BaseException | None") -> None:
    """Close EVENT, and what an exception thrown into our own code may have left open above it."""
    thread = threads.get(get_ident())
    if thread is None or event.number == 0:
        return
    if thread.event is not event and not unwind(thread, event):
        return
    if kind is not None:
        output.put("E", event.number, kind.__qualname__, message(value))
        close(thread, event, FAILED)
    elif event.spec is None and not event.ran:
        close(thread, event, PRESENT)
    else:
        close(thread, event, LOADED)
        if event._name in on_load:
            on_load.pop(event._name)(modules[event._name])


def unwind(thread: Thread, event: Import) -> bool:
    """Close what is open above EVENT; False when EVENT is not open."""
    while thread.event is not event:
        upper = thread.event.upper
        if upper is None:
            return False
        if thread.event.number == 0:
            thread.event = upper
        else:
            close(thread, thread.event, ABANDONED)
    return True


def close(thread: Thread, event: Import, how: int) -> None:
    """Write that EVENT ends; THREAD is back in the import around it."""
    spec = event.spec
    data = b""
    if spec is not None:
        event.spec = None
        origin = spec.origin
        text = type(spec.loader).__name__ + "\0" + (origin if type(origin) is str else "")
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = text.encode("utf-8", "surrogatepass")
    if detail is not None and tracing:
        detail.after(event)
    size = 8 + len(data)
    wall = perf_counter_ns()
    cpu = thread_time_ns()
    off = wall - cpu
    if off - thread.off > GAP:
        mark(thread.key + WAITED, off_processor(thread), 0)
    thread.off = off
    start = output.position
    stop = start + HEAD + size
    if stop > output.limit:
        start = output.more(HEAD + size)
        stop = start + HEAD + size
    else:
        output.position = stop
    to = output.map
    pack_border(to, start, thread.key + how, size, wall, cpu, event.number)
    to[start + BORDER : stop] = data
    event.number = 0
    thread.phase = event.phase
    upper = event.upper
    if upper is None:
        return
    thread.event = upper
    if upper.upper is None and upper is not root:
        del threads[thread.ident]
        close_quietly(thread.descriptor)


def mark(what: int, wall: int, cpu: int) -> None:
    """Write a mark, looking for room."""
    start = output.position
    if start + HEAD > output.limit:
        start = output.more(HEAD)
    else:
        output.position = start + HEAD
    pack(output.map, start, what, 0, wall, cpu)


def message(value: "BaseException | None") -> str:
    """The text of an exception, without running code of the target to get it."""
    if isinstance(value, ImportError) and isinstance(value.msg, str):
        return value.msg
    if value is not None and len(value.args) == 1 and type(value.args[0]) is str:
        return value.args[0]
    return ""


root = new_root("__main__")
