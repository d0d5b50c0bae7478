"""The entry of the guest code: everything here runs inside somebody else's interpreter.

How it gets there. The host has the target's interpreter compile the files of this folder once
(``measure.guest``), and then starts it with ``-c`` and one line,

    with <start(...) of this file, out of the file of their bytecode>: import MODULE

so that the frames, ``sys.argv``, ``sys.path`` and ``__main__`` of the target are those of a
plain ``python -c "import MODULE"``. Nothing is imported: the code is executed in private
dictionaries and leaves no trace in ``sys.modules``.

``start(clocks, config)``
    clocks   (perf_counter_ns, thread_time_ns) taken by that line before it did anything else
    config   dict: "code" (the file of bytecode), "prefix" (trace files are PREFIX.PID), "detail"
             (bool: take edges and samples), "pause_gc" (bool: no collections), "script" (path or
             None), "argv" (of it), "statement" (the target's code, which the line ends with),
             "line" (its pattern, to start children with)
``codes``    put here by that line: the code of each file, by name

Files written: PREFIX.PID, one for each process that is followed, written record by record so
that whatever happens to the process, what was known until then is on disk. Nothing else is written,
nothing goes to stdout or stderr. The records are described in ``importaudit.measure.trace``.

Written for CPython 3.10 to 3.15. What it needs beyond the modules that the interpreter loads at
start-up (gc, mmap, _struct; opcode in a detail run) is taken out of ``sys.modules`` before the
target runs.
"""

import sys
from time import perf_counter_ns, process_time_ns, thread_time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

# Files that share their globals: they look each other's names up thousands of times.
TRACER = ("output", "clock", "imports", "hooks", "tracer")


def load(name: str, namespace: "dict[str, Any] | None" = None) -> "dict[str, Any]":
    """Execute the file NAME of this folder in NAMESPACE, or in one of its own; return that."""
    namespace = {} if namespace is None else namespace
    namespace["__name__"] = "importaudit.probe." + name
    exec(globals()["codes"][name], namespace)
    return namespace


class Audit:
    """The context manager around the target's code."""

    def __init__(self, clocks: "tuple[int, int]", config: "dict[str, Any]") -> None:
        self.clocks = clocks
        self.config = config
        present = set(sys.modules)
        self.tracer: dict[str, Any] = {}
        for name in TRACER:
            load(name, self.tracer)
        self.output = self.tracer["create"](config["prefix"])
        self.children = load("children")
        self.detail = load("detail")["Detail"]() if config["detail"] else None
        # Modules that only we have asked for: the target finds none of them loaded.
        for name in set(sys.modules) - present:
            del sys.modules[name]

    def __enter__(self) -> None:
        describe(self.output, self.clocks, self.config.get("parent", 0))
        show(self.config["statement"])
        script = self.config.get("script")
        if script is not None:
            become_script(script, self.config["argv"])
        self.children["follow"](self.tracer, self.output, self.config)
        if self.detail is not None:
            self.detail.install(self.tracer, self.output)
        if self.config["pause_gc"]:
            self.tracer["gc"].disable()
        self.tracer["install"](self.output, self.detail)

    def __exit__(
        self,
        kind: "type[BaseException] | None",
        value: "BaseException | None",
        trace: "TracebackType | None",
    ) -> None:
        try:
            self.tracer["finish"](kind, value)
            if self.detail is not None:
                self.detail.write()
        except Exception:  # not the target's fault; the host misses the closing record
            return
        # The thread's clock is read first: it is never ahead of the process's.
        wall, thread_cpu = perf_counter_ns(), thread_time_ns()
        self.output.put("X", wall, process_time_ns(), thread_cpu)


def start(clocks: "tuple[int, int]", config: "dict[str, Any]") -> Audit:
    """Return the context manager that audits what runs inside it."""
    return Audit(clocks, config)


def describe(output: "Any", clocks: "tuple[int, int]", parent: int) -> None:
    """Write what the host has to know of this interpreter, before anything can go wrong."""
    from posix import getpid  # builtin, loaded at start-up

    output.put("V", 2)
    output.put("P", getpid(), parent, clocks[0], clocks[1])
    facts = {
        "version": sys.version,
        "executable": sys.executable,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "cache_tag": sys.implementation.cache_tag or "",
        "pycache_prefix": sys.pycache_prefix or "",
        "optimize": str(sys.flags.optimize),
        "platlibdir": sys.platlibdir,
    }
    for key, value in facts.items():
        output.put("F", key, value)
    for entry in sys.path:
        output.put("F", "path", entry)


def show(statement: str) -> None:
    """Make STATEMENT what tracebacks show of the line of ``-c``, which they do since 3.13.

    It stays in its column, where the positions in the code point to.
    """
    linecache = sys.modules.get("linecache")
    for cache in ("cache", "_interactive_cache"):  # 3.13, 3.14
        entries: Any = getattr(linecache, cache, {})
        for entry in entries.values():
            lines: Any = entry[2] if len(entry) == 4 else ()
            if (
                len(lines) == 1
                and lines[0].startswith("with(")
                and lines[0].endswith(statement + "\n")
            ):
                before = lines[0][: -len(statement) - 1].encode("utf-8", "surrogatepass")
                lines[0] = " " * len(before) + statement + "\n"


def become_script(script: str, argv: "list[str]") -> None:
    """Make ``__main__`` and ``sys`` look as ``python SCRIPT ARGV`` makes them."""
    sys.argv[:] = [script, *argv]
    from os.path import abspath, dirname, realpath  # loaded at start-up

    sys.path[0] = dirname(realpath(script))
    sys.modules["__main__"].__dict__["__file__"] = abspath(script)
