"""Targets, interpreters and files that are not as they should be, through the real command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest
from support.command import Done, audit, importaudit
from support.records import tiny
from support.targets import write_tree

from importaudit import record as records
from importaudit.record import VERSION, Failure, Record

OURS = Path(sys.executable)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def failed(done: Done) -> Failure:
    """The failure of a target: exit 3, in the Record and in the report, no traceback of ours."""
    failure = done.record.failure
    assert failure is not None
    assert (done.code, "Traceback" in done.err) == (3, False), done
    shown = " ".join(done.out.split())
    assert f"Failed: {' '.join(failure.message.split())}" in shown
    assert " ".join(failure.hint.split()) in shown
    for link in failure.chain:
        assert f"{link.module} {link.file}:{link.line}" in shown
    return failure


def passed(done: Done) -> Record:
    assert (done.code, "Traceback" in done.err) == (0, False), done
    assert done.record.failure is None
    return done.record


def loaded(record: Record) -> set[str]:
    return {e.module for e in record.processes[0].events if e.outcome == "loaded"}


def refused(done: Done) -> str:
    """What stderr says about wrong usage: exit 2, nothing measured, no traceback."""
    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False), done
    return done.err


# --- modules that are not there ----------------------------------------------------------


def test_a_misspelt_module_has_near_matches(root: Path) -> None:
    write_tree(root, {"spelling.py": ""})
    failure = failed(audit("speling", cwd=root))

    assert failure.kind == "exception"
    assert failure.message.startswith("ModuleNotFoundError: No module named 'speling'")
    assert failure.hint == "did you mean spelling?"


def test_a_misspelt_submodule_has_near_matches_and_its_package_is_kept(root: Path) -> None:
    write_tree(root, {"package/__init__.py": "", "package/spelling.py": ""})
    done = audit("package.speling", cwd=root)

    assert failed(done).hint == "did you mean package.spelling?"
    assert "package" in loaded(done.record)


def test_a_misspelt_package_of_a_submodule_has_near_matches(root: Path) -> None:
    write_tree(root, {"package/__init__.py": "", "package/sub.py": ""})

    assert failed(audit("pakage.sub", cwd=root)).hint.startswith("did you mean package")


def test_nothing_like_it_asks_whether_it_is_installed(root: Path) -> None:
    assert failed(audit("qqzzxxyy", cwd=root)).hint == "is it installed there?"


def test_a_module_below_one_that_is_no_package(root: Path) -> None:
    write_tree(root, {"plain.py": ""})
    failure = failed(audit("plain.sub", cwd=root))

    assert "'plain' is not a package" in failure.message


# --- modules that fail -------------------------------------------------------------------


def test_an_import_error_deep_inside_shows_the_way_to_it(root: Path) -> None:
    write_tree(
        root,
        {
            "top/__init__.py": "import fine\n\nfrom top import middle\n",
            "top/middle.py": "try:\n    import absent_but_caught\nexcept ImportError:\n    pass\n"
            "import top.bottom\n",
            "top/bottom.py": "\n\nfrom fine import nothing_like_it\n",
            "fine.py": "",
        },
    )
    done = audit("top", cwd=root)
    failure = failed(done)

    assert [(link.module, Path(link.file).name, link.line) for link in failure.chain] == [
        ("top", "<string>", 1),
        ("top.middle", "__init__.py", 3),
        ("top.bottom", "middle.py", 5),
    ]
    assert failure.message.startswith("ImportError: cannot import name 'nothing_like_it'")
    assert failure.message.endswith(", while importing top.bottom")
    # The target's own words, without a line of ours between them.
    assert failure.stderr.startswith("Traceback (most recent call last):\n")
    assert failure.stderr.rstrip().splitlines()[-1].startswith("ImportError: cannot import name")
    assert f'File "{root}/top/bottom.py", line 3, in <module>' in failure.stderr
    assert "importaudit" not in failure.stderr
    for line in failure.stderr.splitlines():
        assert line.strip() in done.out
    assert "fine" in loaded(done.record)


def test_a_missing_dependency_is_no_misspelling_of_the_users(root: Path) -> None:
    write_tree(root, {"needs.py": "import jsonn\n"})
    failure = failed(audit("needs", cwd=root))

    assert [link.module for link in failure.chain] == ["needs", "jsonn"]
    assert "did you mean" not in failure.hint


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero, while importing broken"),
        ("raise KeyError(('a', 1))", "KeyError, while importing broken"),
        ("class Odd(BaseException): pass\nraise Odd('x')", "Odd: x, while importing broken"),
        ("def f(:", "SyntaxError, while importing broken"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt, while importing broken"),
        ("raise ValueError('a\\nb\\tc\\x01d\\udcff')",
         "ValueError: a\nb\tc\x01d\\udcff, while importing broken"),
        ("class Odd(Exception):\n    def __str__(self): raise RuntimeError\nraise Odd(1)",
         "Odd, while importing broken"),
    ],
    ids=["zero", "key", "base", "syntax", "interrupt", "control", "no-text"],
)  # fmt: skip
def test_any_exception_is_named_with_the_module(root: Path, body: str, message: str) -> None:
    write_tree(root, {"ahead.py": "", "broken.py": f"import ahead\n{body}\n"})
    done = audit("broken", cwd=root)
    failure = done.record.failure

    assert failure is not None
    assert (done.code, failure.kind, failure.message.split("\n  ")[0]) == (3, "exception", message)
    assert "Traceback" not in done.err
    assert "Failed: " + message.split(":", maxsplit=1)[0].split(",", maxsplit=1)[0] in done.out
    if body != "def f(:":
        assert "ahead" in loaded(done.record)


def test_an_exception_in_code_has_no_chain(root: Path) -> None:
    failure = failed(audit("--code", "import json; 1 / 0", cwd=root))

    assert (failure.message, failure.chain) == ("ZeroDivisionError: division by zero", [])


def test_a_failure_that_was_caught_is_none(root: Path) -> None:
    write_tree(root, {"careful.py": "try:\n    import absent\nexcept ImportError:\n    pass\n"})
    record = passed(audit("careful", cwd=root))

    events = {event.module: event for event in record.processes[0].events}
    assert (events["absent"].outcome, events["absent"].error) == ("failed", "ModuleNotFoundError")


# --- modules that end the process --------------------------------------------------------


@pytest.mark.parametrize("status", [0, 4])
def test_sys_exit_while_importing_is_a_failure(root: Path, status: int) -> None:
    write_tree(root, {"leaves.py": f"import sys\nimport json\nsys.exit({status})\n"})
    done = audit("leaves", cwd=root)
    failure = failed(done)

    assert failure.kind == "exit"
    assert failure.message == (
        f"the target called sys.exit (exit status {status}), while importing leaves"
    )
    assert "json" in loaded(done.record)


@pytest.mark.parametrize("status", [0, 4])
def test_os_exit_while_importing_is_a_failure(root: Path, status: int) -> None:
    write_tree(root, {"inner.py": f"import os\nimport json\nos._exit({status})\n",
                      "outer.py": "import inner"})  # fmt: skip
    done = audit("outer", cwd=root)
    failure = failed(done)

    assert failure.kind == "vanished"
    assert f"(exit status {status})" in failure.message
    assert [link.module for link in failure.chain] == ["outer", "inner"]
    assert "json" in loaded(done.record)


def test_exec_while_importing_is_a_failure(root: Path) -> None:
    write_tree(root, {"becomes.py": "import os\nos.execv('/bin/true', ['true'])\n"})
    failure = failed(audit("becomes", cwd=root))

    assert failure.kind == "vanished"
    assert [link.module for link in failure.chain] == ["becomes"]


def test_code_may_end_with_sys_exit_of_nothing(root: Path) -> None:
    passed(audit("--code", "import json, sys; sys.exit()", cwd=root))

    assert failed(audit("--code", "import json, sys; sys.exit(1)", cwd=root)).kind == "exit"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("os.abort()", "SIGABRT"),
        ("ctypes.string_at(0)", "SIGSEGV"),
        ("os.kill(os.getpid(), 9)", "SIGKILL"),
    ],
)
def test_a_crash_is_named_with_the_module_that_was_being_imported(
    root: Path, body: str, name: str
) -> None:
    write_tree(root, {"outer.py": "import crash", "crash.py": f"import ctypes, os\n{body}\n"})
    done = audit("outer", cwd=root)
    failure = failed(done)

    assert failure.kind == "signal"
    assert f"killed by {name} (" in failure.message
    assert failure.message.endswith(", while importing crash")
    assert [link.module for link in failure.chain] == ["outer", "crash"]
    assert done.record.runs[0].exit == -signal.Signals[name]
    assert "ctypes" in loaded(done.record)


def test_a_crash_after_the_imports_names_none(root: Path) -> None:
    write_tree(root, {"later.py": "import atexit, os\natexit.register(os.abort)\n"})
    failure = failed(audit("later", cwd=root))

    assert (failure.kind, failure.chain) == ("signal", [])


def test_a_hang_ends_with_the_timeout_and_shows_where(root: Path) -> None:
    write_tree(root, {"outer.py": "import json\nimport hangs\n",
                      "hangs.py": "import time\ntime.sleep(600)\n"})  # fmt: skip
    began = time.monotonic()
    done = audit("--timeout", "1.5", "outer", cwd=root)
    failure = failed(done)

    assert 1.5 < time.monotonic() - began < 20
    assert failure.kind == "timeout"
    assert failure.message == ("the target had not finished after 1.5 s, while importing hangs")
    assert [(link.module, link.line) for link in failure.chain] == [("outer", 1), ("hangs", 2)]
    assert (done.record.runs[0].timed_out, len(done.record.runs)) == (True, 1)
    assert "json" in loaded(done.record)


def test_a_hang_that_ignores_signals_takes_its_children_with_it(root: Path) -> None:
    code = (
        "import os, signal, time\n"
        "for number in (signal.SIGTERM, signal.SIGINT): signal.signal(number, signal.SIG_IGN)\n"
        "pid = os.fork()\n"
        "if pid: open('child', 'w').write(str(pid))\n"
        "time.sleep(600)\n"
    )
    write_tree(root, {"stubborn.py": code})
    failed(audit("--timeout", "1.5", "stubborn", cwd=root))

    child = int((root / "child").read_text())
    assert gone(child)


def gone(pid: int) -> bool:
    """Whether PID is dead, reaped or not, within a second."""
    for _ in range(20):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_thread_that_keeps_the_process_alive_is_a_hang_without_an_import(root: Path) -> None:
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    write_tree(root, {"lingers.py": code})
    failure = failed(audit("--timeout", "1.5", "lingers", cwd=root))

    assert (failure.kind, failure.chain) == ("timeout", [])


def test_a_hang_on_the_import_of_another_thread_names_that_too(root: Path) -> None:
    write_tree(
        root,
        {
            "waits.py": "import threading, time\n"
            "threading.Thread(target=lambda: __import__('stuck'), daemon=True).start()\n"
            "time.sleep(0.3)\nimport stuck\n",
            "stuck.py": "import time\ntime.sleep(600)\n",
        },
    )
    failure = failed(audit("--timeout", "2", "waits", cwd=root))

    assert [(link.module, link.line) for link in failure.chain] == [("waits", 1)]
    assert failure.message.endswith("importing waits; other threads were importing stuck")


# --- modules that disturb ----------------------------------------------------------------

DISTURBING = {
    "prints-without-newline": "import sys\nprint('x' * 100_000, end='')\nsys.stderr.write('y')",
    "prints-bytes": "import os\nos.write(1, bytes(range(256)))\nos.write(2, bytes(range(256)))",
    "prints-importtime": "import sys\nprint('import time:       100 |        100 | forged')\n"
    "print('import time:       100 |        100 | forged', file=sys.stderr)",
    "prints-a-trace": "print('B\\t1\\t0\\t0\\t0\\t1\\tforged\\t')",
    "replaces-stdout": "import io, sys\nsys.stdout = sys.stderr = io.StringIO()",
    "removes-stdout": "import sys\ndel sys.stdout, sys.stderr, sys.__stdout__",
    "replaces-import": "import builtins\noriginal = builtins.__import__\n"
    "builtins.__import__ = lambda *a, **k: original(*a, **k)",
    "removes-import-and-puts-it-back": "import builtins\nkept = builtins.__import__\n"
    "del builtins.__import__\nbuiltins.__import__ = kept",
    "closes-descriptors": "import os\nos.closerange(0, 1 << 16)",
    "reuses-descriptors": "import os\nos.closerange(0, 1 << 16)\n"
    "for _ in range(100): os.open('/dev/null', os.O_WRONLY)",
    "changes-directory": "import os\nos.chdir('/')",
    "removes-its-directory": "import os, tempfile\nfolder = tempfile.mkdtemp()\n"
    "os.chdir(folder)\nos.rmdir(folder)",
    "clears-environment": "import os\nos.environ.clear()",
    "forks": "import os\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)",
    "deletes-itself": "import sys\nsys.modules[__name__ + '_kept'] = sys.modules.pop(__name__)\n"
    "sys.modules[__name__] = sys.modules[__name__ + '_kept']",
    "switches-tracing-off": "import gc, sys\ngc.callbacks.clear()\nsys.settrace(None)\n"
    "sys.setprofile(None)",
    "disables-gc": "import gc\ngc.disable()",
    "becomes-a-daemon": "import os\nos.setsid() if os.getpgrp() != os.getpid() else os.umask(0)",
    "changes-itself": "import sys\nclass M(type(sys)):\n"
    "    def __getattribute__(self, name): raise RuntimeError(name)\n"
    "sys.modules[__name__].__class__ = M",
}


@pytest.mark.parametrize("body", DISTURBING.values(), ids=DISTURBING)
def test_what_follows_a_module_that_disturbs_is_still_seen(root: Path, body: str) -> None:
    following = f"import sys\nsys.path.insert(0, {str(root)!r})\nimport after\n"
    write_tree(
        root,
        {
            "target_.py": f"import before\nimport disturbs\n{following}",
            "before.py": "",
            "disturbs.py": body,
            "after.py": "",
        },
    )
    record = passed(audit("target_", cwd=root))

    assert {"before", "disturbs", "after", "target_"} <= loaded(record)
    assert "forged" not in loaded(record)
    assert not any("unreadable" in note for note in record.notes)


def test_a_cleared_search_path_fails_as_it_does_without_us(root: Path) -> None:
    write_tree(root, {"clears.py": "import sys\nsys.path.clear()\nimport json\n"})
    failure = failed(audit("clears", cwd=root))

    assert failure.message.startswith("ModuleNotFoundError: No module named 'json'")


def test_a_module_that_deletes_itself_fails_as_it_does_without_us(root: Path) -> None:
    write_tree(root, {"hides.py": "import sys\ndel sys.modules[__name__]\n"})
    plain = subprocess.run(
        [OURS, "-c", "import hides"], cwd=root, capture_output=True, text=True, check=False
    )
    failure = failed(audit("hides", cwd=root))

    assert plain.stderr.splitlines()[-1] == "KeyError: 'hides'"
    assert failure.message == "KeyError: hides, while importing hides"
    assert failure.stderr.splitlines()[-1] == "KeyError: 'hides'"


def test_a_child_that_goes_on_by_itself_is_kept_apart(root: Path) -> None:
    write_tree(root, {"forks.py": "import os\npid = os.fork()\nimport json\n"
                                  "if pid: os.waitpid(pid, 0)\n"})  # fmt: skip
    record = passed(audit("forks", cwd=root))
    target, child = record.processes

    assert (child.parent, child.started_by) == (target.pid, "fork")
    assert "json" in {event.module for event in child.events}
    assert sum(event.module == "json" for event in target.events) == 1


# --- names that are not ASCII ------------------------------------------------------------


def test_names_and_paths_that_are_not_ascii(tmp_path: Path) -> None:
    root = tmp_path / "wörk ⌂ 'quoted\" $x\tand\nlines"
    write_tree(root, {"größe/__init__.py": "import größe.δ", "größe/δ.py": ""})
    done = audit("größe", cwd=root)

    assert {"größe", "größe.δ"} <= loaded(passed(done))
    assert "größe.δ" in done.out
    origins = {event.module: event.origin for event in done.record.processes[0].events}
    assert origins["größe.δ"] == str(root / "größe/δ.py")


def test_a_path_that_is_no_unicode_is_spelled_out(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"latin-\xe9")
    write_tree(root, {"plain.py": "import json"})
    file = tmp_path / "record.json"
    done = importaudit("--json", file, "--code", "import plain", cwd=tmp_path, PYTHONPATH=str(root))
    record = records.read(file)

    assert (done.code, record.failure) == (0, None)
    origins = {event.module: event.origin for event in record.processes[0].events}
    assert origins["plain"] == f"{tmp_path}/latin-\\udce9/plain.py"
    assert record.environment.variables["PYTHONPATH"] == f"{tmp_path}/latin-\\udce9"
    assert r"latin-\udce9" in done.out


def test_a_module_name_that_is_no_unicode(root: Path) -> None:
    code = "import importlib, sys, types\nsys.modules['\\udcff'] = types.ModuleType('x')\n"
    code += "importlib.import_module('\\udcff')\n"
    code += "try: importlib.import_module('a\\udcffb')\nexcept ImportError: pass"
    record = passed(audit("--code", code, cwd=root))

    assert r"\udcff" in record.processes[0].by_hand
    assert r"a\udcffb" in {event.module for event in record.processes[0].events}


# --- interpreters ------------------------------------------------------------------------


@pytest.fixture
def link_venv(tmp_path: Path) -> Path:
    folder = tmp_path / "venv"
    venv.create(folder, symlinks=True, with_pip=False)
    return folder


def test_an_interpreter_that_does_not_exist(root: Path) -> None:
    said = refused(audit("--python", "/nowhere/python", "json", cwd=root))

    assert "no interpreter at /nowhere/python" in said
    assert "next: " in said


def test_a_name_that_is_nowhere_on_path(root: Path) -> None:
    assert "python9.99" in refused(audit("--python", "python9.99", "json", cwd=root))


def test_a_folder_without_an_interpreter(root: Path) -> None:
    assert f"{root}/bin/python" in refused(audit("--python", root, "json", cwd=root))


def test_a_file_that_is_not_executable(root: Path) -> None:
    write_tree(root, {"python": "#!/bin/sh\n"})
    said = refused(audit("--python", "./python", "json", cwd=root))

    assert f"{root}/python is not executable" in said


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("this is text\n", "Exec format error"),
        ("#!/bin/true\n", "is not a working Python"),
        ("#!/bin/sh\necho importaudit 3 x cpython\n", "is not a working Python"),
        ("#!/bin/sh\necho it broke >&2; exit 1\n", "is not a working Python: it broke"),
        ("#!/bin/sh\necho importaudit 3 11 pypy\n", "is pypy; the probe needs CPython"),
        ("#!/bin/sh\necho importaudit 3 9 cpython\n", "is Python 3.9; the probe needs 3.10"),
        ("#!/nowhere/sh\n", "No such file or directory"),
    ],
)
def test_a_program_that_is_no_python_we_know(root: Path, content: str, reason: str) -> None:
    write_tree(root, {"python": content})
    (root / "python").chmod(0o755)
    said = refused(audit("--python", "./python", "json", cwd=root))

    assert f"{root}/python" in said
    assert reason in said


@pytest.mark.parametrize("version", ["2.7", "3.8", "3.9"])
def test_an_interpreter_that_is_too_old(root: Path, version: str) -> None:
    kept = Path.home() / ".pyenv/versions"
    found = sorted(kept.glob(f"{version}.*/bin/python"))
    if not found:
        pytest.skip(f"no CPython {version} under {kept}")
    said = refused(audit("--python", found[0], "json", cwd=root))

    assert f"{found[0]} is Python {version}; the probe needs 3.10 or newer" in said


@pytest.mark.parametrize("form", ["folder", "link", "relative"])
def test_a_virtual_environment_of_links_stays_itself(link_venv: Path, form: str) -> None:
    root = link_venv.parent
    python = {"folder": link_venv, "link": link_venv / "bin/python", "relative": Path("venv")}
    record = passed(audit("--python", python[form], "json", cwd=root))

    assert record.interpreter.prefix == str(link_venv)
    assert record.interpreter.executable == str(link_venv / "bin/python")
    assert record.interpreter.base_prefix == sys.base_prefix


def test_the_active_virtual_environment_is_the_default(link_venv: Path, root: Path) -> None:
    record = passed(audit("json", cwd=root, VIRTUAL_ENV=str(link_venv)))
    assert record.interpreter.prefix == str(link_venv)

    record = passed(audit("json", cwd=root, VIRTUAL_ENV=""))
    assert record.interpreter.prefix == sys.prefix


def test_an_interpreter_that_dies_before_the_probe_begins(link_venv: Path, root: Path) -> None:
    (packages,) = link_venv.glob("lib/python*/site-packages")
    (packages / "sitecustomize.py").write_text("import os; os._exit(7)\n")
    done = audit("--python", link_venv, "json", cwd=root)
    failure = failed(done)

    assert failure.kind == "vanished"
    assert failure.message.startswith("nothing was recorded (exit status 7)")


# --- records and results -----------------------------------------------------------------


def test_a_record_that_cannot_be_shown(root: Path) -> None:
    write_tree(root, {"text.json": "hello", "other.json": "{}"})
    records.write(tiny(), root / "newer.json")
    newer = (root / "newer.json").read_text()
    (root / "newer.json").write_text(newer.replace(f'"version":{VERSION}', '"version":99', 1))
    expected = {
        "missing.json": "cannot read missing.json: No such file or directory",
        ".": "cannot read .: Is a directory",
        "text.json": "text.json is not a Record",
        "other.json": "other.json is not a Record: its format is not 'importaudit-record'",
        "newer.json": f"newer.json has Record version 99; this importaudit reads {VERSION}",
    }
    for name, problem in expected.items():
        assert problem in refused(importaudit("show", name, cwd=root))


def test_a_result_that_cannot_be_written_is_said_before_anything_runs(root: Path) -> None:
    marker = root / "ran"
    write_tree(root, {"marks.py": f"open({str(marker)!r}, 'w')\n"})

    assert "it is a folder" in refused(importaudit("--json", root, "marks", cwd=root))
    said = refused(importaudit("--json", "missing/record.json", "marks", cwd=root))
    assert "cannot write missing/record.json: no folder missing" in said
    assert not marker.exists()


def test_a_result_may_go_to_a_device(root: Path) -> None:
    done = importaudit("--runs", "1", "--json", "/dev/null", "json", cwd=root)

    assert done.code == 0
    assert Path("/dev/null").is_char_device()


@pytest.fixture(scope="session")
def in_namespace() -> list[str]:
    """The command that runs another one where it may mount file systems of its own."""
    command = ["unshare", "--mount", "--map-root-user"]
    try:
        subprocess.run(
            [*command, "mount", "-t", "tmpfs", "none", "/mnt"], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no mount namespaces here: {error}")
    return command


def with_disks(
    in_namespace: list[str], disks: dict[Path, str], *words: str | Path, cwd: Path
) -> tuple[Done, str]:
    """Run the command with each of DISKS (folder: options) mounted; and what is then in the first.

    The disks are gone when the command has ended.
    """
    for folder in disks:
        folder.mkdir(exist_ok=True)
    mounts = "".join(f"mount -t tmpfs -o {options} none {f}\n" for f, options in disks.items())
    listing = cwd.parent / "listing"
    script = (
        f'set -e\n{mounts}set +e\n"$@"\ncode=$?\nls -A {next(iter(disks))} >{listing}\nexit $code'
    )
    done = subprocess.run(
        [
            *in_namespace,
            "sh",
            "-c",
            script,
            "sh",
            OURS,
            "-m",
            "importaudit",
            "--runs",
            "1",
            "--states",
            "warm-as-shipped",
            *words,
        ],
        cwd=cwd,
        env=os.environ | {"TMPDIR": str(next(iter(disks)))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr), listing.read_text()


def test_a_full_disk_while_writing_the_record(in_namespace: list[str], root: Path) -> None:
    disk = root.parent / "disk"
    done, left = with_disks(
        in_namespace, {disk: "size=4k"}, "--json", disk / "record.json", "json", cwd=root
    )

    assert done.code == 1
    assert f"cannot write {disk}/record.json: No space left on device" in done.err
    assert "next: " in done.err
    assert "Traceback" not in done.err
    assert re.search(r"json\.decoder +\d", done.out)  # what was measured is not lost
    assert left == ""


def test_a_place_that_is_read_only(in_namespace: list[str], root: Path) -> None:
    disk = root.parent / "disk"
    done, left = with_disks(
        in_namespace, {disk: "ro"}, "--json", disk / "record.json", "json", cwd=root
    )

    assert done.code == 2
    assert f"cannot write {disk}/record.json" in done.err
    assert left == ""


@pytest.mark.parametrize("size", ["256k", "1536k"])
def test_a_trace_without_space_is_a_failure_and_never_a_small_import(
    in_namespace: list[str], root: Path, size: str
) -> None:
    disk = root.parent / "disk"
    code = "import json\n" + "".join(f"try: import {'m' * 200}{n}\nexcept ImportError: pass\n"
                                     for n in range(3000))  # fmt: skip
    write_tree(root, {"many.py": code})
    done, left = with_disks(
        in_namespace, {disk: f"size={size}", Path("/dev/shm"): "size=16k"}, "many", cwd=root
    )

    assert done.code == 3, done
    assert "Failed: " in done.out
    assert "no space for the trace" in " ".join(done.out.split())
    assert left == ""


def test_no_space_for_the_probe_itself(in_namespace: list[str], root: Path) -> None:
    disk = root.parent / "disk"
    disks = {disk: "size=16k", Path("/dev/shm"): "size=16k"}
    done, left = with_disks(in_namespace, disks, "json", cwd=root)

    assert (done.code, done.out) == (1, "")
    assert "no place for the probe's bytecode: No space left on device" in done.err
    assert "next: " in done.err
    assert left == ""


def test_nothing_is_left_behind(root: Path) -> None:
    place = root.parent / "place"
    place.mkdir()
    audit("--code", "import os; os.abort()", cwd=root, TMPDIR=str(place))

    assert list(root.iterdir()) == []
    assert list(place.iterdir()) == []
