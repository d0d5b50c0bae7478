"""Cold, warm and the missing bytecode, on the real sglang. Structure and ratios only."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from importaudit.analysis import states
from importaudit.measure import audit, launch
from importaudit.measure.bytecode import judge
from importaudit.measure.facts import ask_facts
from importaudit.plan import COLD, Condition, Plan, Target
from importaudit.record import Record, Verdict
from importaudit.views.progress import Progress

SERVER = "sglang.multimodal_gen.runtime.launch_server"
CONDITIONS = (Condition("warm", "complete"), Condition("warm", "none"), COLD)


@cache
def audited(python: Path) -> Record:
    """One run a state: about three minutes."""
    plan = Plan(python, Target((SERVER,)), 1, states=CONDITIONS)
    return audit.perform(plan, Progress(quiet=True))


@pytest.fixture
def rows(sglang_python: Path) -> dict[str, states.Row]:
    record = audited(sglang_python)
    assert record.failure is None
    return {row.state.name: row for row in states.rows(record)}


def test_without_bytecode_it_takes_half_as_much_cpu_again(rows: dict[str, states.Row]) -> None:
    none, complete = rows["warm-none"], rows["warm-complete"]

    assert (complete.compiled, none.compiled > 5000) == (0, True)
    assert none.cpu.median >= 1.5 * complete.cpu.median


def test_the_cold_row_says_how_much_was_evicted(rows: dict[str, states.Row]) -> None:
    cold = rows["cold-as-shipped"]

    assert cold.state.files > 6000
    assert 0 <= cold.state.resident < cold.state.bytes / 2
    assert cold.disk > 100_000_000
    assert cold.faults > 100


def test_the_stack_adds_up_and_most_of_it_is_somebodys(sglang_python: Path) -> None:
    record = audited(sglang_python)
    found = states.stack(record)

    assert found is not None
    assert sum(part.wall for part in found.parts) == found.wall
    disk = next(part for part in found.parts if part.name == "waiting for the disk")
    assert disk.wall > 0
    assert sum(disk.distributions.values()) > disk.wall / 2


SPOILT = 7  # every so many files of bytecode, in three ways


def spoil(prefix: Path) -> int:
    """Make bytecode below PREFIX unusable here and there; returns how many files of it."""
    chosen = sorted(prefix.rglob("*.pyc"))[::SPOILT]
    for number, path in enumerate(chosen):
        data = path.read_bytes()
        if number % 3 == 0:
            path.unlink()
        elif number % 3 == 1:
            path.write_bytes(b"\0\0" + data[2:])  # no magic number
        else:
            path.write_bytes(data[:8] + b"\1\0\0\0" + data[12:])  # of another time
    return len(chosen)


def test_the_verdicts_are_what_the_interpreter_then_does(
    sglang_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "prefix"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    target = Target((SERVER,))
    launch.run(sglang_python, target, environment=os.environ, write_bytecode=True)
    spoilt = spoil(tmp_path / "prefix")
    finished = launch.run(sglang_python, target, environment=os.environ)

    loaded = [
        event
        for event in finished.main.events.values()
        if event.outcome == "loaded" and event.loader == "SourceFileLoader"
    ]
    # What a body loads by hand (transformers loads itself twice) is read and compiled on account
    # of that body, before anybody knows what it is.
    by_hand = [event for event in loaded if "read" not in event.phases]
    around = {event.parent for event in by_hand}
    assert len(by_hand) < 10
    loaded = [event for event in loaded if event not in by_hand and event.number not in around]
    judged = {
        one.source: one for one in judge([e.origin for e in loaded], ask_facts(sglang_python))
    }
    assert len(judged) > 5000
    wrong = [
        (event.name, judged[event.origin])
        for event in loaded
        if (event.costs.compiled > 0) != (judged[event.origin].verdict is not Verdict.LOADABLE)
    ]
    assert wrong == []
    found = dict.fromkeys(Verdict, 0)
    for one in judged.values():
        found[one.verdict] += 1
    assert sum(found.values()) - found[Verdict.LOADABLE] > spoilt / 2
    assert min(found[v] for v in (Verdict.MISSING, Verdict.WRONG_MAGIC, Verdict.STALE)) > 100
