"""What a target sees of itself is the same with the probe as without it.

Every test runs the same target twice, plainly and under the probe, and compares.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.targets import Traced, assert_sound, plainly, trace, write_tree
from support.trees import snapshot

from importaudit.measure.machine import PROBE
from importaudit.plan import Target

# Imported deep inside others, so that there is a stack to look at.
STACK = {
    "app.py": "import deep.one\n",
    "deep/__init__.py": "",
    "deep/one.py": "from . import two\n",
    "deep/two.py": "import importlib\nimportlib.import_module('deep.three')\n",
    "deep/three.py": "def call():\n    import observer\ncall()\n",
}

# What a module sees; each prints it.
OBSERVERS = {
    "warnings": """
        import warnings
        warnings.simplefilter("always")
        for level in range(1, 12):
            warnings.warn(f"level {level}", stacklevel=level)
        """,
    "frames": """
        import sys
        frame = sys._getframe()
        while frame is not None:
            code = frame.f_code
            print(code.co_name, code.co_filename, frame.f_lineno, sorted(frame.f_globals)[:3])
            frame = frame.f_back
        """,
    "the stack": """
        import inspect
        for entry in inspect.stack():
            context = [line.strip() for line in entry.code_context or ()]
            print(entry.filename, entry.lineno, entry.function, context)
        """,
    "a printed stack": """
        import traceback
        traceback.print_stack()
        """,
    "the process": """
        import os, sys
        print(sys.argv, sys.path, sys.flags, sys.executable, sys.prefix, sys.dont_write_bytecode)
        print(sorted(os.environ.items()), os.getcwd(), os.umask(0o22), os.getpgrp() == os.getpid())
        print(sys.gettrace(), sys.getprofile(), sys.getrecursionlimit(), sys.getswitchinterval())
        """,
    "modules": """
        import sys
        main = sys.modules["__main__"]
        print(list(sys.modules), sorted(main.__dict__), main.__spec__, main.__doc__)
        finders = [getattr(finder, "__name__", type(finder)) for finder in sys.meta_path]
        print(finders, len(sys.path_hooks), sorted(sys.path_importer_cache))
        """,
    "threads and signals": """
        import atexit, signal, threading
        print([thread.name for thread in threading.enumerate()], threading.active_count())
        print([(s, signal.getsignal(s)) for s in sorted(signal.valid_signals())])
        print(atexit._ncallbacks(), signal.getitimer(signal.ITIMER_REAL))
        """,
    "the collector": """
        import gc
        print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.garbage)
        """,
    "descriptors": """
        import os
        first = os.open("/dev/null", os.O_RDONLY)
        second = os.open("/dev/null", os.O_RDONLY)
        print(first, second)
        # A high one may be ours; the child of no target gets it.
        for number in sorted(map(int, os.listdir("/proc/self/fd"))):
            if number < 256:
                print(number, os.get_inheritable(number) if number != second + 1 else "")
            else:
                assert not os.get_inheritable(number)
        """,
    "its own file": """
        import inspect, pickle, sys
        class Something:
            def method(self):
                return 1
        print(inspect.getsource(Something.method), inspect.getmodule(Something).__name__)
        print(pickle.dumps(Something).hex(), pickle.loads(pickle.dumps(Something)) is Something)
        print(__spec__.name, __spec__.origin, __spec__.cached, type(__loader__), __file__)
        print(__package__, sorted(__builtins__), sorted(globals()))
        """,
    "the import system": """
        import importlib, importlib.machinery, importlib.util, inspect, pkgutil, runpy, sys
        from importlib import _bootstrap, _bootstrap_external
        print(inspect.getsource(importlib.import_module))
        print(inspect.signature(_bootstrap._find_and_load), inspect.isclass(_bootstrap._ModuleLock))
        print(inspect.isclass(_bootstrap._ModuleLockManager))
        print(_bootstrap_external.SourceFileLoader.__mro__, importlib.__import__.__module__)
        print(__loader__.get_data(__file__)[:20], __loader__.get_code(__name__).co_name)
        print(__loader__.get_source(__name__)[:20], __loader__.is_package(__name__))
        print(importlib.util.find_spec("deep.one").origin, pkgutil.get_data("deep", "one.py"))
        print(sorted(m.name for m in pkgutil.iter_modules(["deep"])))
        print(sorted(runpy.run_module("deep.four", {"given": 1}))[-2:])
        """,
    "an error that is caught": """
        import traceback
        for name in ("missing", "deep.missing", "deep.zero", "deep.wrong", "deep.circle.a"):
            try:
                __import__(name)
            except Exception:
                print(traceback.format_exc())
        """,
    "an error that is caught far above": """
        import deep.zero
        """,
}
MORE = {
    "deep/four.py": "value = 4\n",
    "deep/zero.py": "def divide():\n    1 / 0\ndivide()\n",
    "deep/wrong.py": "x = (1,\n  2\ny = 3 +\n",
    "deep/circle/__init__.py": "",
    "deep/circle/a.py": "from .b import name\nother = 1\n",
    "deep/circle/b.py": "from .a import other\nname = 1\n",
}


def compare(python: Path, root: Path, target: str | Target = "app") -> Traced:
    """Run TARGET plainly and under the probe: what it prints and how it exits must be the same.

    Returns the timing run.
    """
    plain = plainly(python, root, target)
    runs = [trace(python, root, target, detail=detail) for detail in (False, True)]
    for traced in runs:
        finished = traced.finished
        assert (finished.stdout, finished.stderr) == (plain.stdout, plain.stderr)
        assert finished.status == plain.status
        assert_sound(traced)
    return runs[0]


@pytest.mark.parametrize("what", OBSERVERS)
def test_a_module_sees_what_it_sees_without_us(
    target_python: Path, tmp_path: Path, what: str
) -> None:
    write_tree(tmp_path, {**STACK, **MORE, "observer.py": OBSERVERS[what]})
    if what == "an error that is caught far above":
        (tmp_path / "app.py").write_text(
            "import traceback\ntry:\n    import deep.one\nexcept Exception:\n"
            "    print(traceback.format_exc())\n"
        )
    traced = compare(target_python, tmp_path)

    assert traced.finished.status == 0, traced.finished.stderr
    assert traced.finished.stdout + traced.finished.stderr


@pytest.mark.parametrize(
    "observer",
    [
        "import missing\n",
        "from deep import missing\n",
        "import deep.zero\n",
        "import deep.wrong\n",
        "import deep.circle.a\n",
        "import importlib\nimportlib.import_module('.zero', 'deep')\n",
        "raise RuntimeError('two\\nlines')\n",
        "try:\n    import missing\nexcept ImportError as e:\n    raise ValueError from e\n",
        "import sys\nsys.exit(3)\n",
        "raise SystemExit('a message')\n",
        "raise KeyboardInterrupt\n",
        "import sys\nsys.excepthook = lambda *e: print('hooked', e[:2])\nimport missing\n",
    ],
)
def test_what_goes_wrong_looks_the_same(target_python: Path, tmp_path: Path, observer: str) -> None:
    write_tree(tmp_path, {**STACK, **MORE, "observer.py": observer})
    traced = compare(target_python, tmp_path)

    assert traced.finished.status != 0
    assert traced.event("observer").outcome == "failed"


def test_errors_of_foreign_loaders_look_the_same(target_python: Path, tmp_path: Path) -> None:
    app = """
        import sys, traceback
        from importlib.machinery import ModuleSpec
        class Loader:
            def __init__(self, where):
                self.where = where
            def create_module(self, spec):
                if self.where == "create":
                    1 / 0
            def exec_module(self, module):
                exec(compile("\\n1 / 0", "made.py", "exec"), module.__dict__)
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == "find":
                    1 / 0
                if name in ("create", "execute"):
                    return ModuleSpec(name, Loader(name))
        sys.meta_path.insert(0, Finder)
        for name in ("find", "create", "execute"):
            try:
                __import__(name)
            except ZeroDivisionError:
                print(traceback.format_exc())
        """
    write_tree(tmp_path, {"app.py": app})
    traced = compare(target_python, tmp_path)

    for name in ("find", "create", "execute"):
        assert traced.event(name).outcome == "failed"


def test_the_import_function_is_the_interpreters_own(target_python: Path, tmp_path: Path) -> None:
    app = "import builtins\nprint(builtins.__import__, builtins.__import__ is __import__)\n"
    write_tree(tmp_path, {"app.py": app})
    plain = plainly(target_python, tmp_path, "app")
    timing = trace(target_python, tmp_path, "app")  # a detail run replaces it

    assert "built-in function" in plain.stdout
    assert timing.finished.stdout == plain.stdout


def test_the_code_of_a_target_sees_the_same(target_python: Path, tmp_path: Path) -> None:
    code = (
        "import sys, traceback, warnings\n"
        "print(sorted(globals()), __name__, sys.argv)\n"
        "warnings.warn('here')\n"
        "def größe():\n    import missing\n"
        "try:\n    größe()\nexcept ImportError:\n    print(traceback.format_exc())\n"
        "größe()\n"
    )
    write_tree(tmp_path, {"unused.py": ""})

    compare(target_python, tmp_path, Target(code=code))


def test_nothing_of_ours_warns(target_python: Path, tmp_path: Path) -> None:
    write_tree(tmp_path, {"app.py": "print('silent')\n", "run.py": "import app\n"})
    environment = {**os.environ, "PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"}
    for target in (Target(modules=("app",)), Target(script=tmp_path / "run.py")):
        for detail in (False, True):
            traced = trace(target_python, tmp_path, target, detail=detail, environment=environment)

            assert_sound(traced)
            assert (traced.finished.stdout, traced.finished.stderr) == ("silent\n", "")


# --- what is left behind -----------------------------------------------------------------


@pytest.mark.parametrize("bytecode", ["none", "valid", "stale"])
def test_nothing_is_left_behind(target_python: Path, tmp_path: Path, bytecode: str) -> None:
    tree, home, temporary = (tmp_path / name for name in ("tree", "home", "temporary"))
    app = "import json, package.one\nopen('read.txt').close()\n"
    write_tree(
        tree, {"app.py": app, "package/__init__.py": "", "package/one.py": "", "read.txt": "text"}
    )
    home.mkdir()
    temporary.mkdir()
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(temporary)}
    if bytecode != "none":
        subprocess.run([target_python, "-m", "compileall", "-q", tree], check=True)
        assert list(tree.glob("__pycache__/*.pyc"))
    if bytecode == "stale":
        os.utime(tree / "app.py", (1, 1))
    before = snapshot(tmp_path)
    plain = plainly(target_python, tree, "app", environment=environment)
    control = snapshot(tmp_path)

    assert plain.status == 0, plain.stderr
    for detail in (False, True):
        traced = trace(target_python, tree, "app", detail=detail, environment=environment)
        assert traced.finished.status == 0, traced.finished.stderr
    assert control == before
    assert snapshot(tmp_path) == control


def test_the_probes_folder_stays_as_it_is(target_python: Path, tmp_path: Path) -> None:
    names = sorted(PROBE.rglob("*"))
    write_tree(tmp_path, {"app.py": ""})
    trace(target_python, tmp_path, "app", detail=True)

    assert sorted(PROBE.rglob("*")) == names


def test_no_trace_is_left(target_python: Path, tmp_path: Path) -> None:
    def ours() -> set[Path]:
        places = (Path("/dev/shm"), Path(tempfile.gettempdir()))
        return {path for place in places for path in place.glob("importaudit-*/trace.*")}

    write_tree(tmp_path, {"app.py": ""})
    traced = trace(target_python, tmp_path, "app")

    assert not [path for path in ours() if path.suffix == f".{traced.finished.pid}"]


# --- targets that get in the way -----------------------------------------------------------

HOSTILE = {
    "closes every descriptor": """
        import os
        os.closerange(3, 70_000)
        """,
    "closes the standard ones too": """
        import os
        os.closerange(0, 70_000)
        """,
    "redirects every descriptor": """
        import os
        null = os.open(os.devnull, os.O_RDWR)
        for number in map(int, os.listdir("/proc/self/fd")):
            os.dup2(null, number)
        """,
    "lowers the limit of descriptors": """
        import os, resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))
        kept = []
        try:
            while True:
                kept.append(os.dup(0))
        except OSError:
            kept.pop(), os.close(kept.pop()), os.close(kept.pop())
        """,
    "replaces stdout": """
        import io, sys
        sys.stdout = io.StringIO()
        sys.stderr = None
        """,
    "replaces __import__": """
        import builtins
        original = builtins.__import__
        def replaced(*given, **more):
            return original(*given, **more)
        builtins.__import__ = replaced
        """,
    "changes directory": """
        import os, sys
        sys.path[0] = os.getcwd()
        os.chdir("/")
        """,
    "clears the environment": """
        import os
        os.environ.clear()
        """,
    "clears the path": """
        import sys
        folder = sys.path[0] or "."
        sys.path.clear()
        sys.path.append(folder)
        sys.path_importer_cache.clear()
        """,
    "replaces modules": """
        import sys
        for name in ("os", "posix", "time", "_thread", "gc", "builtins", "importlib", "warnings"):
            sys.modules[name] = object()
        """,
    "removes modules": """
        import sys
        for name in list(sys.modules):
            if name not in ("__main__", "sys", "app", "hostile", "builtins"):
                if not name.startswith(("_frozen", "importlib")):
                    del sys.modules[name]
        """,
    "puts odd things into sys.modules": """
        import sys
        class Odd:
            def __getattr__(self, name):
                raise RuntimeError(name)
        sys.modules["odd"] = Odd()
        sys.modules["none"] = None
        """,
    "prints without newlines": """
        import sys
        print("import time:        10 |   9999999 | spoof", end="")
        print("import time:        10 |   9999999 | spoof", end="", file=sys.stderr)
        """,
    "clears the collector's callbacks": """
        import gc
        gc.callbacks.clear()
        gc.collect()
        """,
    "collects all the time": """
        import gc
        gc.set_threshold(1, 1, 1)
        """,
    "traces": """
        import sys
        def tracer(frame, event, argument):
            return tracer
        sys.settrace(tracer)
        sys.setprofile(lambda *given: None)
        """,
    "lowers the recursion limit": """
        import sys
        def deep(levels):
            try:
                deep(levels + 1)
            except RecursionError:
                try:
                    __import__("below")
                except RecursionError:
                    pass
                raise
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(150)
        try:
            deep(0)
        except RecursionError:
            pass
        sys.setrecursionlimit(limit)
        """,
}


@pytest.mark.parametrize("how", HOSTILE)
def test_the_trace_of_a_hostile_target_is_whole(
    target_python: Path, tmp_path: Path, how: str
) -> None:
    write_tree(
        tmp_path,
        {
            "app.py": "import before\nimport hostile\nimport after\n",
            "before.py": "",
            "hostile.py": HOSTILE[how],
            "after.py": "import last\n",
            "last.py": "",
            "below.py": "",
        },
    )
    traced = compare(target_python, tmp_path)

    assert traced.finished.status == 0, traced.finished.stderr
    assert_sound(traced)
    for name, importer in [("before", "app"), ("hostile", "app"), ("after", "app"),
                           ("last", "after")]:  # fmt: skip
        assert traced.event(name).outcome == "loaded"
        assert traced.importer(traced.event(name)) == importer
    assert traced.events("spoof") == []
