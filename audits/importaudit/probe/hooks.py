"""Hooks in the import system that say what it is doing, and add no frame while it does it.

The import system is Python code that looks its helpers up by name (``_compile_bytecode``,
``self.get_data``, ``exec``, ...). A helper is replaced by an object whose ``__call__`` is a
property: looking it up runs our code *before* the call and yields the original helper. Where the
end of the call matters, it yields the original wrapped in a ``Call``; the interpreter holds the
only reference to that while the helper runs and drops it when the helper returns or raises, so
``Call.__del__`` runs our code *after* it. While the helper runs, there is no frame of ours on
the stack: ``sys._getframe``, ``warnings``, tracebacks and ``inspect`` see what they see without us.

The steps of an import (finding, reading, unmarshalling, executing) follow each other, so the
beginning of one is the end of the one before, and only what happens outside that order (a body
that calls ``loader.get_data``, a collection) is closed by a ``Call``.

Cost matters more than looks: this code runs thousands of times, each time in cold processor
caches.
"""

import _frozen_importlib as bootstrap
import _frozen_importlib_external as external
import _imp
import gc
import marshal
import sys
from _thread import get_ident
from marshal import loads
from time import perf_counter_ns, thread_time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from importaudit.probe.clock import (
        BODY,
        COMPILE,
        DLOPEN,
        GC,
        READ,
        UNMARSHAL,
        Thread,
    )
    from importaudit.probe.imports import Import, begin, detail, end, mark, modules, output, threads
    from importaudit.probe.output import HEAD, pack

EXTENSION = external.ExtensionFileLoader
EXECUTE = external._LoaderBasics.exec_module
EXECUTE_EXTENSION = EXTENSION.exec_module
original_attrs = bootstrap._init_module_attrs
collections = [0, 0, 0]
bind: "Any" = type(EXTENSION("", "").is_package)  # types.MethodType
plain: "dict[type, bool]" = {}  # types of loaders, and whether importlib's own code executes


def before(hook: "Any") -> "Any":
    """Run when a helper is looked up to be called: its phase begins. Returns what to call."""
    thread = threads.get(get_ident())
    if thread is None:
        return hook.original
    phase = hook.phase
    if thread.phase >= GC:  # not a step of an import, which the next step ends
        return call(thread, hook.original, phase)
    thread.phase = phase
    start = output.position
    output.position = start + HEAD
    pack(output.map, start, thread.key + phase, 0, perf_counter_ns(), thread_time_ns())
    return hook.original


class Hook:
    """Stands for a helper of the import system whose call is one step."""

    __slots__ = ("original", "phase")
    __call__: "Any" = property(before)

    def __init__(self, original: "Any", phase: int) -> None:
        self.original = original
        self.phase = phase


class Marshal:
    """Stands for the module ``marshal``, of which ``_compile_bytecode`` takes ``loads``."""

    __slots__ = ()

    @property
    def loads(self) -> "Any":
        thread = threads.get(get_ident())
        if thread is None:
            return loads
        if thread.phase >= GC:
            return call(thread, loads, UNMARSHAL)
        thread.phase = UNMARSHAL
        start = output.position
        output.position = start + HEAD
        pack(output.map, start, thread.key + UNMARSHAL, 0, perf_counter_ns(), thread_time_ns())
        return loads

    def __getattr__(self, name: str) -> "Any":
        return getattr(marshal, name)


class Method(Hook):
    """A hook in a class, where functions give bound methods when they are looked up."""

    __slots__ = ()

    def __get__(self, instance: "Any", owner: "Any" = None) -> "Any":
        if instance is None:
            return self.original
        bound = bind(self.original, instance)
        thread = threads.get(get_ident())
        if thread is None:
            return bound
        if thread.phase >= GC:
            return Hook(bound, self.phase)
        thread.phase = phase = self.phase  # the call follows at once
        start = output.position
        output.position = start + HEAD
        pack(output.map, start, thread.key + phase, 0, perf_counter_ns(), thread_time_ns())
        return bound


def before_body(hook: "Any") -> "Any":
    """The same for what executes a module: it may be another than the one being imported."""
    thread = threads.get(get_ident())
    if thread is None:
        return hook.original
    event = thread.event
    if thread.phase >= GC or event.ran or event.spec is None:
        frame = executing()
        module = frame.f_locals.get("module") if frame is not None else None
        if event.ran or event.spec is None or module is not modules.get(event._name):
            return execute_by_hand(hook.original, module)
    event.ran = True
    thread.phase = BODY
    start = output.position
    output.position = start + HEAD
    pack(output.map, start, thread.key + BODY, 0, perf_counter_ns(), thread_time_ns())
    return hook.original


class Execute(Hook):
    """The hook for ``exec`` and ``_imp.exec_dynamic`` in ``exec_module``."""

    __slots__ = ()
    __call__: "Any" = property(before_body)


def executing() -> "FrameType | None":
    """The frame of the ``exec_module`` of importlib's that is about to execute a module."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "exec_module":
        frame = frame.f_back
    return frame


def execute_by_hand(helper: "Any", module: "Any") -> "Any":
    """What to call when HELPER is to execute a MODULE that no import has asked for."""
    try:
        name = str(module.__dict__["__name__"])
        spec = module.__dict__.get("__spec__")
    except (AttributeError, KeyError):
        return helper
    event = Import(name)
    begin(event, name)
    if detail is not None:
        detail.asked(event, executing())
    event.ran = True
    if isinstance(spec, bootstrap.ModuleSpec):
        event.spec = spec
    made: Any = HandCall()
    made.__call__ = helper
    made.event = event
    thread = threads[get_ident()]
    thread.phase = BODY
    mark(thread.key + BODY, perf_counter_ns(), thread_time_ns())
    return made


class HandCall:
    """Executes a module by hand; the end of that is the end of its import."""

    __slots__ = ("__call__", "event")
    event: Import

    def __del__(self) -> None:
        end(self.event, None, None)


class Call:
    """A helper that is being called; its end is the end of the phase."""

    __slots__ = ("__call__", "phase", "thread")
    thread: Thread
    phase: int

    def __del__(self) -> None:
        self.thread.phase = self.phase
        mark(self.thread.key + self.phase, perf_counter_ns(), thread_time_ns())


def call(thread: Thread, original: "Any", phase: int) -> "Any":
    """ORIGINAL as something whose call is the phase PHASE, and nothing after it."""
    made: Any = Call()
    made.__call__ = original
    made.thread = thread
    made.phase = thread.phase
    thread.phase = phase
    mark(thread.key + phase, perf_counter_ns(), thread_time_ns())
    return made


def before_legacy(hook: "Any") -> "Any":
    """A loader of old, which finds, reads and executes in one: all of it is the body."""
    thread = threads.get(get_ident())
    if thread is not None:
        thread.event.ran = True
    return before(hook)


class Legacy(Hook):
    """The hook for ``_load_backward_compatible``."""

    __slots__ = ()
    __call__: "Any" = property(before_legacy)


def before_builtin(hook: "Any") -> "Any":
    """A builtin module initialises itself where others are only created."""
    thread = threads.get(get_ident())
    return hook.original if thread is None else call(thread, hook.original, BODY)


class Builtin(Hook):
    """The hook for ``_imp.create_builtin``."""

    __slots__ = ()
    __call__: "Any" = property(before_builtin)


def init_module_attrs(spec: "Any", module: "Any", *, override: bool = False) -> "Any":
    """``_init_module_attrs``, the last step before a loader executes: note what is loaded.

    A plain wrapper, since no code of the target runs inside it. A loader that is not
    importlib's own may do anything in its ``exec_module``: all of it is the module's body.
    """
    result = original_attrs(spec, module, override=override)
    thread = threads.get(get_ident())
    if thread is not None:
        event = thread.event
        if event.spec is None and not event.ran and event._name == getattr(spec, "name", None):
            event.spec = spec
            kind = type(spec.loader)
            if kind not in plain:
                execute = getattr(kind, "exec_module", None)
                plain[kind] = execute is EXECUTE or execute is EXECUTE_EXTENSION
            if not plain[kind]:
                thread.phase = BODY
                mark(thread.key + BODY, perf_counter_ns(), thread_time_ns())
    return result


def on_collection(phase: str, info: "dict[str, int]") -> None:
    """``gc.callbacks``: a pause belongs to no module, whichever it interrupts."""
    thread = threads.get(get_ident())
    if phase == "start":
        collections[info["generation"]] += 1
        if thread is None:
            return
        thread.before_gc = thread.phase
        now = GC
    elif thread is None or thread.phase != GC:
        return
    else:
        now = thread.before_gc
    thread.phase = now
    start = output.position
    if start + HEAD > output.limit:  # a body can collect for as long as it likes
        start = output.more(HEAD)
    else:
        output.position = start + HEAD
    pack(output.map, start, thread.key + now, 0, perf_counter_ns(), thread_time_ns())


def hook(place: "Any", name: str, phase: int, kind: "Any" = Hook) -> None:
    """Replace the helper NAME of PLACE, where this version of the interpreter has it."""
    original = place.__dict__.get(name)
    if original is not None:
        setattr(place, name, kind(original, phase))


def install_hooks() -> None:
    """Put all of them in place."""
    hook(bootstrap, "_load_backward_compatible", BODY, Legacy)
    external.marshal = Marshal()  # type: ignore[attr-defined]
    hook(external.FileLoader, "get_data", READ, Method)
    # What is called through `_call_with_frames_removed` is looked up as a global of its caller.
    external.exec = Execute(exec, BODY)  # type: ignore[attr-defined]
    external.compile = Hook(compile, COMPILE)  # type: ignore[attr-defined]
    ours = type(sys)("_imp")
    ours.__dict__.update(_imp.__dict__)
    hook(ours, "create_dynamic", DLOPEN)
    hook(ours, "exec_dynamic", BODY, Execute)
    hook(ours, "create_builtin", BODY, Builtin)
    hook(ours, "get_frozen_object", UNMARSHAL)
    external._imp = bootstrap._imp = ours  # type: ignore[attr-defined]
    zipimport = modules.get("zipimport")
    if zipimport is not None:
        hook(zipimport, "_get_data", READ)
        hook(zipimport, "_unmarshal_code", UNMARSHAL)
        hook(zipimport, "_compile_source", COMPILE)
    bootstrap._init_module_attrs = init_module_attrs
    bootstrap._ModuleLockManager = Import  # type: ignore[attr-defined]
    gc.callbacks.append(on_collection)
