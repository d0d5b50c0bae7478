"""``importaudit bytecode`` on generated trees, against what the interpreter then really does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from support.command import importaudit
from support.targets import write_tree

from importaudit.record import BytecodeReport, Verdict

# Imports each name and says whether its source was compiled, its bytecode loaded, or neither.
REALITY = """
import importlib, json, sys, zipimport
import importlib._bootstrap_external as external
path, names = json.loads(sys.argv[1])
sys.path[:0] = path
compiled = []
original, zipped = external.SourceLoader.source_to_code, zipimport._compile_source
def source_to_code(self, data, path, **more):
    compiled.append(path)
    return original(self, data, path, **more)
def compile_source(path, source):
    compiled.append(path)
    return zipped(path, source)
external.SourceLoader.source_to_code = source_to_code
zipimport._compile_source = compile_source
answers = {}
for name in names:
    before = len(compiled)
    try:
        importlib.import_module(name)
        answers[name] = "compiled" if len(compiled) > before else "loaded"
    except Exception:
        answers[name] = "compiled" if len(compiled) > before else "fails"
print(json.dumps(answers))
"""
# Compiles the files on its command line: MODE LEVEL FILE...
COMPILE = """
import py_compile, sys
mode = py_compile.PycInvalidationMode[sys.argv[1]]
for file in sys.argv[3:]:
    py_compile.compile(file, doraise=True, optimize=int(sys.argv[2]), invalidation_mode=mode)
"""
HAPPENS = {Verdict.LOADABLE: "loaded", Verdict.DAMAGED: "fails"}  # all else: compiled


@dataclass
class Tree:
    """A folder of sources for one interpreter, and what is to be said of each."""

    python: Path
    root: Path

    def compile(
        self, *names: str, mode: str = "TIMESTAMP", level: int = 0, **variables: str
    ) -> None:
        """Compile sources, with the interpreter, as ``compileall`` would."""
        subprocess.run(
            [self.python, "-c", COMPILE, mode, str(level), *(self.root / name for name in names)],
            env=os.environ | variables,
            check=True,
        )

    def bytecode(self, name: str) -> Path:
        """The only bytecode of a source."""
        source = self.root / name
        (found,) = (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc")
        return found

    def judge(self, *words: str | Path, **variables: str) -> BytecodeReport:
        done = importaudit(
            "bytecode", "--python", self.python, "--json", "-", *words, cwd=self.root, **variables
        )
        assert (done.code, done.err) == (0, "")
        return msgspec.json.decode(done.out, type=BytecodeReport)

    def really(
        self, names: Iterable[str], path: Iterable[Path], **variables: str
    ) -> dict[str, str]:
        """What importing each of NAMES does, by name."""
        question = json.dumps([[str(p) for p in path], list(names)])
        answer = subprocess.run(
            [self.python, "-B", "-c", REALITY, question],
            env=os.environ | variables,
            cwd="/",
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        found: dict[str, str] = json.loads(answer)
        return found


@pytest.fixture
def tree(target_python: Path, tmp_path: Path) -> Tree:
    root = tmp_path / "tree"
    root.mkdir()
    return Tree(target_python, root)


def found_of(report: BytecodeReport, root: Path) -> dict[str, str]:
    """Verdict and reason of what is not loadable, by the path below ROOT."""
    return {
        one.source.removeprefix(f"{root}/"): f"{one.verdict.value} {one.reason}".strip()
        for one in report.sources
    }


def assert_real(
    tree: Tree, found: Mapping[str, str], sources: Iterable[str], **variables: str
) -> None:
    """What the verdicts FOUND say about SOURCES is what the interpreter does."""
    names = {source: source.rpartition(".")[0].replace("/", ".") for source in sources}
    really = tree.really(names.values(), [tree.root], **variables)
    said = {
        source: HAPPENS.get(Verdict(found.get(source, "loadable").split()[0]), "compiled")
        for source in names
    }

    assert said == {source: really[name] for source, name in names.items()}


ORDINARY = [
    "before_1970.py",
    "good.py", "checked.py", "unchecked.py", "edited_unchecked.py", "edited_checked.py",
    "touched.py", "grown.py", "kept.py", "clamped.py", "both_clamped.py", "missing.py",
    "foreign.py", "magic.py", "optimised.py", "header.py", "nobody.py", "cut.py", "template.py",
    "class.py", "pack/__init__.py", "pack/__main__.py", "space/deep/x.py",
    "linked/real.py", "sealed/x.py", "sourceless.pyc",
]  # fmt: skip
NOT_IMPORTABLE = ["setup-foo.py", "a-b/x.py", ".hidden.py", "1st.py", "data.txt", "x.pyi"]


def grow(tree: Tree) -> Tree:
    """Write a tree with a source for everything that can be said of one."""
    write_tree(tree.root, {
        name: "x = 1\n" for name in [*ORDINARY, *NOT_IMPORTABLE] if not name.endswith(".pyc")
    } | {"template.py": "{{ name }} = ?\n", "sourceless.py": "x = 1\n", "else/real.py": "x = 1\n"}
    )  # fmt: skip
    os.utime(tree.root / "both_clamped.py", (0, 0))
    os.utime(tree.root / "before_1970.py", ns=(0, -500_000_000))  # which int() makes 0 of
    hashed = {"checked.py", "edited_checked.py", "unchecked.py", "edited_unchecked.py"}
    apart = {*hashed, "missing.py", "optimised.py", "template.py", "sealed/x.py", "linked/real.py"}
    tree.compile(*(name for name in ORDINARY if name not in apart and name.endswith(".py")),
                 "sourceless.py", "else/real.py")  # fmt: skip
    tree.compile("checked.py", "edited_checked.py", mode="CHECKED_HASH")
    tree.compile("unchecked.py", "edited_unchecked.py", mode="UNCHECKED_HASH")
    tree.compile("optimised.py", level=1)
    shutil.copy(tree.bytecode("good.py"), tree.root / "good.pyc")  # is never looked at
    tree.bytecode("sourceless.py").rename(tree.root / "sourceless.pyc")
    (tree.root / "sourceless.py").unlink()
    (tree.root / "linked" / "real.py").unlink()
    (tree.root / "linked").rmdir()
    (tree.root / "linked").symlink_to("else")
    (tree.root / "pack" / "circle").symlink_to("..")
    spoil(tree)
    return tree


def spoil(tree: Tree) -> None:
    """Make of good bytecode what is to be found."""
    root, now = tree.root, time.time()
    os.utime(root / "touched.py", (now, now - 100))
    os.utime(root / "clamped.py", (0, 0))
    for name, text in (("grown.py", "x = 22\n"), ("kept.py", "x = 2\n")):
        before = (root / name).stat()
        (root / name).write_text(text)
        os.utime(root / name, ns=(before.st_atime_ns, before.st_mtime_ns))
    for name in ("edited_checked.py", "edited_unchecked.py"):
        (root / name).write_text("x = 2\n")
    foreign = tree.bytecode("foreign.py")
    foreign.rename(foreign.with_name("foreign.cpython-27.pyc"))
    for name, length in (("header.py", 9), ("nobody.py", 16), ("cut.py", 40)):
        os.truncate(tree.bytecode(name), length)
    magic = tree.bytecode("magic.py")
    magic.write_bytes(b"\x33\x0d\r\n" + magic.read_bytes()[4:])
    (root / "sealed").chmod(0o555)


def expected(tree: Tree) -> dict[str, str]:
    tag = tree.bytecode("good.py").name.split(".")[1]
    return {
        "edited_checked.py": "stale hash",
        "touched.py": "stale mtime",
        "grown.py": "stale size",
        "clamped.py": "stale mtime",
        "missing.py": "missing",
        "foreign.py": "other-tag cpython-27",
        "magic.py": "wrong-magic magic 330d0d0a",
        "optimised.py": f"other-tag {tag}.opt-1",
        "header.py": "stale header cut short",
        "nobody.py": "damaged no code object after the header",
        "template.py": "missing",
        "sealed/x.py": "uncacheable missing; folder not writable",
    }


def test_every_verdict_is_what_the_interpreter_does(tree: Tree) -> None:
    grow(tree)
    report = tree.judge(tree.root)
    found = found_of(report, tree.root)

    assert found == expected(tree)
    # The source behind the link, and the one that it leads to.
    assert report.summary.sources == len(ORDINARY) + 1
    # "cut" has a good beginning: only --verify sees that it ends too early.
    assert_real(tree, found, [name for name in ORDINARY if name != "cut.py"])


def test_verifying_finds_what_the_header_does_not_tell(tree: Tree) -> None:
    grow(tree)
    found = found_of(tree.judge("--verify", tree.root), tree.root)
    content = dict.fromkeys(["kept.py", "edited_unchecked.py"], "stale content")

    template, cut = found.pop("template.py"), found.pop("cut.py")
    assert template.startswith("not-compilable SyntaxError")
    assert cut.startswith("damaged EOFError")
    assert (
        found
        == {name: said for name, said in expected(tree).items() if name != "template.py"} | content
    )
    assert tree.really(["cut"], [tree.root]) == {"cut": "fails"}


def test_only_other_optimisation_levels(tree: Tree) -> None:
    write_tree(tree.root, {"plain.py": "assert 1\n", "best.py": "assert 1\n"})
    tree.compile("plain.py", level=0)
    tree.compile("best.py", level=2)
    sources = ["plain.py", "best.py"]
    for level, other in (("1", sources), ("2", ["plain.py"])):
        found = found_of(tree.judge(tree.root, PYTHONOPTIMIZE=level), tree.root)

        assert sorted(found) == sorted(other)
        assert all(said.startswith("other-tag") for said in found.values())
        assert_real(tree, found, sources, PYTHONOPTIMIZE=level)
    assert list(found_of(tree.judge(tree.root), tree.root)) == ["best.py"]


def test_a_prefix_takes_the_place_of_pycache(tree: Tree, tmp_path: Path) -> None:
    write_tree(tree.root, {"a.py": "", "sub/b.py": ""})
    prefix = str(tmp_path / "prefix")
    tree.compile("a.py")
    tree.compile("sub/b.py", PYTHONPYCACHEPREFIX=prefix)
    sources = ["a.py", "sub/b.py"]

    found = found_of(tree.judge(tree.root, PYTHONPYCACHEPREFIX=prefix), tree.root)
    assert found == {"a.py": "missing"}
    assert_real(tree, found, sources, PYTHONPYCACHEPREFIX=prefix)

    found = found_of(tree.judge(tree.root), tree.root)
    assert found == {"sub/b.py": "missing"}
    assert_real(tree, found, sources)


def test_asking_writes_nothing(tree: Tree, tmp_path: Path) -> None:
    write_tree(tree.root, {"a.py": ""})
    prefix = tmp_path / "prefix"
    tree.judge("--verify", tree.root, PYTHONPYCACHEPREFIX=str(prefix))

    # What the script that starts us imports is written, as by any Python.
    written = [str(path) for path in prefix.rglob("*.pyc")]
    assert [path for path in written if "importaudit/measure" in path or "/tree/" in path] == []
    ours = f".{sys.implementation.cache_tag}."
    assert [path for path in written if ours not in path] == []


def test_archives_are_judged_as_zipimport_does(tree: Tree) -> None:
    write_tree(tree.root, dict.fromkeys(
        ["good.py", "late.py", "grown.py", "hashed.py", "unhashed.py", "alone.py", "p/__init__.py",
         "nobody.py", "short.py"], "x = 1\n"))  # fmt: skip
    when = time.mktime((2020, 6, 1, 12, 0, 0, 0, 0, -1))
    for source in tree.root.rglob("*.py"):
        os.utime(source, (when, when))
    names = ["good", "late", "grown", "p/__init__", "nobody", "short"]
    tree.compile(*(f"{name}.py" for name in names))
    tree.compile("hashed.py", "unhashed.py", mode="CHECKED_HASH")
    file = tree.root / "code.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in [*names, "hashed", "unhashed"]:
            data = tree.bytecode(f"{name}.py").read_bytes()
            archive.writestr(f"{name}.pyc", data[: {"nobody": 16, "short": 9}.get(name)])
        os.utime(tree.root / "late.py", (when + 10, when + 10))
        for name in ("grown.py", "unhashed.py"):
            (tree.root / name).write_text("x = 333\n")
            os.utime(tree.root / name, (when, when))
        for name in [*names, "hashed", "unhashed", "alone"]:
            archive.write(tree.root / f"{name}.py", f"{name}.py")
        archive.writestr("no-module.py", "")
    found = found_of(tree.judge(file), file)

    end = "; inside a zip archive"
    assert found == {
        "late.py": f"uncacheable stale: mtime{end}",
        "grown.py": f"uncacheable stale: size{end}",
        "unhashed.py": f"uncacheable stale: hash{end}",
        "alone.py": f"uncacheable missing{end}",
        "nobody.py": "damaged no code object after the header",
        "short.py": "damaged no code object after the header",
    }
    modules = {"p/__init__": "p"}
    really = tree.really(
        [modules.get(n, n) for n in [*names, "hashed", "unhashed", "alone"]], [file]
    )
    for name, happened in really.items():
        verdict = Verdict(found.get(f"{name}.py", "loadable").split()[0])
        assert (name, happened) == (name, HAPPENS.get(verdict, "compiled"))


def test_the_environment_of_an_interpreter(tree: Tree) -> None:
    write_tree(tree.root, {"own/mine.py": ""})
    report = tree.judge(PYTHONPATH=str(tree.root / "own"))

    kinds = {root.kind for root in report.roots}
    assert {"stdlib", "path"} <= kinds
    assert report.summary.sources > 1000
    # The tests of the standard library count: they can be imported.
    rows = {row.kind: row for row in report.summary.rows}
    assert rows["path"].name == str(tree.root / "own")
    assert rows["path"].verdicts == {Verdict.MISSING: 1}
    assert report.summary.verdicts[Verdict.LOADABLE] == sum(
        row.verdicts.get(Verdict.LOADABLE, 0) for row in report.summary.rows
    )


def test_the_standard_library_is_judged_as_it_is_loaded(tree: Tree) -> None:
    names = ["json.decoder", "argparse", "email.message", "xml.dom.minidom"]
    really = tree.really(names, [])
    report = tree.judge()
    bad = {one.source for one in report.sources}
    for name in names:
        loadable = not any(f"/{name.replace('.', '/')}.py" in source for source in bad)
        assert (name, really[name]) == (name, "loaded" if loadable else "compiled")


def test_a_single_file_and_a_package(tree: Tree) -> None:
    write_tree(tree.root, {"p/__init__.py": "", "p/x.py": "", "q.py": ""})

    assert tree.judge(tree.root / "p").summary.sources == 2
    assert list(found_of(tree.judge("q.py"), tree.root)) == ["q.py"]


# --- the command ---------------------------------------------------------------------------


def test_gates_decide_the_exit_code(tmp_path: Path) -> None:
    write_tree(tmp_path / "t", {"a.py": ""})
    words = ["bytecode", str(tmp_path / "t")]
    assert importaudit(*words, "--fail-on", "stale", cwd=tmp_path).code == 0
    assert importaudit(*words, "--max-missing-percent", "100", cwd=tmp_path).code == 0

    done = importaudit(*words, "--fail-on", "stale,missing", "--max-missing-percent", "0",
                       cwd=tmp_path)  # fmt: skip

    assert done.code == 1
    assert done.err.splitlines() == [
        "importaudit: --fail-on missing: 1 of 1 sources",
        "importaudit: --max-missing-percent 0: 100.0 % (1 of 1 package directories)",
    ]
    assert "1 of 1 package directory has no usable bytecode (100.0 %)" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fail-on", "rotten"], "one of missing, stale, other-tag"),
        (["--fail-on", "not-compilable"], "--verify"),
        (["--max-missing-percent", "101"], "--max-missing-percent"),
        (["nowhere"], "no file or folder at nowhere"),
        (["data.txt"], "data.txt is neither a folder nor a .py file nor a zip archive"),
        (["--python", "nowhere"], "no interpreter at"),
        (["--python", "data.txt"], "data.txt is not executable"),
        (["--python", "false"], "is not a working Python"),
    ],
)
def test_wrong_usage(tmp_path: Path, words: list[str], said: str) -> None:
    write_tree(tmp_path, {"data.txt": "x"})
    done = importaudit("bytecode", *words, cwd=tmp_path)

    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert said in done.err


def test_help_has_an_example(tmp_path: Path) -> None:
    done = importaudit("bytecode", "--help", cwd=tmp_path)

    assert done.code == 0
    assert "importaudit bytecode --python /srv/venv" in done.out
    for verdict in Verdict:
        assert verdict.value in done.out


def test_names_in_bytes_are_no_problem(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    write_tree(folder, {"a.py": ""})
    done = importaudit("bytecode", "--json", "-", folder, cwd=tmp_path)

    assert done.code == 0
    (one,) = msgspec.json.decode(done.out, type=BytecodeReport).sources
    assert one.source == f"{tmp_path}/caf\\udce9/a.py"
