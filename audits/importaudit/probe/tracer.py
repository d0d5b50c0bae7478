"""The light tracer: every import of the process, and what each moment of it was spent on.

How it stays invisible. The import system is Python code that looks its helpers up by name
(``_bootstrap._find_spec``, ``self.get_data``, ...). A helper is replaced by an object whose
``__call__`` is a descriptor: looking it up runs our code *before* the call and yields the
original helper, wrapped in a ``Call``; the interpreter holds the only reference to that while
the helper runs and drops it when the helper returns or raises, so ``Call.__del__`` runs our
code *after* it. While the helper runs, there is no frame of ours on the stack: ``sys._getframe``,
``warnings``, tracebacks and ``inspect`` see what they see without us. Imports begin and end
where importlib takes and releases the module's lock (``_ModuleLockManager``).

The steps of an import (finding, reading, unmarshalling, executing) follow each other, so the
beginning of one is the end of the one before, and only what happens outside that order (a body
that calls ``loader.get_data``, a collection) is closed by a ``Call``. Cost matters more than
looks here: this code runs thousands of times, each time in cold processor caches.
"""

import _frozen_importlib as bootstrap
import _frozen_importlib_external as external
import gc
import sys
from _frozen_importlib import BuiltinImporter, FrozenImporter
from _thread import get_ident
from time import perf_counter_ns, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    # In the guest these names are put here by `start.load`: nothing is imported there.
    from importaudit.probe.clock import (
        BEGIN,
        BODY,
        COMPILE,
        DLOPEN,
        END,
        FIND,
        GC,
        IMPORT,
        PROBE,
        READ,
        UNMARSHAL,
        Event,
        Thread,
        border,
        close_quietly,
        mark,
        off_processor,
    )

PATIENCE = 1.0  # seconds that threads get to finish their imports after the main thread

threads: "dict[int, Thread]" = {}
modules = sys.modules
numbers = iter(range(1, 1 << 60)).__next__
original_lock = bootstrap._ModuleLockManager  # type: ignore[attr-defined]
output: "Any" = None
detail: "Any" = None
collections = [0, 0, 0]
on_load: "dict[str, Any]" = {}  # name of a module -> what to do with it once it is loaded
tracing = False


# --- imports begin and end ---------------------------------------------------------------


def begin(name: str, frame: "FrameType | None") -> Event:
    """Open the import of NAME, asked for by the code at FRAME, which is known in a detail run."""
    ident = get_ident()
    thread = threads.get(ident)
    if thread is None:
        event = Event(name, numbers(), None, IMPORT)
        thread = threads[ident] = Thread(event)
        above = 0
    else:
        upper = thread.event
        above = upper.number
        event = Event(name, numbers(), upper, thread.phase)
    log = border(thread, BEGIN, IMPORT)
    file, line = asking(frame) if frame is not None else ("", 0)
    output.put("B", event.number, above, ident, name, log, file, line)
    thread.event = event  # last: an exception above (a signal's, the stack's end) undoes nothing
    return event


def asking(frame: "FrameType | None") -> "tuple[str, int]":
    """The code that asked, past the import system's own frames and importlib.import_module."""
    while frame is not None and frame.f_globals.get("__name__") in IMPORT_SYSTEM:
        frame = frame.f_back
    if frame is None:
        return "", 0
    return frame.f_code.co_filename, frame.f_lineno or 0


def end(event: Event, kind: "type[BaseException] | None", value: "BaseException | None") -> None:
    """Close EVENT, and what an exception thrown into our own code may have left open above it."""
    thread = threads.get(get_ident())
    if thread is None or event.ended:
        return
    while thread.event is not event and thread.event.upper is not None:
        if thread.event.ended:
            thread.event = thread.event.upper
        else:
            close(thread, thread.event, "abandoned", "", "")
    if thread.event is not event:
        return
    if kind is None:
        close(thread, event, "loaded" if event.sought or event.ran else "present", "", "")
        if event.name in on_load:
            on_load.pop(event.name)(modules[event.name])
    else:
        close(thread, event, "failed", kind.__qualname__, message(value))


def close(thread: Thread, event: Event, outcome: str, error: str, text: str) -> None:
    log = border(thread, END, PROBE)
    spec, event.spec = event.spec, None
    loader = origin = ""
    if spec is not None:
        loader = type(spec.loader).__name__
        origin = spec.origin
        if type(origin) is not str:
            origin = ""
    if detail is not None and tracing:
        detail.after(event)
    output.put("E", event.number, outcome, log, loader, origin, error, text)
    event.ended = True
    upper = event.upper
    if upper is None:
        del threads[thread.ident]
        close_quietly(thread.descriptor)
        return
    thread.event = upper
    mark(thread, event.phase)


def message(value: "BaseException | None") -> str:
    """The text of an exception, without running code of the target to get it."""
    if isinstance(value, ImportError) and isinstance(value.msg, str):
        return value.msg
    if value is not None and len(value.args) == 1 and type(value.args[0]) is str:
        return value.args[0]
    return ""


class Lock(original_lock):  # type: ignore[misc,valid-type]
    """``_ModuleLockManager``: importlib holds it from before finding a module to after its body."""

    def __enter__(self) -> None:
        self._event = event = (
            begin(self._name, sys._getframe(1) if detail else None) if tracing else None
        )
        try:
            original_enter(self)
        except BaseException as error:  # _DeadlockError: __exit__ will not be called
            if event is not None:
                end(event, type(error), error)
            raise

    def __exit__(self, kind: "Any", value: "Any", trace: "Any") -> None:
        original_exit(self, kind, value, trace)
        if self._event is not None:
            end(self._event, kind, value)


original_enter = original_lock.__enter__
original_exit = original_lock.__exit__


# --- hooks that add no frame -------------------------------------------------------------


class Call:
    """A helper that is being called; its end is the end of the phase."""

    __slots__ = ("__call__", "phase", "thread")
    thread: Thread
    phase: int

    def __del__(self) -> None:
        mark(self.thread, self.phase)


class HandCall:
    """The same for the body of a module that no import asked for (``loader.exec_module``)."""

    __slots__ = ("__call__", "event")
    event: Event

    def __del__(self) -> None:
        end(self.event, None, None)


def call(thread: Thread, original: "Any", phase: int) -> "Any":
    """ORIGINAL as something whose call is the phase PHASE, and nothing after it."""
    made: Any = Call()
    made.__call__ = original
    made.thread = thread
    made.phase = thread.phase
    mark(thread, phase)
    return made


class Before:
    """What ``__call__`` of a hook is: run at the call, yielding what is to be called."""

    def __get__(self, hook: "Any", owner: "Any" = None) -> "Any":
        thread = threads.get(get_ident())
        if thread is None:
            return hook.original
        phase = hook.phase
        if phase == FIND:
            thread.event.sought = True
        if thread.phase in STEPS:
            mark(thread, phase)
            return hook.original
        return call(thread, hook.original, phase)


class Hook:
    """Stands for a helper of the import system whose call is one step."""

    __slots__ = ("original", "phase")
    __call__: "Any" = Before()

    def __init__(self, original: "Any", phase: int) -> None:
        self.original = original
        self.phase = phase


class BeforeFramesRemoved:
    """``_call_with_frames_removed`` does several things; the code that calls it says which."""

    def __get__(self, hook: "Any", owner: "Any" = None) -> "Any":
        frame = sys._getframe(1)
        phase = CALLERS.get(id(frame.f_code), IMPORT)
        thread = threads.get(get_ident())
        if phase == IMPORT or thread is None:
            return hook.original
        if phase == BODY:
            if id(frame.f_code) == BUILTIN_CREATE:
                return call(thread, hook.original, BODY)
            if not_asked_for(thread, frame):
                return execute_by_hand(hook.original, frame)
            thread.event.ran = True
        elif thread.phase not in STEPS:
            return call(thread, hook.original, phase)
        mark(thread, phase)
        return hook.original


class FramesRemoved(Hook):
    """The hook for ``_call_with_frames_removed``."""

    __slots__ = ()
    __call__: "Any" = BeforeFramesRemoved()


class Method:
    """A hook in a class, where functions give bound methods when they are looked up."""

    __slots__ = ("original", "phase")

    def __init__(self, original: "Any", phase: int) -> None:
        self.original = original
        self.phase = phase

    def __get__(self, instance: "Any", owner: "Any" = None) -> "Any":
        bound = self.original.__get__(instance, owner)
        thread = threads.get(get_ident())
        if instance is None or thread is None:
            return bound
        if thread.phase in STEPS:  # the call follows at once
            mark(thread, self.phase)
            return bound
        return Hook(bound, self.phase)


def not_asked_for(thread: Thread, frame: "FrameType") -> bool:
    """Whether the module that FRAME (an ``exec_module``) executes is not the one being imported."""
    event = thread.event
    if event.spec is None or event.ran:
        return True
    # In a foreign loader's exec_module anything may be executed; importlib's own have one body.
    return thread.phase == BODY and frame.f_locals.get("module") is not modules.get(event.name)


def execute_by_hand(helper: "Any", frame: "FrameType") -> "Any":
    module = frame.f_locals.get("module")
    try:
        name = str(module.__dict__["__name__"])
        spec = module.__dict__.get("__spec__")
    except (AttributeError, KeyError):
        return helper
    event = begin(name, frame.f_back if detail else None)
    event.ran = True
    if isinstance(spec, bootstrap.ModuleSpec):
        event.spec = spec
    made: Any = HandCall()
    made.__call__ = helper
    made.event = event
    mark(threads[get_ident()], BODY)
    return made


def init_module_attrs(spec: "Any", module: "Any", *, override: bool = False) -> "Any":
    """``_init_module_attrs``, the last step before a loader executes: note what is loaded.

    A plain wrapper, since no code of the target runs inside it. A loader that is not
    importlib's own may do anything in its ``exec_module``: all of it is the module's body.
    """
    result = original_attrs(spec, module, override=override)
    thread = threads.get(get_ident())
    if thread is not None:
        event = thread.event
        if event.spec is None and not event.ran and event.name == getattr(spec, "name", None):
            event.spec = spec
            execute = getattr(type(spec.loader), "exec_module", None)
            if id(getattr(execute, "__code__", None)) not in KNOWN:
                mark(thread, BODY)
    return result


def on_collection(phase: str, info: "dict[str, int]") -> None:
    """``gc.callbacks``: a pause belongs to no module, whichever it interrupts."""
    thread = threads.get(get_ident())
    if phase == "start":
        collections[info["generation"]] += 1
        if thread is not None:
            thread.before_gc = thread.phase
            mark(thread, GC)
    elif thread is not None and thread.phase == GC:
        mark(thread, thread.before_gc)


# --- putting it in place -----------------------------------------------------------------

IMPORT_SYSTEM = {
    "_frozen_importlib",  # until somebody imports importlib, which renames the two
    "_frozen_importlib_external",
    "importlib._bootstrap",
    "importlib._bootstrap_external",
    "importlib",
}
# Phases that the next step ends.
STEPS = {IMPORT, FIND, READ, UNMARSHAL, COMPILE, DLOPEN}
EXTENSION = external.ExtensionFileLoader
# What `_call_with_frames_removed` is used for, by the id of the code that calls it (hashing a
# code object hashes all of its constants).
EXECUTE = id(external._LoaderBasics.exec_module.__code__)
EXECUTE_EXTENSION = id(EXTENSION.exec_module.__code__)
BUILTIN_CREATE = id(BuiltinImporter.create_module.__code__)
CALLERS = {
    EXECUTE: BODY,
    EXECUTE_EXTENSION: BODY,
    BUILTIN_CREATE: BODY,
    id(EXTENSION.create_module.__code__): DLOPEN,
    id(external.SourceLoader.source_to_code.__code__): COMPILE,
    id(FrozenImporter.exec_module.__code__): UNMARSHAL,
}
KNOWN = {EXECUTE, EXECUTE_EXTENSION}
original_attrs = bootstrap._init_module_attrs


def hook(place: "Any", name: str, phase: int) -> None:
    """Replace the helper NAME of PLACE, where this version of the interpreter has it."""
    original = place.__dict__.get(name)
    if original is None:
        return
    kind = Method if isinstance(place, type) else Hook
    setattr(place, name, kind(original, phase))


def install(to: "Any", with_detail: "Any") -> None:
    """Start tracing, with the import of ``__main__`` as the root of everything."""
    global output, detail, tracing
    output, detail = to, with_detail
    root = Event("__main__", 0, None, BODY)
    root.ran = True
    hook(bootstrap, "_find_spec", FIND)
    helper = bootstrap._call_with_frames_removed  # type: ignore[attr-defined]
    bootstrap._call_with_frames_removed = FramesRemoved(helper, BODY)  # type: ignore[attr-defined]
    hook(bootstrap, "_load_backward_compatible", BODY)
    hook(external, "_compile_bytecode", UNMARSHAL)
    hook(external.FileLoader, "get_data", READ)
    zipimport = modules.get("zipimport")
    if zipimport is not None:
        hook(zipimport, "_get_data", READ)
        hook(zipimport, "_unmarshal_code", UNMARSHAL)
        hook(zipimport, "_compile_source", COMPILE)
    bootstrap._init_module_attrs = init_module_attrs
    bootstrap._ModuleLockManager = Lock  # type: ignore[attr-defined]
    gc.callbacks.append(on_collection)
    output.put("M", *sorted(modules))
    tracing = True
    thread = threads[get_ident()] = Thread(root)
    thread.phase = BODY
    output.put("R", thread.ident, thread.wall, thread.cpu, thread.waited)


def finish(kind: "type[BaseException] | None", value: "BaseException | None") -> None:
    """Close the root, wait for other threads' imports for a moment, and say what is left."""
    global tracing
    thread = threads.get(get_ident())
    if thread is None:
        return
    root = thread.event
    while root.upper is not None:
        if not root.ended:
            close(thread, root, "abandoned", "", "")
        root = thread.event = root.upper
    mark(thread, PROBE)
    deadline = perf_counter_ns() + int(PATIENCE * 1e9)
    while len(threads) > 1 and perf_counter_ns() < deadline:
        sleep(0.005)
    tracing = False
    outcome = "loaded" if kind is None else "failed"
    error = "" if kind is None else kind.__qualname__
    log = border(thread, END, PROBE)
    output.put("E", 0, outcome, log, "", "", error, message(value))
    for other in list(threads.values()):
        if other is not thread:
            output.put("T", other.ident, other.event.number)
    output.put("N", *list(modules))
    for entry in sys.path:
        output.put("F", "final_path", str(entry))
    output.put("C", *collections)
    off_processor(thread)
    output.put("D", thread.wall, thread.cpu, thread.waited)
    threads.clear()


def restart_in_child() -> None:
    """After a fork: the imports that were open go on here, with clocks that start now."""
    thread = threads.get(get_ident())
    threads.clear()
    if thread is None or not tracing:
        return
    threads[thread.ident] = thread
    close_quietly(thread.descriptor)
    thread.restart()
    thread.log = []
    line: list[Event] = []
    event: Event | None = thread.event
    while event is not None:
        line.append(event)
        event = event.upper
    for event in reversed(line):
        if event.number:
            above = event.upper.number if event.upper is not None else 0
            log = [BEGIN, thread.wall, thread.cpu]
            output.put("B", event.number, above, thread.ident, event.name, log, "", 0)
        else:
            output.put("R", thread.ident, thread.wall, thread.cpu, thread.waited)
    mark(thread, thread.phase)
