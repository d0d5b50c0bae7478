"""The command line: what it takes, what it prints where, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.command import COMMAND, audit, importaudit
from support.records import tiny
from support.targets import write_tree

from importaudit import cli, errors
from importaudit import record as records
from importaudit.errors import AuditError

OURS = sys.executable
ESCAPE = "\x1b"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


@pytest.fixture
def written(root: Path) -> Path:
    path = root / "record.json"
    records.write(tiny(notes=["a note"]), path)  # notes are yellow
    return path


# --- exit codes --------------------------------------------------------------------------


def subclasses(kind: type[AuditError]) -> set[type[AuditError]]:
    return {kind}.union(*(subclasses(below) for below in kind.__subclasses__()))


def test_every_error_has_an_exit_code_of_its_own_entry() -> None:
    assert subclasses(AuditError) == set(cli.CODES)
    assert {kind.__name__ for kind in cli.CODES} == {
        name for name, value in vars(errors).items() if isinstance(value, type)
    }


def test_the_exit_codes_are_the_documented_ones() -> None:
    assert "0 fine, 1 a finding or failed gate, 2 wrong usage, 3 the target failed" in str(
        cli.__doc__
    )
    assert (cli.FINE, cli.FINDING, cli.USAGE, cli.TARGET) == (0, 1, 2, 3)
    assert set(cli.CODES.values()) <= {cli.FINDING, cli.USAGE}


def test_a_subclass_goes_with_its_nearest_base() -> None:
    class Special(errors.RecordError):
        pass

    assert cli.code_of(Special("problem")) == cli.CODES[errors.RecordError]


# --- usage -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ["nothing to audit", "importaudit MODULE"]),
        (["a-b"], ["'a-b' is not a module name", "import_module('a-b')"]),
        (["class"], ["'class' is not a module name"]),
        (["json."], ["'json.' is not a module name"]),
        (["1st"], ["'1st' is not a module name"]),
        ([""], ["'' is not a module name"]),
        (["json;print(1)"], ["is not a module name"]),
        (["x.py"], ["'x.py' is a file", "importaudit --script x.py"]),
        (["dir/x"], ["'dir/x' is a file"]),
        (["--code", "1", "json"], ["--code takes the place of MODULE"]),
        (["--code", "1", "--script", "x.py"], ["exclude each other"]),
        (["--script", "missing.py"], ["no script at missing.py"]),
        (["--runs", "0", "json"], ["--runs"]),
        (["--timeout", "0", "json"], ["--timeout"]),
        (["--top", "none", "json"], ["--top"]),
        (["--unknown", "json"], ["--unknown"]),
        (["show"], ["RECORD"]),
        (["show", "--top", "0", "x.json"], ["--top"]),
        (["schema", "x"], ["x"]),
        (["diff"], ["'A'"]),
        (["diff", "a.json"], ["'B'"]),
        (["diff", "--top", "0", "a.json", "b.json"], ["--top"]),
    ],
    ids=" ".join,
)
def test_wrong_usage_says_what_and_what_to_do(
    root: Path, words: list[str], said: list[str]
) -> None:
    done = importaudit(*words, cwd=root)

    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    for text in said:
        assert text in done.err


def test_the_hint_for_a_name_that_no_statement_can_say_works(root: Path) -> None:
    write_tree(root, {"a-b.py": ""})
    hint = importaudit("a-b", cwd=root).err.split("next: importaudit ")[1].strip()
    done = subprocess.run(
        f"{COMMAND} --runs 1 {hint}", shell=True, cwd=root, capture_output=True, check=False
    )

    assert done.returncode == 0
    assert b"a-b" in done.stdout


@pytest.mark.parametrize("words", [[], *([name] for name in cli.COMMANDS)], ids=str)
def test_help_has_an_example(root: Path, words: list[str]) -> None:
    done = importaudit(*words, "--help", cwd=root)

    assert (done.code, done.err) == (0, "")
    assert f"Usage: {' '.join(['importaudit', *words])}" in done.out
    assert "Example" in done.out


# --- targets -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_module_called_like_a_command_is_reached(root: Path, name: str) -> None:
    write_tree(root, {f"{name}.py": ""})
    for words in (["--", name], ["--top", "3", name]):
        record = audit(*words, cwd=root).record
        assert record.modules == [name]
        assert name in {event.module for event in record.processes[0].events}


def test_several_modules_are_one_target(root: Path) -> None:
    write_tree(root, {"one.py": "", "two/__init__.py": "", "two/three.py": ""})
    done = audit("one", "two.three", cwd=root)

    assert done.record.target == "one two.three"
    assert {"one", "two", "two.three"} <= {e.module for e in done.record.processes[0].events}


SHOWS = """
import json, os, sys
shown = {
    "argv": sys.argv, "file": globals().get("__file__"), "path": sys.path[0],
    "name": __name__, "cwd": os.getcwd(), "main": sys.modules["__main__"].__dict__ is globals(),
    "names": sorted(n for n in globals() if not n.startswith("__")),
}
open(os.environ["SHOWN"], "w").write(json.dumps(shown))
"""


def seen(command: Sequence[str | Path], cwd: Path, file: Path) -> dict[str, object]:
    """What SHOWS notes when it runs under COMMAND."""
    file.unlink(missing_ok=True)
    subprocess.run(
        command, cwd=cwd, env=os.environ | {"SHOWN": str(file)}, check=True, capture_output=True
    )
    found: dict[str, object] = json.loads(file.read_text())
    return found


def test_code_runs_as_under_plain_python(root: Path) -> None:
    code = SHOWS + "if True:\n    import colorsys\n"
    file = root.parent / "shown"
    plain = seen([OURS, "-c", code], root, file)

    assert seen([COMMAND, "--runs", "1", "--code", code], root, file) == plain


@pytest.mark.parametrize("place", [".", "/", "sub"])
def test_a_script_runs_as_under_plain_python(root: Path, place: str) -> None:
    write_tree(root, {"sub/größe.py": "from __future__ import annotations\n" + SHOWS})
    script = {".": "sub/größe.py", "/": str(root / "sub/größe.py"), "sub": "größe.py"}[place]
    cwd = root / "sub" if place == "sub" else root
    words = ["--epochs", "1", "--", "two words"]
    file = root.parent / "shown"
    plain = seen([OURS, script, *words], cwd, file)
    ours: list[str | Path] = [COMMAND, "--runs", "1", "--python", OURS]
    # The first -- ends our own options.
    command = [*ours, "--script", script, "--", *words]

    assert seen(command, cwd, file) == plain


def test_the_search_path_of_a_target_is_the_working_directory_and_pythonpath(root: Path) -> None:
    write_tree(root, {"here.py": "", "elsewhere/there.py": ""})
    done = audit("here", "there", cwd=root, PYTHONPATH="elsewhere")
    record = done.record

    assert record.failure is None
    assert record.interpreter.path[:2] == ["", str(root / "elsewhere")]
    assert record.environment.variables["PYTHONPATH"] == "elsewhere"


# --- output ------------------------------------------------------------------------------


def test_the_report_goes_to_stdout_and_progress_to_stderr(root: Path) -> None:
    states = "warm-none,warm-complete"
    done = importaudit("--runs", "2", "--states", states, "colorsys", cwd=root)
    first, scout, plan, *runs = done.err.splitlines()

    assert done.code == 0
    assert done.out.startswith("colorsys\n")
    assert first.startswith("Auditing colorsys under ")
    assert scout.startswith("  detail run: ")
    assert plan.startswith("Plan: warm-complete, warm-none; 2 runs each, about ")
    assert [line.rpartition(":")[0] for line in runs] == [
        "  1 of 4: warm-complete",
        "  2 of 4: warm-none",
        "  3 of 4: warm-none",
        "  4 of 4: warm-complete",
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [("warm", "no state is called 'warm'"), (",", "--states names no state"),
     ("all,warm-none", "no state is called 'all'")],
)  # fmt: skip
def test_a_state_that_there_is_not(root: Path, words: str, problem: str) -> None:
    done = importaudit("--states", words, "colorsys", cwd=root)

    assert (done.code, done.out) == (2, "")
    assert problem in done.err
    assert "next: there are warm-complete, warm-as-shipped, " in done.err


def test_a_quick_audit_runs_once_a_state_and_claims_nothing(root: Path) -> None:
    done = importaudit("--quick", "--states", "all", "json", cwd=root)

    assert "one run each" in done.err
    assert done.out.count("(one run)") == 2 * 7
    assert "What to do next" not in done.out


def not_ignored() -> None:
    """A shell's background job ignores Ctrl-C, and so does what it starts: not here."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_what_was_measured_is_not_lost_by_ctrl_c(root: Path) -> None:
    write_tree(root, {"slow.py": "import time, colorsys\ntime.sleep(0.3)\n"})
    words = "--states warm-as-shipped --runs 50 --json kept.json slow"
    command = [str(COMMAND), *words.split()]
    child = subprocess.Popen(
        command, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=not_ignored,  # noqa: PLW1509 - no threads here
    )  # fmt: skip
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith("  2 of 50"):
            break
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    record = records.read(root / "kept.json")

    assert child.returncode == 130
    assert "colorsys" in out
    assert record.notes == [f"interrupted after {len(record.runs) - 1} of 50 timing runs"]
    assert 3 <= len(record.runs) < 50
    assert record.failure is None


def started(root: Path, *words: str) -> subprocess.Popen[str]:
    """The command, when the first run of it is under way."""
    child = subprocess.Popen(
        [str(COMMAND), *words], cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(root)},
        preexec_fn=not_ignored,  # noqa: PLW1509 - no threads here
    )  # fmt: skip
    until = time.monotonic() + 30
    while not (root / "began").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return child


def test_ctrl_c_in_an_import_that_hangs_shows_where(root: Path) -> None:
    write_tree(root, {"hang.py": "import time\nopen('began', 'w').close()\ntime.sleep(60)\n"})
    child = started(root, "hang", "--json", "kept.json")
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    failure = records.read(root / "kept.json").failure

    assert child.returncode == 130
    assert failure is not None
    assert (failure.kind, [link.module for link in failure.chain]) == ("interrupt", ["hang"])
    assert "interrupted by Ctrl-C, while importing hang" in out


def test_sigterm_ends_the_target_and_leaves_nothing(root: Path) -> None:
    code = "import os, time\nopen('began', 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    write_tree(root, {"hang.py": code})
    child = started(root, "hang")
    time.sleep(0.2)
    child.terminate()
    child.communicate(timeout=30)

    assert child.returncode == 128 + signal.SIGTERM
    assert not Path("/proc", (root / "began").read_text()).exists()
    assert sorted(path.name for path in root.iterdir()) == ["began", "hang.py"]


def test_what_a_failed_target_printed_is_shown(root: Path) -> None:
    write_tree(root, {"lic.py": "print('read the licence')\nraise SystemExit('no licence')\n"})
    done = importaudit("lic", cwd=root)

    assert done.code == 3
    assert "stdout:\n  read the licence\n" in done.out
    assert "stderr:\n  no licence\n" in done.out


def test_a_full_stdout_is_no_traceback(written: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run([COMMAND, "show", written], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)  # fmt: skip

    assert done.returncode == 1
    assert done.stderr == "importaudit: cannot write to stdout: No space left on device\n"


def test_our_own_modules_leave_no_bytecode_in_a_prefix(root: Path) -> None:
    prefix = root / "prefix"
    write_tree(root, {"plain.py": ""})
    for words in (["--quick", "plain"], ["bytecode", "plain.py"]):
        done = importaudit(*words, cwd=root, PYTHONPYCACHEPREFIX=str(prefix),
                           PYTHONDONTWRITEBYTECODE="")  # fmt: skip
        assert done.code == 0, done.err
    written = [path.name for path in prefix.rglob("*.pyc")]

    # What loads our code before it can say so.
    assert {name.partition(".")[0] for name in written if "importaudit" in name} <= {"importaudit"}
    ours = [path for path in prefix.rglob("*.pyc") if "audits/importaudit" in str(path)]
    assert {path.name.partition(".")[0] for path in ours} <= {"__init__"}


def test_json_to_stdout_is_the_record_and_nothing_else(root: Path) -> None:
    done = importaudit("--runs", "1", "--json", "-", "colorsys", cwd=root)
    file = root / "record.json"
    file.write_text(done.out)

    assert records.read(file).target == "colorsys"
    assert done.out.count("\n") == 1
    assert done.err.startswith("Auditing colorsys")


def test_json_to_stdout_keeps_the_exit_code_of_a_failed_target(root: Path) -> None:
    done = importaudit("--runs", "1", "--json", "-", "missing_one", cwd=root)

    assert (done.code, json.loads(done.out)["failure"]["kind"]) == (3, "exception")


def test_show_prints_the_report_of_the_audit_again(root: Path) -> None:
    file = root / "record.json"
    done = importaudit("--runs", "1", "--json", file, "json", cwd=root)
    again = importaudit("show", file, cwd=root)

    assert (again.code, again.out, again.err) == (0, done.out, "")
    assert json.loads(importaudit("show", "--json", file, cwd=root).out) == json.loads(
        file.read_text()
    )


def test_show_of_a_failed_audit_is_fine(root: Path) -> None:
    file = root / "record.json"
    failed = importaudit("--json", file, "missing_one", cwd=root)
    again = importaudit("show", file, cwd=root)

    assert (failed.code, again.code, again.out) == (3, 0, failed.out)


def test_schema_prints_the_schema(root: Path) -> None:
    done = importaudit("schema", cwd=root)

    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == json.loads(json.dumps(records.schema()))


@pytest.mark.parametrize(
    ("document", "name"), [("bytecode", "BytecodeReport"), ("diff", "Difference")]
)
def test_every_document_has_its_schema(root: Path, document: str, name: str) -> None:
    schema = json.loads(importaudit("schema", document, cwd=root).out)

    assert schema["$ref"] == f"#/$defs/{name}"
    assert {"format", "version"} <= set(schema["$defs"][name]["required"])


def test_piped_output_has_no_escape_codes(written: Path) -> None:
    done = importaudit("show", written, cwd=written.parent, TERM="xterm-256color")

    assert ESCAPE not in done.out + done.err
    assert "one" in done.out


@pytest.mark.parametrize(("variable", "coloured"), [("", True), ("1", False)])
def test_colours_on_a_terminal_unless_no_color_is_set(
    written: Path, variable: str, coloured: bool
) -> None:
    environment = os.environ | {"TERM": "xterm-256color", "NO_COLOR": variable}
    main, terminal = os.openpty()
    with subprocess.Popen(
        [COMMAND, "show", written],
        env={name: value for name, value in environment.items() if value},
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        text = b""
        while chunk := read_some(main):
            text += chunk
    os.close(main)

    assert process.returncode == 0
    # Bold and dim stay: https://no-color.org speaks of colours.
    assert (b"\x1b[33m" in text) == coloured
    assert b"one" in text


def read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.parametrize("words", [["show"], ["show", "--json"], ["schema"]], ids=" ".join)
def test_a_reader_that_stops_early_is_no_error(root: Path, words: list[str]) -> None:
    file = root / "record.json"
    records.write(tiny(notes=["x" * 100] * 5000), file)
    paths = [file] if words[0] == "show" else []
    with subprocess.Popen(
        [COMMAND, *words, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()

    assert (process.returncode, said) == (0, b"")


def test_the_width_is_that_of_columns(written: Path) -> None:
    for width in (60, 100):
        done = importaudit("show", written, cwd=written.parent, COLUMNS=str(width))
        assert max(len(line) for line in done.out.splitlines()) <= width


def test_an_output_that_cannot_hold_a_character_shows_the_rest(written: Path) -> None:
    done = importaudit("show", written, cwd=written.parent, PYTHONIOENCODING="ascii", COLUMNS="40")

    assert (done.code, done.err) == (0, "")
    assert "one" in done.out
