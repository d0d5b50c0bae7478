"""The detail run: edges to modules that were loaded already, and the hottest lines of the bodies.

Its times are never reported. Edges: ``builtins.__import__`` (and importlib's ``_gcd_import``,
behind ``import_module``) become hooks that look at the calling frame and yield the original, so
again no frame is added; which names an instruction imports is read from its bytecode after the
target is done. Lines: a thread looks at the stacks every few milliseconds and notes the
innermost module body of each thread that is in one.
"""

import _frozen_importlib as bootstrap
import builtins
import os
import sys
from _frozen_importlib import _gcd_import  # type: ignore[attr-defined]
from _thread import get_ident, start_new_thread
from time import perf_counter_ns, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

INTERVAL = 0.004  # seconds between two looks at the stacks
IMPORT_SYSTEM = {
    "_frozen_importlib",  # until somebody imports importlib, which renames the two
    "_frozen_importlib_external",
    "importlib._bootstrap",
    "importlib._bootstrap_external",
    "importlib",
}


class Observe:
    """What ``Observer.__call__`` is: a descriptor that runs at the call, as in the tracer."""

    def __get__(self, observer: "Any", owner: "Any" = None) -> "Any":
        try:
            observer.note(sys._getframe(1))
        except ValueError:  # C code imports, and no Python code has called it
            pass
        return observer.original


class Observer:
    """What ``__import__`` is in a detail run: notes the caller, then is the original."""

    __slots__ = ("note", "original")
    __call__: "Any" = Observe()

    def __init__(self, original: "Any", note: "Any") -> None:
        self.original = original
        self.note = note


def is_body(code: "CodeType") -> bool:
    """Whether CODE is a module's own, not a string that somebody executes (namedtuple, say)."""
    return code.co_name == "<module>" and not code.co_filename.startswith("<")


class Detail:
    """What the detail run collects, until the target is done."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.decoder = Decoder()
        self.forget()
        self.sampling = True

    def forget(self) -> None:
        """Begin anew, as a forked child does: its imports have other numbers."""
        self.sites: dict[tuple[int, int, int], list[Any]] = {}
        self.calls: dict[tuple[int, str, str], list[Any]] = {}
        self.samples: dict[tuple[int, int], int] = {}
        self.by_hand: list[tuple[str, int]] = []
        self.opened: set[str] = set()

    def install(self, tracer: "dict[str, Any]", output: "Any") -> None:
        self.output = output
        self.threads: dict[int, Any] = tracer["threads"]
        self.body: int = tracer["BODY"]
        self.known.update(sys.modules)
        builtins.__import__ = Observer(builtins.__import__, self.statement)
        bootstrap._gcd_import = Observer(_gcd_import, self.call)  # type: ignore[attr-defined]
        sys.addaudithook(self.audited)
        start_new_thread(self.sample, ())

    def audited(self, event: str, arguments: "tuple[Any, ...]") -> None:
        """An audit event (PEP 578): which files are opened, by anything written in Python."""
        if event == "open" and self.sampling and isinstance(arguments[0], (str, bytes)):
            try:
                self.opened.add(os.path.abspath(os.fsdecode(arguments[0])))
            except OSError:  # no working directory any more
                pass

    def asked(self, event: "Any", frame: "FrameType | None") -> None:
        """EVENT was asked for by the code at FRAME, past the import system's own frames."""
        while frame is not None and frame.f_globals.get("__name__") in IMPORT_SYSTEM:
            frame = frame.f_back
        if frame is not None:
            line = frame.f_lineno or 0
            self.output.put("A", event.number, frame.f_code.co_filename, line)

    def running(self) -> int:
        """The number of the import that this thread is in; the root's, if it is in none."""
        thread = self.threads.get(get_ident())
        return thread.event.number if thread is not None else 0

    def statement(self, frame: "FrameType") -> None:
        """An import statement, or a call of ``__import__`` (told apart later)."""
        key = (id(frame.f_code), frame.f_lasti, self.running())
        site = self.sites.get(key)
        if site is None:
            names = frame.f_globals
            package = names.get("__package__")
            if package is None:
                package = str(names.get("__name__"))
                if "__path__" not in names:
                    package = package.rpartition(".")[0]
            # The code is kept alive so that its id stays its own.
            self.sites[key] = [1, frame.f_code, str(package)]
        else:
            site[0] += 1

    def call(self, frame: "FrameType") -> None:
        """A call of ``importlib.import_module``."""
        name = frame.f_locals.get("name")
        caller = frame.f_back
        if frame.f_code.co_name != "import_module" or type(name) is not str or caller is None:
            return
        package = str(frame.f_locals.get("package"))
        key = (self.running(), name, package)
        found = self.calls.get(key)
        if found is None:
            self.calls[key] = [1, caller.f_code.co_filename, caller.f_lineno]
        else:
            found[0] += 1

    def after(self, event: "Any") -> None:
        """An import ended: what is new in ``sys.modules`` without one was put there by hand."""
        known = self.known
        known.add(event._name)
        for name in list(sys.modules):
            if name not in known:
                known.add(name)
                if not self.importing(name):
                    self.by_hand.append((name, event.number))

    def importing(self, name: str) -> bool:
        for thread in list(self.threads.values()):
            event = thread.event
            while event is not None:
                if event._name == name:
                    return True
                event = event.upper
        return False

    def sample(self) -> None:
        last = perf_counter_ns()
        while self.sampling:
            sleep(INTERVAL)
            frames = sys._current_frames()
            now = perf_counter_ns()
            for ident, thread in list(self.threads.items()):
                frame: FrameType | None = frames.get(ident)
                if thread.phase != self.body or frame is None:
                    continue
                while frame is not None and not is_body(frame.f_code):
                    frame = frame.f_back
                # The innermost body is another's while an extension module initialises itself.
                if frame is not None and self.owns(thread.event, frame.f_code):
                    key = (thread.event.number, frame.f_lineno)
                    self.samples[key] = self.samples.get(key, 0) + now - last
            last = now

    @staticmethod
    def owns(event: "Any", code: "CodeType") -> bool:
        """Whether CODE is the body of EVENT's module; the root's is whatever it is."""
        return event.number == 0 or code.co_filename == getattr(event.spec, "origin", None)

    def write(self) -> None:
        """Resolve and write everything."""
        output = self.output
        self.sampling = False
        output.put("O", *self.files())
        for name, number in self.by_hand:
            output.put("H", number, name)
        for (number, line), took in self.samples.items():
            output.put("L", number, line, took)
        for (number, name, package), (count, file, line) in self.calls.items():
            output.put("I", number, name, package, "", file, line, count)
        for (_, offset, number), (count, code, package) in self.sites.items():
            found = self.decoder.decode(code, offset)
            if found is not None:
                name, names, line = found
                file = code.co_filename
                output.put("I", number, name, package, names, file, line, count)

    def files(self) -> "list[str]":
        """The files that have been opened, loaded or mapped, with what start-up needed."""
        found = set(self.opened)
        for module in list(sys.modules.values()):
            spec = module.__dict__.get("__spec__") if type(module) is type(sys) else None
            if type(spec) is bootstrap.ModuleSpec:
                found.update(path for path in (spec.origin, spec.cached) if type(path) is str)
        with open("/proc/self/maps", "rb") as lines:
            for line in lines:
                fields = line.split(None, 5)
                if len(fields) == 6 and fields[5].startswith(b"/"):
                    found.add(os.fsdecode(fields[5].rstrip()))
        return sorted(found)


class Decoder:
    """Reads which names an IMPORT_NAME instruction imports, from its code object."""

    def __init__(self) -> None:
        from opcode import opmap

        self.extended = opmap["EXTENDED_ARG"]
        self.import_name = opmap["IMPORT_NAME"]
        self.load_const = {opmap[n] for n in ("LOAD_CONST", "LOAD_CONST_IMMORTAL") if n in opmap}
        self.load_small_int = opmap.get("LOAD_SMALL_INT", -1)
        self.flags = 2 if sys.version_info >= (3, 15) else 0  # PEP 810: lazy bits in the argument
        self.codes: dict[int, tuple[bytes, list[tuple[int, int, Any]]]] = {}

    def decode(self, code: "CodeType", offset: int) -> "tuple[str, str, int] | None":
        """Name (with the dots of a relative import), from-list joined by commas, and line."""
        found = self.codes.get(id(code))
        if found is None:
            lines = [entry for entry in code.co_lines() if entry[2] is not None]
            found = self.codes[id(code)] = (code.co_code, lines)
        text, lines = found
        opcode, argument, start = self.instruction(text, offset)
        if opcode != self.import_name:
            return None
        name = code.co_names[argument >> self.flags]
        fromlist, start = self.constant(code, text, start - 2)
        level, start = self.constant(code, text, start - 2)
        names = ",".join(fromlist) if isinstance(fromlist, tuple) else ""
        line = next((at for low, high, at in lines if low <= offset < high), None) or 0
        return ("." * level if isinstance(level, int) else "") + name, names, line

    def instruction(self, text: bytes, offset: int) -> "tuple[int, int, int]":
        """Opcode, argument and first byte (before its prefixes) of the instruction at OFFSET."""
        argument = text[offset + 1]
        start, shift = offset, 8
        while start >= 2 and text[start - 2] == self.extended:
            start -= 2
            argument |= text[start + 1] << shift
            shift += 8
        return text[offset], argument, start

    def constant(self, code: "CodeType", text: bytes, offset: int) -> "tuple[Any, int]":
        opcode, argument, start = self.instruction(text, offset)
        if opcode in self.load_const:
            return code.co_consts[argument], start
        if opcode == self.load_small_int:
            return argument, start
        return None, start
