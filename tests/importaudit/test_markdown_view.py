"""The summary for CI: whole output, its length whatever is in a Record, and nothing as markup."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import importaudit
from support.records import tiny
from support.targets import write_tree

from importaudit import record as records
from importaudit.record import (
    Bytecode,
    BytecodeRow,
    Cost,
    Event,
    Failure,
    Image,
    Process,
    Record,
    Verdict,
)
from importaudit.views.markdown import LONGEST, plain, render

SHORT = 60  # lines that there are never more of


def test_a_small_record_as_a_whole() -> None:
    assert render(tiny(distributions={"one 1.0": ["one"]})).decode() == (
        "### importaudit: one\n"
        "\n"
        "Python 3.11.7 · 1 import, 1 module · 2 processors · ext4 file system\n"
        "\n"
        "|  | wall s | CPU s |\n"
        "|---|---:|---:|\n"
        "| timing | 0.009 | 0.008 |\n"
        "\n"
        "| Distribution | self s | exclusive s | modules below |\n"
        "|---|---:|---:|---:|\n"
        "| one 1.0 | 0.002 | 0.002 | 0 |\n"
    )


def large() -> Record:
    """A failed target of many distributions, with much to say."""
    events = [Event(0, -1, "__main__", start=0, wall=10**9, loader="")]
    events += [Event(n, 0, f"m{n}", start=n, wall=10**6, phases={"body": Cost(10**6, 10**6, 0)},
                     origin=f"/srv/lib/m{n}.py") for n in range(1, 400)]  # fmt: skip
    rows = [BytecodeRow(f"d{n} 1", "path", 9, {Verdict.MISSING: 9}) for n in range(300)]
    return tiny(
        processes=[Process(7, events=events)],
        distributions={f"d{n} 1": [f"m{n}"] for n in range(1, 400)},
        bytecode=Bytecode(300, 300, {Verdict.MISSING: 2700}, rows),
        failure=Failure("exception", "it\nfailed " * 99, "try\nthis", stderr="line\n" * 500),
        notes=["a note"] * 200,
    )


def test_it_is_short_whatever_is_in_it_and_says_what_is_left_out() -> None:
    said = render(large()).decode()

    assert len(said.splitlines()) < SHORT
    assert "| … and 295 more | | | |" in said  # of 300 in the table of bytecode
    assert "| … and 394 more | | | |" in said  # of 399 distributions
    assert said.index("**Failed**") < said.index("| ")


def test_a_record_without_a_process_is_no_error() -> None:
    said = render(tiny(processes=[], failure=Failure("vanished", "it left"))).decode()

    assert "**Failed**: it left" in said


def test_the_image_is_named() -> None:
    record = tiny()
    record.environment.image = Image("shop:1", "sha256:0", "1000:1000", "Docker 20", "overlay2")

    assert "image shop:1 as 1000:1000 · Python" in render(record).decode()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a|b", r"a\|b"),
        ("<img src=x>", r"\<img src=x\>"),
        ("`x` *y* _z_ [l](u)", r"\`x\` \*y\* \_z\_ \[l\](u)"),
        ("@everyone", "@\u200beveryone"),
        ("two\nlines", "two lines"),
        ("größe", "größe"),
    ],
)
def test_what_strangers_have_named_is_no_markup(name: str, shown: str) -> None:
    assert plain(name) == shown


def test_a_long_cell_is_cut_and_says_so() -> None:
    assert len(plain("x" * 1000)) == LONGEST
    assert plain("x" * 1000).endswith("…")


def test_the_command_writes_it(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "target", {"one.py": "x = 1\n"})
    words = ["one", "--states", "warm-as-shipped,warm-none", "--runs", "2"]
    done = importaudit(*words, "--markdown", "summary.md", cwd=root)
    said = (root / "summary.md").read_text("utf-8")

    assert (done.code, said.splitlines()[0]) == (0, "### importaudit: one")
    assert "| warm-none |" in said
    assert "one" in done.out  # the report is printed all the same


def test_a_record_is_shown_as_markdown_alone(tmp_path: Path) -> None:
    records.write(tiny(), tmp_path / "record.json")
    done = importaudit("show", "record.json", "--markdown", "-", cwd=tmp_path)

    assert (done.code, done.out) == (0, render(tiny()).decode())


def test_a_place_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    done = importaudit("json", "--markdown", "no/such/folder/x.md", cwd=tmp_path)

    assert (done.code, done.out) == (2, "")
    assert "cannot write no/such/folder/x.md" in done.err
