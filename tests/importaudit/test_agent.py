"""The guest that works inside containers, here at the other end of two pipes: same answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from importaudit.errors import AuditError
from importaudit.files import LOCAL
from importaudit.measure import launch
from importaudit.measure.bytecode import judge
from importaudit.measure.facts import ask_facts, owners_of
from importaudit.measure.inside import Agent, Inside
from importaudit.measure.machine import HERE, PROBE
from importaudit.plan import Target

OURS = Path(sys.executable)


class Pipes:
    """A channel to a process of our own."""

    def __init__(self, python: Path) -> None:
        self.process = subprocess.Popen(
            [python, "-I", "-S", "-B", PROBE / "agent.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self, size: int) -> bytes:
        assert self.process.stdout is not None
        found = self.process.stdout.read(size)
        if len(found) < size:
            raise AuditError("the agent has ended")
        return found


@pytest.fixture
def inside(target_python: Path, tmp_path: Path) -> Iterator[Inside]:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "disk").mkdir()
    pipes = Pipes(target_python)
    yield Inside(Agent(pipes), None, None, str(PROBE), str(tmp_path))
    assert pipes.process.stdin is not None
    assert pipes.process.stdout is not None
    pipes.process.stdin.close()
    assert pipes.process.wait(10) == 0  # with its host, it goes
    pipes.process.stdout.close()


def test_a_target_is_run_and_traced(inside: Inside, target_python: Path) -> None:
    found = launch.run(target_python, Target(("json",)), machine=inside)

    assert (found.status, found.timed_out, found.main.closed is not None) == (0, False, True)
    assert "json.decoder" in {event.name for event in found.main.events.values()}
    assert found.exited > found.spawned
    assert inside.files.names(inside.memory) != []  # the probe's bytecode; the trace has gone


def test_a_target_that_hangs_is_ended(inside: Inside, target_python: Path) -> None:
    code = Target(code="import time; time.sleep(60)")
    found = launch.run(target_python, code, machine=inside, timeout=0.5)

    assert (found.timed_out, found.status) == (True, -9)


def test_files_look_the_same(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "caf\udce9.txt").write_bytes(b"\xff\0")
    (tmp_path / "gone").symlink_to("nowhere")
    afar = inside.files

    for path in (str(tmp_path), "/"):
        assert sorted(afar.names(path)) == sorted(LOCAL.names(path))
        assert {e.name: (e.is_dir(), e.is_symlink()) for e in afar.scan(path)} == {
            e.name: (e.is_dir(), e.is_symlink()) for e in LOCAL.scan(path)
        }
    assert afar.read(f"{tmp_path}/caf\udce9.txt") == b"\xff\0"
    assert afar.stat(f"{tmp_path}/caf\udce9.txt").st_size == 2
    for missing in ("gone", "missing"):
        with pytest.raises(FileNotFoundError):
            afar.stat(f"{tmp_path}/{missing}")


def test_bytecode_and_distributions_are_judged_alike(inside: Inside) -> None:
    facts = ask_facts(OURS)
    sources = sorted(map(str, Path(facts.prefix).rglob("site-packages/pytest/*.py")))

    assert sources
    assert judge(sources, facts, inside) == judge(sources, facts)
    there, here = owners_of(facts, inside.files), owners_of(facts)
    assert [there.of_file(s) for s in sources] == [here.of_file(s) for s in sources]


def test_the_page_cache_is_that_of_the_machine(inside: Inside) -> None:
    assert inside.cached([str(PROBE / "agent.py")]) == HERE.cached([str(PROBE / "agent.py")])


def test_what_fails_there_fails_here(inside: Inside) -> None:
    with pytest.raises(FileNotFoundError):
        inside.files.read("/nowhere/at/all")
    with pytest.raises(AuditError, match="KeyError"):
        inside.agent.call("no-such-function")
