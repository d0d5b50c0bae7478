"""What is said of a target that did not come to its end, from the events it left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.targets import write_tree

from importaudit.analysis import failures
from importaudit.record import Event, Failure


def event(number: int, parent: int, module: str, outcome: str = "loaded", **more: Any) -> Event:
    return Event(number, parent, module, start=number, outcome=outcome, line=number, **more)


def diagnose(*events: Event, **more: Any) -> Failure | None:
    facts: dict[str, Any] = {
        "exit_status": 0, "timed_out": False, "timeout": None, "finished": True, "stderr": "",
        "path": [], "wanted": [],
    }  # fmt: skip
    return failures.diagnose(events, **(facts | more))


def chain(failure: Failure | None) -> list[str]:
    assert failure is not None
    return [link.module for link in failure.chain]


def test_an_end_is_no_failure() -> None:
    assert diagnose(event(0, -1, "__main__"), event(1, 0, "m", "failed", error="E")) is None


def test_the_chain_follows_the_exception_and_not_the_failures_that_were_caught() -> None:
    failure = diagnose(
        event(0, -1, "__main__", "failed", error="ImportError", message="no"),
        event(1, 0, "caught", "failed", error="ImportError"),
        event(2, 1, "below_caught", "failed", error="ImportError"),
        event(3, 0, "top", "failed", error="ImportError"),
        event(4, 3, "optional", "failed", error="ImportError"),
        event(5, 3, "bottom", "failed", error="ImportError"),
        event(6, 3, "fine"),
        exit_status=1,
    )

    assert chain(failure) == ["top"]  # "bottom" was caught, for "fine" came after it
    assert failure is not None
    assert failure.message == "ImportError: no, while importing top"


def test_an_exception_that_became_another_one_ends_the_chain() -> None:
    failure = diagnose(
        event(0, -1, "__main__", "failed", error="RuntimeError", message="wrapped"),
        event(1, 0, "top", "failed", error="RuntimeError"),
        event(2, 1, "bottom", "failed", error="ImportError"),
        exit_status=1,
    )

    assert chain(failure) == ["top"]


def test_the_open_imports_of_the_main_thread_come_before_those_of_others() -> None:
    failure = diagnose(
        event(0, -1, "__main__", "running"),
        event(1, 0, "top", "running"),
        event(2, 0, "other", "running", thread=77),
        timed_out=True,
        timeout=2.5,
        finished=False,
    )

    assert chain(failure) == ["top"]
    assert failure is not None
    assert failure.message == (
        "the target had not finished after 2.5 s, while importing top;"
        " other threads were importing other"
    )


def test_a_timeout_says_more_than_the_signal_that_ended_it() -> None:
    failure = diagnose(event(0, -1, "__main__", "running"), exit_status=-9, timed_out=True,
                       timeout=1.0, finished=False)  # fmt: skip

    assert failure is not None
    assert failure.kind == "timeout"


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (11, "SIGSEGV (segmentation fault)"),
        (6, "SIGABRT (aborted)"),
        (9, "SIGKILL (killed)"),
        (40, "signal 40"),
    ],
)
def test_a_signal_has_its_name(number: int, name: str) -> None:
    assert failures.signal_name(number) == name


def test_near_matches_are_what_lies_beside_the_missing_module(tmp_path: Path) -> None:
    one = write_tree(
        tmp_path / "one",
        {
            "package/__init__.py": "",
            "package/launcher.py": "",
            "package/launched.cpython-311-x86_64-linux-gnu.so": "",
            "package/launch-er.py": "",
            "package/launcher.txt": "",
            "launcher_elsewhere.py": "",
        },
    )
    two = write_tree(tmp_path / "two", {"package/launches/x.txt": ""})

    found = failures.near_matches("package.launchr", [str(one), str(two), "/nowhere"])
    assert sorted(found) == ["package.launched", "package.launcher", "package.launches"]
    assert failures.near_matches("package.entirely", [str(one)]) == []
    assert failures.near_matches("jsom", []) == ["json"]


def test_only_the_modules_that_were_asked_for_can_be_misspelt(tmp_path: Path) -> None:
    write_tree(tmp_path, {"needed.py": ""})
    events = (
        event(0, -1, "__main__", "failed", error="ModuleNotFoundError", message="no"),
        event(1, 0, "neded", "failed", error="ModuleNotFoundError"),
    )
    asked = diagnose(*events, exit_status=1, path=[str(tmp_path)], wanted=["neded.sub"])
    other = diagnose(*events, exit_status=1, path=[str(tmp_path)], wanted=["another"])

    assert asked is not None
    assert other is not None
    assert asked.hint == "did you mean needed?"
    assert "needed" not in other.hint
