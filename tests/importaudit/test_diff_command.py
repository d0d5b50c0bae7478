"""``importaudit diff``, run for real."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from support.command import audit, importaudit
from support.edited import MS, after, earlier, render
from support.targets import write_tree

from importaudit import record as records
from importaudit.analysis.difference import FORMAT, VERSION, Difference, difference
from importaudit.analysis.statistics import Verdict


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    records.write(earlier(), a)
    records.write(after(), b)
    return a, b


def test_the_command_prints_the_report(files: tuple[Path, Path], tmp_path: Path) -> None:
    done = importaudit("diff", *files, cwd=tmp_path, COLUMNS="100")

    assert (done.code, done.err) == (0, "")
    assert "\n".join(line.rstrip() for line in done.out.splitlines()) == render(
        difference(earlier(), after()), 100
    )


def test_json_is_the_versioned_document(files: tuple[Path, Path], tmp_path: Path) -> None:
    done = importaudit("diff", "--json", "-", *files, cwd=tmp_path)
    written = importaudit("diff", "--json", "diff.json", *files, cwd=tmp_path)
    document = json.loads(done.out)

    assert (done.code, done.err, written.code) == (0, "", 0)
    assert (document["format"], document["version"]) == (FORMAT, VERSION)
    assert msgspec.convert(document, Difference) == difference(earlier(), after())
    assert json.loads((tmp_path / "diff.json").read_text()) == document
    assert written.out.startswith("A  one\n")


def test_a_record_that_cannot_be_read_is_wrong_usage(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    for words in ((files[0], "missing.json"), ("missing.json", files[0])):
        done = importaudit("diff", *words, cwd=tmp_path)
        assert (done.code, done.out) == (2, "")
        assert "cannot read missing.json" in done.err


def test_a_result_that_cannot_be_written_is_found_out_first(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    done = importaudit("diff", "--json", "no/where.json", *files, cwd=tmp_path)

    assert (done.code, done.out) == (2, "")
    assert "no folder no that is writable" in done.err


def test_a_package_that_was_edited(tmp_path: Path) -> None:
    root = tmp_path / "target"
    write_tree(root, {
        "pack/__init__.py": "import pack.work, pack.slow, pack.old\n",
        "pack/work.py": "sum(range(100_000))\n",
        "pack/slow.py": "",
        "pack/old.py": "",
    })  # fmt: skip
    kept = [tmp_path / f"{name}.json" for name in "ab"]
    assert audited(root, kept[0])
    (root / "pack/old.py").unlink()
    write_tree(root, {
        "pack/__init__.py": "import pack.work, pack.slow, pack.fresh\n",
        "pack/fresh.py": "",
        "pack/slow.py": """\
            import time
            end = time.process_time() + 0.2
            while time.process_time() < end: pass
        """,
    })  # fmt: skip
    assert audited(root, kept[1])
    done = importaudit("diff", *kept, "--json", "-", cwd=tmp_path)
    found = msgspec.json.decode(done.out, type=Difference)

    assert (done.code, found.not_comparable) == (0, [])
    assert "pack.fresh" in [one.module for one in found.new]
    assert [one.module for one in found.gone] == ["pack.old"]
    for movers in (found.movers_wall, found.movers_cpu):
        assert (movers[0].module, movers[0].verdict) == ("pack.slow", Verdict.MORE)
    assert found.movers_cpu[0].difference >= 190 * MS
    assert found.states[0].cpu.b.median > found.states[0].cpu.a.median
    assert "pack.slow" in importaudit("diff", *kept, cwd=tmp_path).out


def audited(root: Path, file: Path) -> bool:
    return importaudit("--json", file, "pack", cwd=root).code == 0


def test_a_record_beside_itself_is_within_noise(tmp_path: Path) -> None:
    file = audit("json", "--runs", "3", cwd=write_tree(tmp_path / "t", {"x.py": ""})).file
    assert file is not None
    done = importaudit("diff", file, file, cwd=tmp_path)

    assert done.code == 0
    assert done.out.count("within noise") >= 2
    assert re.search(r"\b(wall|CPU) .*(more|less)$", done.out, re.MULTILINE) is None
    assert "New in B: no module" in done.out
