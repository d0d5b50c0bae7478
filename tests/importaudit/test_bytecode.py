"""Whether bytecode would be loaded: the rule against importlib's own, and what is made of it."""

from __future__ import annotations

import _imp
import importlib.util
import marshal
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from itertools import product
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bytecode import facts
from support.targets import write_tree

from importaudit.analysis import bytecode as rule
from importaudit.analysis.bytecode import Rules, absent, cache_folder, decide, decide_sourceless
from importaudit.analysis.distributions import Distributions
from importaudit.measure.bytecode import Judge, judge
from importaudit.measure.facts import Kinds, environment_roots
from importaudit.measure.sources import judge_roots
from importaudit.measure.survey import survey_sources
from importaudit.record import Bytecode, Judged, Root, Verdict

MAGIC = importlib.util.MAGIC_NUMBER
KEY = int.from_bytes(MAGIC, "little")
SOURCE = b"x = 1\n"
CODE = marshal.dumps(compile(SOURCE, "m.py", "exec"))


def rules(check_hash: str = "default", prefix: str | None = None, suffix: str = ".t.pyc") -> Rules:
    return Rules(MAGIC, suffix, prefix, check_hash)


# --- the rule, against importlib's own -----------------------------------------------------


class Compiled(Exception):
    """Raised in place of compiling."""


class Loader(SourceFileLoader):
    """A loader whose files are in memory, and that says when it compiles."""

    def __init__(self, data: bytes, mtime: float) -> None:
        super().__init__("m", "/nowhere/m.py")
        self.data, self.mtime = data, mtime

    def path_stats(self, path: Any) -> dict[str, Any]:
        assert path == self.path
        return {"mtime": self.mtime, "size": len(SOURCE)}

    def get_data(self, path: str) -> bytes:
        return SOURCE if path == self.path else self.data

    def source_to_code(self, *_: Any, **__: Any) -> CodeType:  # type: ignore[override]
        raise Compiled


def outcome(loader: SourceFileLoader | SourcelessFileLoader) -> str:
    """What importlib does: "loads", "compiles" or "fails"."""
    try:
        return "loads" if loader.get_code("m") is not None else "fails"
    except Compiled:
        return "compiles"
    except (ImportError, EOFError, ValueError, TypeError):
        return "fails"


@contextmanager
def checking(mode: str) -> Iterator[None]:
    before, _imp.check_hash_based_pycs = _imp.check_hash_based_pycs, mode
    try:
        yield
    finally:
        _imp.check_hash_based_pycs = before


def word(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "little")


TIMES = st.one_of(
    st.integers(-(2**33), 2**33), st.floats(-1e10, 1e10), st.sampled_from([0, -0.5, 2**32, 1.9])
)


@st.composite
def headers(draw: st.DrawFn) -> tuple[bytes, float]:
    """A file that is nearly right more often than not, and the mtime of its source."""
    mtime = draw(TIMES)
    magic = draw(st.sampled_from([MAGIC, MAGIC, MAGIC, b"\x00\x00\r\n"]))
    flags = draw(st.sampled_from([0, 0, 1, 2, 3, 3, 4, 7, 0x80000000]))
    stamp = word(draw(st.sampled_from([int(mtime), int(mtime), int(mtime) + 1])))
    size = word(len(SOURCE) + draw(st.sampled_from([0, 0, 1])))
    rest = draw(st.sampled_from([stamp + size, _imp.source_hash(KEY, SOURCE)]))
    body = draw(st.sampled_from([CODE, CODE, b"", marshal.dumps(1), marshal.dumps("c")]))
    file = magic + word(flags) + rest + body
    return draw(st.sampled_from([file, file, file, file[: draw(st.integers(0, 17))]])), mtime


@given(headers(), st.sampled_from(["default", "always", "never"]))
def test_the_verdict_is_what_importlib_does(header: tuple[bytes, float], mode: str) -> None:
    data, mtime = header
    # A body cut short further on shows only with --verify.
    assert_alike(data[:16] if len(data) == 17 else data, mtime, mode)


@pytest.mark.parametrize("mode", ["default", "always", "never"])
def test_no_combination_is_left_to_chance(mode: str) -> None:
    stamp, mixed = word(7) + word(len(SOURCE)), word(7) + word(1)
    rests = (stamp, mixed, bytes(8), _imp.source_hash(KEY, SOURCE))
    for flags, rest, body in product(range(6), rests, (CODE, b"", b"i")):
        assert_alike(MAGIC + word(flags) + rest + body, 7, mode)


def assert_alike(data: bytes, mtime: float, mode: str) -> None:
    """The verdict for a file of DATA is what importlib does with it."""
    with checking(mode):
        expected = outcome(Loader(data, mtime))
    decision = decide(data[: rule.HEAD], int(mtime), len(SOURCE), rules(mode))
    verdict = decision.verdict
    if decision.check_hash and data[8:16] != _imp.source_hash(KEY, SOURCE):
        verdict = Verdict.STALE
    said = {Verdict.LOADABLE: "loads", Verdict.DAMAGED: "fails"}.get(verdict, "compiles")
    assert (data, mode, said) == (data, mode, expected)


@given(headers())
def test_the_verdict_without_a_source_is_what_importlib_does(header: tuple[bytes, float]) -> None:
    class Sourceless(SourcelessFileLoader):
        def get_data(self, path: str) -> bytes:  # noqa: ARG002
            return data

    data = header[0][:16] if len(header[0]) == 17 else header[0]
    loads = outcome(Sourceless("m", "/nowhere/m.pyc")) == "loads"

    assert (decide_sourceless(data[: rule.HEAD], rules()).verdict is Verdict.LOADABLE) == loads


@pytest.mark.parametrize(
    ("head", "verdict", "reason"),
    [
        (b"", Verdict.WRONG_MAGIC, "empty file"),
        (b"\x01\x02\r\n" + bytes(13), Verdict.WRONG_MAGIC, "magic 01020d0a"),
        (MAGIC + bytes(4), Verdict.STALE, "header cut short"),
        (MAGIC + word(4) + bytes(9), Verdict.STALE, "unknown flags"),
        (MAGIC + word(0) + word(6) + word(9) + b"c", Verdict.STALE, "mtime"),
        (MAGIC + word(0) + word(5) + word(8) + b"c", Verdict.STALE, "size"),
        (MAGIC + word(0) + word(5) + word(9) + b"i", Verdict.DAMAGED, rule.DAMAGED.reason),
        (MAGIC + word(0) + word(5) + word(9) + b"\xe3", Verdict.LOADABLE, ""),
        (MAGIC + word(1) + bytes(8) + b"c", Verdict.LOADABLE, "unchecked hash"),
    ],
)
def test_each_verdict_has_its_reason(head: bytes, verdict: Verdict, reason: str) -> None:
    decision = decide(head, 5, 9, rules())

    assert (decision.verdict, decision.reason) == (verdict, reason)


FOLDERS = st.lists(st.sampled_from(["a", "b c", "d.e", "..", "site-packages"]), max_size=4)


@given(FOLDERS, st.sampled_from([None, "/p", "/p/", "relative", "/"]), st.integers(0, 2))
def test_bytecode_is_looked_for_where_importlib_does(
    parts: list[str], prefix: str | None, level: int
) -> None:
    folder = "".join(f"/{part}" for part in parts)
    before, sys.pycache_prefix = sys.pycache_prefix, prefix
    try:
        expected = importlib.util.cache_from_source(
            f"{folder}/m.py", optimization=str(level) if level else ""
        )
    finally:
        sys.pycache_prefix = before
    found = rule.rules_of(facts(pycache_prefix=prefix, optimize=level))

    where = f"{cache_folder(folder, found)}/m{found.suffix}"
    assert os.path.normpath(where) == os.path.normpath(expected)


@pytest.mark.parametrize(
    ("present", "reason"),
    [
        ([], None),
        (["other.x.pyc", "m.txt", "m.x.pyc.140"], None),
        (["m.x.pyc"], "x"),
        (["m.x.pyc", "m.t.opt-1.pyc"], "t.opt-1, x"),
        (["m.b.x.opt-1.pyc"], None),  # that of m.b.py
    ],
)
def test_bytecode_for_others_is_named(present: list[str], reason: str | None) -> None:
    decision = absent("m", present, rules())

    assert decision.verdict is (Verdict.MISSING if reason is None else Verdict.OTHER_TAG)
    assert decision.reason == (reason or "")


# --- looking -------------------------------------------------------------------------------


def test_a_list_of_sources_is_judged_in_order(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/x.py": "x = 1\n", "b/x.py": "x = 1\n", "gone/x": ""})
    file = Path(importlib.util.cache_from_source(str(tmp_path / "b/x.py")))
    status = (tmp_path / "b/x.py").stat()
    file.parent.mkdir()
    file.write_bytes(MAGIC + word(0) + word(int(status.st_mtime)) + word(status.st_size) + CODE)
    ours = facts(magic=MAGIC.hex(), cache_tag=sys.implementation.cache_tag)

    found = judge([f"{tmp_path}/{name}/x.py" for name in ("b", "gone", "a")], ours)

    assert found == [
        Judged(f"{tmp_path}/b/x.py", Verdict.LOADABLE, "", 6, 16 + len(CODE)),
        Judged(f"{tmp_path}/a/x.py", Verdict.MISSING, "", 6, 0),
    ]


def test_a_folder_that_is_not_readable_is_a_note() -> None:
    judging = Judge(facts())
    with tempfile.TemporaryDirectory() as name:  # pytest's own is closed to others
        folder = write_tree(Path(name), {"open/x.py": "", "shut/x.py": ""})
        folder.chmod(0o755)
        (folder / "shut").chmod(0)
        found, notes = as_nobody(lambda: look(folder, judging))
        (folder / "shut").chmod(0o755)

    assert found == [f"{folder}/open/x.py"]
    assert notes == [f"cannot look into {folder}/shut: Permission denied"]


def look(folder: Path, judging: Judge) -> tuple[list[str], list[str]]:
    ((_, found),) = judge_roots([Root(str(folder), "path")], judging, lambda _: None)
    return [one.source for one in found], judging.notes


def as_nobody(call: Any) -> Any:
    """What CALL returns in a process that permissions are for."""
    if os.geteuid() != 0:
        return call()
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setuid(65534)
            os.write(writable, repr(call()).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with open(readable, "rb") as pipe:  # noqa: PTH123
        text = pipe.read().decode()
    os.waitpid(pid, 0)
    return eval(text)


def test_links_in_circles_come_to_an_end(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/x.py": "", "b/y.py": ""})
    (tmp_path / "a" / "self").symlink_to(".")
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "a" / "to_b").symlink_to("../b")
    (tmp_path / "b" / "to_a").symlink_to("../a")

    found, notes = look(tmp_path, Judge(facts()))

    assert notes == []
    assert sorted(found) == [
        f"{tmp_path}/{name}"
        for name in ("a/to_b/y.py", "a/x.py", "b/to_a/x.py", "b/y.py")
    ]  # fmt: skip


def test_a_root_inside_another_is_looked_at_once(tmp_path: Path) -> None:
    write_tree(tmp_path, {"x.py": "", "inner/y.py": ""})
    roots = [Root(str(tmp_path), "path"), Root(f"{tmp_path}/inner/", "path")]

    outer, inner = judge_roots(roots, Judge(facts()), lambda _: None)

    assert [one.source for one in outer[1]] == [f"{tmp_path}/x.py"]
    assert [one.source for one in inner[1]] == [f"{tmp_path}/inner/y.py"]


def test_a_file_in_place_of_the_folder_cannot_be_written_to(tmp_path: Path) -> None:
    write_tree(tmp_path, {"x.py": "", "__pycache__": ""})
    (found,) = judge([f"{tmp_path}/x.py"], facts())

    assert found.verdict is Verdict.UNCACHEABLE
    assert f"{tmp_path}/__pycache__ is not a folder" in found.reason


def test_a_sealed_prefix_is_told_from_missing(tmp_path: Path) -> None:
    write_tree(tmp_path, {"x.py": ""})
    (tmp_path / "sealed").mkdir(mode=0o555)
    (found,) = judge([f"{tmp_path}/x.py"], facts(pycache_prefix=f"{tmp_path}/sealed/p"))

    assert found.verdict is Verdict.UNCACHEABLE
    assert found.reason == "missing; folder not writable"


def test_a_read_only_file_system_is_told_from_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, {"x.py": ""})
    flags = os.statvfs(tmp_path).f_flag

    class Mounted:
        f_flag = flags | os.ST_RDONLY

    asked: list[str] = []

    def statvfs(path: str) -> type[Mounted]:
        asked.append(path)
        return Mounted

    monkeypatch.setattr(os, "statvfs", statvfs)
    (found,) = judge([f"{tmp_path}/x.py"], facts())

    assert asked == [str(tmp_path)]  # the nearest folder that is there
    assert found == Judged(
        f"{tmp_path}/x.py", Verdict.UNCACHEABLE, "missing; read-only file system"
    )


def test_no_cache_tag_is_no_cache(tmp_path: Path) -> None:
    write_tree(tmp_path, {"x.py": "", "__pycache__/x.cpython-311.pyc": "", "__pycache__/x": ""})
    (found,) = judge([f"{tmp_path}/x.py"], facts(cache_tag=None))

    assert (found.verdict, found.reason) == (Verdict.UNCACHEABLE, "missing; no cache tag")


def test_kinds_and_editable_folders_of_a_site(tmp_path: Path) -> None:
    site = tmp_path / "v/lib/python3.11/site-packages"
    write_tree(site, {
        "a.pth": f"{tmp_path}/checkout\n# x\nimport nothing\nvendored\n",
        "__editable___mine_1_0_finder.py":
            f"MAPPING: dict[str, str] = {{'mine': '{tmp_path}/src/mine',"
            f" 'one': '{tmp_path}/one'}}\n",
        "__editable___broken_finder.py": "MAPPING = {oops\n",
    })  # fmt: skip
    write_tree(tmp_path, {"src/mine/x.py": "", "one.py": "", "checkout/y.py": ""})
    path = [f"{tmp_path}/base/lib/python3.11", str(site), f"{tmp_path}/checkout",
            f"{site}/vendored", f"{tmp_path}/own"]  # fmt: skip
    target = facts(path=path, sites=[str(site)], base_prefix=f"{tmp_path}/base", version="3.11.7")
    owners = Distributions(path, [])

    roots = {r.path: r.kind for r in environment_roots(target, owners)}

    assert list(roots.values()) == [
        "stdlib", "site-packages", "editable", "site-packages", "path", "editable", "editable",
    ]  # fmt: skip
    assert list(roots)[5:] == [f"{tmp_path}/src/mine", f"{tmp_path}/one.py"]
    assert Kinds(target, owners).kind(f"{site}/x") == "site-packages"


# --- sums ----------------------------------------------------------------------------------


def summary(*judged: Judged, kind: str = "path") -> Bytecode:
    return rule.summarise([(Root("/r", kind), list(judged))], Distributions([], []))


def test_a_folder_counts_when_none_of_its_sources_is_usable() -> None:
    found = summary(
        Judged("/r/half/a.py", Verdict.MISSING, "", 1000),
        Judged("/r/half/b.py", Verdict.LOADABLE, "", 1000, 1200),
        Judged("/r/none/a.py", Verdict.STALE, "mtime", 1000, 1300),
        Judged("/r/templates/a.py", Verdict.NOT_COMPILABLE, "SyntaxError", 1000),
    )

    assert (found.folders, found.without, found.percent) == (2, 1, 50.0)
    assert found.verdicts == {
        Verdict.LOADABLE: 1, Verdict.MISSING: 1, Verdict.STALE: 1, Verdict.NOT_COMPILABLE: 1,
    }  # fmt: skip
    assert found.adds == round(1000 * rule.USUAL_RATIO)  # what is replaced adds nothing


def test_an_environments_own_ratio_is_used_where_it_is_known() -> None:
    found = summary(
        Judged("/r/a.py", Verdict.LOADABLE, "", 2_000_000, 1_000_000),
        Judged("/r/b.py", Verdict.OTHER_TAG, "x", 500),
    )

    assert found.adds == 250


def test_a_chain_is_summed_up_by_where_its_sources_are(tmp_path: Path) -> None:
    write_tree(tmp_path, {"site/p/x.py": "x\n", "site/q.py": "", "own/m.py": "", "e/f.so": ""})
    sources = [f"{tmp_path}/{name}" for name in ("site/p/x.py", "site/q.py", "own/m.py", "e/f.so")]
    target = facts(path=[f"{tmp_path}/site", f"{tmp_path}/own"], sites=[f"{tmp_path}/site"])

    found, judged = survey_sources(sources, target)

    assert [one.source for one in judged] == sources[:3]
    assert (found.folders, found.without, found.verdicts) == (3, 3, {Verdict.MISSING: 3})
    assert [(row.name, row.kind, row.sources) for row in found.rows] == [
        ("(no distribution)", "site-packages", 2), (f"{tmp_path}/own", "path", 1),
    ]  # fmt: skip


def test_the_worst_comes_first() -> None:
    rows = [
        ("/r1", [Judged("/r1/a.py", Verdict.LOADABLE)]),
        ("/r2", [Judged("/r2/a.py", Verdict.MISSING), Judged("/r2/b.py", Verdict.MISSING)]),
        ("/r3", [Judged("/r3/a.py", Verdict.MISSING, "", 9), Judged("/r3/b.py", Verdict.STALE)]),
    ]
    found = rule.summarise([(Root(p, "path"), j) for p, j in rows], Distributions([], []))

    assert [row.name for row in found.rows] == ["/r3", "/r2", "/r1"]


def test_nothing_is_no_percentage() -> None:
    assert summary().percent == 0.0
