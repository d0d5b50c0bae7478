"""Every way to import a module gives an event, asked for by the right module, file and line."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from support import extension
from support.targets import Traced, assert_sound, plainly, trace, write_tree

from importaudit.measure import build
from importaudit.plan import Target
from importaudit.record import Edge, text


def audit(python: Path, root: Path, **files: str) -> Traced:
    """Import `app` of FILES (by path, without ".py"), and check that the trace is sound."""
    write_tree(root, {name + ".py": text for name, text in files.items()})
    timing, detail = trace(python, root, "app"), trace(python, root, "app", detail=True)
    for traced in (timing, detail):
        assert traced.finished.status == 0, traced.finished.stderr
        assert_sound(traced)
    assert outline(timing) == outline(detail)
    timing.detail = detail
    return timing


def outline(traced: Traced) -> list[tuple[str, str, str]]:
    """All imports, of which timing and detail runs see the same."""
    events = traced.process.events[1:]
    return sorted((event.module, traced.importer(event), event.outcome) for event in events)


def where(traced: Traced, module: str) -> tuple[str, str, int]:
    """Who imported MODULE: module, file and line."""
    detail = traced.detail or traced
    return traced.importer(traced.event(module)), *detail.place(detail.event(module))


def lines(traced: Traced, module: str) -> list[int]:
    """The lines that imported MODULE."""
    detail = traced.detail or traced
    return [detail.place(event)[1] for event in detail.events(module)]


def test_statements(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app="""
            import first

            def function():
                import second
            function()
            exec("\\nimport third")
            """,
        first="",
        second="",
        third="",
    )

    assert where(traced, "app") == ("__main__", "<string>", 1)
    assert where(traced, "first") == ("app", "app.py", 2)
    assert where(traced, "second") == ("app", "app.py", 5)
    assert where(traced, "third") == ("app", "<string>", 2)
    assert [traced.event(m).outcome for m in ("app", "first", "second")] == ["loaded"] * 3
    assert traced.event("first").origin == str(tmp_path / "first.py")
    assert traced.event("first").loader == "SourceFileLoader"


def test_calls(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app="""
            import importlib
            importlib.import_module("first")
            __import__("second")
            importlib.import_module(".third", "package")
            importlib.__import__("fourth")
            """,
        first="",
        second="",
        **{"package/third": ""},
        **{"package/__init__": ""},
        fourth="",
    )

    assert where(traced, "first") == ("app", "app.py", 3)
    assert where(traced, "second") == ("app", "app.py", 4)
    assert where(traced, "package.third") == ("app", "app.py", 5)
    assert where(traced, "package") == ("package.third", "app.py", 5)
    assert where(traced, "fourth") == ("app", "app.py", 6)


def test_submodules_and_relative_imports(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app="""
            from package import (
                one,
                value,
            )
            import package.inner.deep
            """,
        **{"package/__init__": "value = 1\n"},
        **{"package/one": "from . import two\nfrom .inner import name\n"},
        **{"package/two": ""},
        **{"package/inner/__init__": "from .. import two\nname = 1\n"},
        **{"package/inner/deep": ""},
    )

    assert where(traced, "package")[0] == "app"
    assert where(traced, "package.one")[:2] == ("app", "app.py")
    assert where(traced, "package.two") == ("package.one", "one.py", 1)
    assert where(traced, "package.inner") == ("package.one", "one.py", 2)
    assert where(traced, "package.inner.deep") == ("app", "app.py", 6)


def test_threads_have_a_stack_each(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app="""
            import shared
            import threading
            def work():
                import in_thread
            thread = threading.Thread(target=work)
            thread.start()
            shared.other_is_in.wait()
            import in_main
            thread.join()
            """,
        shared="import threading\nother_is_in, main_is_in = threading.Event(), threading.Event()\n",
        in_thread="""
            from shared import main_is_in, other_is_in
            other_is_in.set()
            main_is_in.wait()
            import below_thread
            """,
        in_main="import shared\nshared.main_is_in.set()\nimport below_main\n",
        below_thread="",
        below_main="",
    )
    inside = traced.event("in_thread")

    assert traced.event("in_main").thread == 0
    assert inside.thread != 0
    assert traced.event("below_thread").thread == inside.thread
    assert where(traced, "below_thread") == ("in_thread", "in_thread.py", 5)
    assert where(traced, "below_main") == ("in_main", "in_main.py", 3)
    assert where(traced, "in_thread") == ("__main__", "app.py", 5)


SHARED = "import threading\nstarted = threading.Event()\n"
SLOW_THREAD = """
    import shared
    import threading
    def work():
        import slow
    threading.Thread(target=work, daemon=True).start()
    shared.started.wait()
    """


def test_a_thread_gets_a_moment_to_finish(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app=SLOW_THREAD,
        shared=SHARED,
        slow="import shared, time\nshared.started.set()\ntime.sleep(0.2)\nimport late\n",
        late="",
    )

    assert traced.event("slow").outcome == traced.event("late").outcome == "loaded"
    assert traced.process.threads == []


def test_a_thread_that_goes_on_is_reported(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app=SLOW_THREAD,
        shared=SHARED,
        slow="import shared, time\nshared.started.set()\ntime.sleep(60)\n",
    )
    event = traced.event("slow")

    assert event.outcome == "running"
    assert len(traced.process.threads) == 1
    assert event.thread == traced.process.threads[0]
    assert traced.run.wall < 20e9


def test_modules_put_there_by_hand(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app="""
            import sys, types
            sys.modules["by_hand"] = types.ModuleType("by_hand")
            import by_hand
            import odd
            """,
        odd="import sys\nsys.modules[__name__] = object()\n",
    )

    assert traced.process.by_hand == ["by_hand"]
    assert traced.events("by_hand") == []
    assert traced.event("odd").outcome == "loaded"


def test_failed_imports(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app="""
            for name in ("missing", "broken", "wrong", "inner_missing"):
                try:
                    __import__(name)
                except Exception:
                    pass
            try:
                import app.below
            except ImportError:
                pass
            """,
        broken="1 / 0\n",
        wrong="not python either\n",
        inner_missing="\nimport missing_below\n",
    )
    failed = {e.module: (e.error, e.message) for e in traced.process.events if e.error}

    assert failed["missing"] == ("ModuleNotFoundError", "No module named 'missing'")
    assert failed["broken"] == ("ZeroDivisionError", "division by zero")
    assert failed["wrong"][0] == "SyntaxError"
    assert failed["inner_missing"][0] == failed["missing_below"][0] == "ModuleNotFoundError"
    assert failed["app.below"][0] == "ModuleNotFoundError"
    assert where(traced, "missing_below") == ("inner_missing", "inner_missing.py", 2)
    assert {traced.event(name).outcome for name in failed} == {"failed"}


def test_namespace_packages(target_python: Path, tmp_path: Path) -> None:
    traced = audit(target_python, tmp_path, app="import space.module\n", **{"space/module": ""})

    assert traced.event("space").outcome == "loaded"
    assert "Namespace" in traced.event("space").loader
    assert where(traced, "space.module") == ("app", "app.py", 1)


def test_extension_modules(target_python: Path, tmp_path: Path) -> None:
    built = extension.build(target_python, tmp_path, "compiled")
    traced = audit(target_python, tmp_path, app="import compiled\n")
    event = traced.event("compiled")

    assert event.origin == str(built)
    assert event.loader == "ExtensionFileLoader"
    assert event.phases["dlopen"].wall > 0


def test_zip_files(target_python: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "library.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zipped/__init__.py", "from . import inner\n")
        archive.writestr("zipped/inner.py", "value = [\n" + "    'text',\n" * 5000 + "]\n")
    traced = audit(
        target_python,
        tmp_path,
        app="import sys\nsys.path.append('library.zip')\nimport zipped\n",
    )
    event = traced.event("zipped.inner")

    assert where(traced, "zipped.inner") == ("zipped", "__init__.py", 1)
    assert event.loader == "zipimporter"
    assert event.origin.endswith("library.zip/zipped/inner.py")
    assert {"find", "read", "compile"} <= set(event.phases)
    assert event.phases["compile"].wall > event.phases["body"].wall


FINDER = """
    import sys, time
    from importlib.machinery import ModuleSpec

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.startswith("made_"):
                return ModuleSpec(name, Loader(), origin="nowhere")

    class Loader:
        def create_module(self, spec):
            return None
        def exec_module(self, module):
            time.sleep(0.1)
            exec("import helper", module.__dict__)

    sys.meta_path.insert(0, Finder)
    import made_up
    """


def test_foreign_finders_and_loaders(target_python: Path, tmp_path: Path) -> None:
    traced = audit(target_python, tmp_path, app=FINDER, helper="")
    event = traced.event("made_up")

    assert where(traced, "made_up") == ("app", "app.py", 19)
    assert (event.loader, event.origin, event.outcome) == ("Loader", "nowhere", "loaded")
    assert event.phases["body"].blocked > 0.09e9
    assert where(traced, "helper") == ("made_up", "<string>", 1)


LEGACY = """
    import sys, time, types, warnings
    from importlib.machinery import ModuleSpec

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "legacy":
                return ModuleSpec(name, Loader())

    class Loader:
        def load_module(self, name):
            time.sleep(0.1)
            import helper
            module = sys.modules[name] = types.ModuleType(name)
            return module

    warnings.simplefilter("ignore")
    sys.meta_path.insert(0, Finder)
    import legacy
    """


def test_legacy_loaders(target_python: Path, tmp_path: Path) -> None:
    traced = audit(target_python, tmp_path, app=LEGACY, helper="")
    event = traced.event("legacy")

    assert event.outcome == "loaded"
    assert event.phases["body"].blocked > 0.09e9
    assert where(traced, "helper") == ("legacy", "app.py", 14)


BY_HAND = """
    import importlib.machinery, importlib.util
    spec = importlib.util.spec_from_file_location("by_hand", "somewhere.txt",
        loader=importlib.machinery.SourceFileLoader("by_hand", "somewhere.txt"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    """


def test_loading_by_hand(target_python: Path, tmp_path: Path) -> None:
    (tmp_path / "somewhere.txt").write_text("import time\ntime.sleep(0.1)\nimport helper\n")
    traced = audit(target_python, tmp_path, app=BY_HAND, helper="")
    event = traced.event("by_hand")

    assert where(traced, "by_hand") == ("app", "app.py", 6)
    assert event.outcome == "loaded"
    assert event.phases["body"].blocked > 0.09e9
    assert where(traced, "helper")[0] == "by_hand"
    assert traced.event("app").own.blocked < 0.05e9


def test_reloading(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app="import importlib\nimport again\nimportlib.reload(again)\n",
        again="import time\ntime.sleep(0.1)\n",
    )
    first, second = traced.events("again")

    assert lines(traced, "again") == [2, 3]
    assert first.phases["body"].blocked > 0.09e9
    assert second.phases["body"].blocked > 0.09e9
    assert traced.event("app").own.blocked < 0.05e9


LAZY = """
    import importlib.util, sys
    spec = importlib.util.find_spec("put_off")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["put_off"] = module
    spec.loader.exec_module(module)
    import between
    module.value
    """


def test_lazy_loaders(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app=LAZY,
        put_off="import helper\nvalue = 1\n",
        between="",
        helper="",
    )
    event = traced.event("put_off")

    assert event.start > traced.event("between").start
    assert where(traced, "helper") == ("put_off", "put_off.py", 1)
    assert where(traced, "put_off")[0] == "app"


def test_removed_and_imported_again(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app="import sys\nimport again\ndel sys.modules['again']\nimport again\n",
        again="",
    )

    assert lines(traced, "again") == [2, 4]
    assert [e.outcome for e in traced.events("again")] == ["loaded"] * 2


def test_deleting_itself_fails_as_it_does_unaudited(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app="try:\n    import gone\nexcept Exception as e:\n    print(repr(e))\nimport after\n",
        gone="import sys\ndel sys.modules[__name__]\nimport inner\n",
        inner="",
        after="",
    )

    assert traced.finished.stdout == plainly(target_python, tmp_path, "app").stdout
    assert traced.event("gone").outcome == "failed"
    assert traced.event("gone").error in ("KeyError", "ImportError")
    assert where(traced, "inner") == ("gone", "gone.py", 3)
    assert where(traced, "after") == ("app", "app.py", 5)


def test_circles(target_python: Path, tmp_path: Path) -> None:
    traced = audit(
        target_python,
        tmp_path,
        app="import left\n",
        left="import right\nimport package\n",
        right="import left\n",
        **{"package/__init__": "from .a import name\n"},
        **{"package/a": "from . import b\nname = 1\n"},
        **{"package/b": "import package.a\n"},
    )

    assert where(traced, "right") == ("left", "left.py", 1)
    assert where(traced, "package.b")[0] == "package.a"
    assert {e.outcome for e in traced.events("left")} <= {"loaded", "present"}
    assert [e.outcome for e in traced.events("left")].count("loaded") == 1


def test_names_and_paths_that_are_not_ascii(target_python: Path, tmp_path: Path) -> None:
    root = tmp_path / "größe\ttab\nline \x01 日本"
    traced = audit(
        target_python,
        root,
        app="""
            import importlib
            import модуль
            importlib.import_module("odd name\\twith-dash")
            for name in ("line\\nbreak", "\\x01t", "lone \\udc80", "quo'te\\""):
                try:
                    importlib.import_module(name)
                except Exception:
                    pass
            """,
        модуль="import größe\n",
        größe="",
        **{"odd name\twith-dash": ""},
    )
    names = [e.module for e in traced.process.events]

    assert where(traced, "größe") == ("модуль", "модуль.py", 1)
    assert traced.event("größe").origin == str(root / "größe.py")
    assert where(traced, "odd name\twith-dash") == ("app", "app.py", 4)
    for name in ("line\nbreak", "\x01t", r"lone \udc80", "quo'te\""):
        assert name in names
    assert traced.event("line\nbreak").message.startswith("No module named")


def test_a_path_that_is_not_utf8(target_python: Path, tmp_path: Path) -> None:
    root = tmp_path / "latin-\udce9"
    traced = audit(target_python, root, app="import below\n", below="")

    assert traced.event("below").origin == text(str(root / "below.py"))


def test_more_than_importtime_prints(target_python: Path, tmp_path: Path) -> None:
    names = [f"module{n}" for n in range(20)]
    traced = audit(
        target_python,
        tmp_path,
        app=f"import importlib\nfor name in {names}:\n    importlib.import_module(name)\n",
        **dict.fromkeys(names, ""),
    )
    printed = subprocess.run(
        [target_python, "-B", "-X", "importtime", "-c", "import app"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.rpartition("|")[2].strip() for line in printed.stderr.splitlines()]
    # Where the interpreter itself needs some for `-c`, the probe finds them loaded.
    after_start = [r for r in rows[rows.index("site") + 1 :] if r not in traced.trace.before]

    assert after_start[-1] == "app"
    assert traced.run.imports >= len(after_start) + len(names)
    assert set(after_start) <= {e.module for e in traced.process.events}


# --- edges -------------------------------------------------------------------------------


def edges_of(python: Path, root: Path, target: Target | str = "app") -> dict[str, list[Edge]]:
    traced = trace(python, root, target, detail=True)
    assert traced.finished.status == 0, traced.finished.stderr
    assert_sound(traced)
    modules = {e.module for e in traced.process.events} | set(traced.process.by_hand)
    return build.edges(traced.trace, modules)


def test_edges_to_modules_that_are_loaded_already(target_python: Path, tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "app.py": "import package.one\nimport package.two\nimport other\n",
            "package/__init__.py": "value = 1\n",
            "package/one.py": "",
            "package/two.py": "from . import one, value\nfrom .one import __name__ as n\n",
            "other.py": """
                import importlib, sys, types
                import package.one as alias
                from package import two
                for _ in range(3):
                    importlib.import_module("package.one")
                    importlib.import_module(".two", "package")
                sys.modules["made"] = types.ModuleType("made")
                def function():
                    from package.one import __name__
                function()
                """,
        },
    )
    edges = edges_of(target_python, tmp_path)
    two = {e.module: (e.line, e.count, e.names) for e in edges["package.two"]}
    other = {e.module: (e.line, e.count) for e in edges["other"]}

    assert two["package"] == (1, 1, "one,value")
    assert two["package.one"] == (1, 2, "one,value")
    assert other["package.one"][1] == 1 + 3 + 1
    assert other["package.two"][1] == 1 + 3
    assert other["package"] == (4, 1)
    assert "made" in other
    assert {e.module for e in edges["app"]} >= {"package.one", "package.two", "other"}
    assert {e.module for e in edges["__main__"]} == {"app"}


def test_statements_with_large_arguments(target_python: Path, tmp_path: Path) -> None:
    many = "".join(f"name{n} = {n + 1000}.5\n" for n in range(400))
    write_tree(tmp_path, {"app.py": f"import other\n{many}from other import name9\n"})
    write_tree(tmp_path, {"other.py": "name9 = 1\n"})
    edges = edges_of(target_python, tmp_path)

    (edge,) = edges["app"]
    assert (edge.module, edge.count) == ("other", 2)


def test_statements_where_import_is_replaced(target_python: Path, tmp_path: Path) -> None:
    app = """
        import builtins
        original = builtins.__import__
        def replaced(*given, **more):
            return original(*given, **more)
        builtins.__import__ = replaced
        import other
        """
    write_tree(tmp_path, {"app.py": app, "other.py": ""})
    traced = trace(target_python, tmp_path, "app", detail=True)

    assert_sound(traced)
    assert where(traced, "other") == ("app", "app.py", 5)


def test_targets_of_each_kind(target_python: Path, tmp_path: Path) -> None:
    write_tree(tmp_path, {"first.py": "", "second.py": "", "run.py": "import sys, first\n"})
    kinds = (
        Target(code="import first\nimport second\n"),
        Target(modules=("first", "second")),
        Target(script=tmp_path / "run.py", argv=("a",)),
    )
    code, both, script = (trace(target_python, tmp_path, kind, detail=True) for kind in kinds)

    assert where(code, "second") == ("__main__", "<string>", 2)
    assert where(both, "second") == ("__main__", "<string>", 1)
    assert where(script, "first") == ("__main__", "run.py", 1)
    for traced in (code, both, script):
        assert traced.finished.status == 0
        assert_sound(traced)
