"""An audit from end to end: its runs, and the Record that they make."""

from __future__ import annotations

import sys
from contextlib import chdir
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pytest
from support.targets import write_tree

from importaudit import record as records
from importaudit.analysis import costs
from importaudit.errors import InterpreterError
from importaudit.files import LOCAL
from importaudit.measure.assemble import source_line
from importaudit.measure.audit import perform
from importaudit.measure.machine import HERE
from importaudit.plan import Plan, Schedule, Target
from importaudit.probe import lookup
from importaudit.probe.lookup import file_system
from importaudit.record import Record, Run

OURS = Path(sys.executable)

FILES = {
    "lazy/__init__.py": """\
        import click
        from lazy import spins, sibling

        def __getattr__(name):
            if name == "heavy":
                import lazy.heavy
                return lazy.heavy
            raise AttributeError(name)
        """,
    "lazy/sibling.py": "import click\nimport colorsys\n",
    "lazy/spins.py": """\
        import time
        began = time.perf_counter()

        while time.perf_counter() - began < 0.25: pass
        """,
    "lazy/heavy.py": """\
        import lazy.heavier
        import time
        time.sleep(0.2)
        """,
    "lazy/heavier.py": "",
}


@dataclass
class Heard:
    """A listener that keeps what it is told."""

    told: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def began(self, plan: Plan) -> None:
        self.told.append(f"began {plan.target.text}")

    def planned(self, schedule: Schedule) -> None:
        names = [condition.name for condition in schedule.conditions]
        self.told.append(f"planned {schedule.runs} of {' '.join(names)}")

    def started(self, label: str, number: int, of: int) -> None:
        self.told.append(f"started {label} {number}/{of}")

    def ended(self, run: Run) -> None:
        self.told.append(f"ended {run.state or run.kind}")
        self.runs.append(run)

    def interrupted(self) -> None:
        """Not in these tests."""


def audit(root: Path, target: Target, runs: int) -> tuple[Record, Heard]:
    heard = Heard()
    with chdir(root):
        return perform(Plan(OURS, target, runs, timeout=60), heard), heard


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, Heard]:
    root = write_tree(tmp_path_factory.mktemp("audit"), FILES)
    return audit(root, Target(modules=("lazy",)), runs=3)


@pytest.fixture(scope="module")
def record(done: tuple[Record, Heard]) -> Record:
    return done[0]


def test_the_plan_is_told_before_anything_runs(done: tuple[Record, Heard]) -> None:
    assert done[1].told == [
        "began lazy",
        "started detail 1/1",
        "ended detail",
        "planned 3 of warm-as-shipped",
        *[
            text
            for n in (1, 2, 3)
            for text in (f"started warm-as-shipped {n}/3", "ended warm-as-shipped")
        ],
        "started first-use 1/1",
        "ended first-use",
    ]


def test_the_runs_are_those_that_were_told(done: tuple[Record, Heard]) -> None:
    record, heard = done

    assert record.runs == heard.runs[:4]
    assert [run.exit for run in record.runs] == [0] * 4


def test_the_representative_run_is_the_one_of_median_wall_time(record: Record) -> None:
    timed = [run.wall for run in record.runs if run.kind == "timing"]

    assert sorted(timed)[1] == record.runs[record.representative].wall
    # Its events are the ones kept: the rows of its main thread are sums over them.
    events = record.processes[0].events
    for phase in ("find", "read", "body", "gc"):
        total = sum(e.phases[phase].wall for e in events if not e.thread and phase in e.phases)
        assert record.runs[record.representative].rows.get(phase, records.NOTHING).wall == total


@pytest.mark.parametrize("runs", [1, 2, 4])
def test_of_an_even_number_of_runs_it_is_the_faster_middle_one(tmp_path: Path, runs: int) -> None:
    write_tree(tmp_path, {"plain.py": ""})
    record, _ = audit(tmp_path, Target(modules=("plain",)), runs)
    walls = [run.wall for run in record.runs if run.kind == "timing"]
    chosen = record.runs[record.representative]

    assert len(walls) == runs
    assert (chosen.kind, chosen.wall) == ("timing", sorted(walls)[(runs - 1) // 2])


def test_every_run_sums_up_to_its_wall_and_cpu_time(record: Record) -> None:
    for run in record.runs:
        assert sum(cost.wall for cost in run.rows.values()) == run.wall
        assert sum(c.cpu for c in run.rows.values()) + sum(run.apart.values()) == run.cpu


def test_every_module_has_its_spread_over_the_runs(record: Record) -> None:
    own: dict[str, int] = {}
    for event in record.processes[0].events:
        own[event.module] = own.get(event.module, 0) + event.own.wall

    assert set(record.spreads) == set(own)
    for module, spread in record.spreads.items():
        median, least, most = spread.wall
        assert least <= median <= most
        assert least <= own[module] <= most
    assert record.spreads["lazy.spins"].wall[1] / 1e9 >= 0.25


def test_first_use_of_a_lazy_package_is_measured(record: Record) -> None:
    found = record.first_use

    assert found is not None
    assert (found.known, found.failed) == (["lazy.heavy"], [])
    assert found.modules == 2  # with lazy.heavier, which it imports
    assert found.wall > 0.1e9
    assert not any(event.module == "lazy.heavy" for event in record.processes[0].events)


def test_the_hottest_line_is_the_one_that_spins(record: Record) -> None:
    line = max(record.lines, key=lambda line: line.sampled)

    assert (line.module, line.line) == ("lazy.spins", 4)
    assert line.source == "while time.perf_counter() - began < 0.25: pass"
    assert Path(line.file).name == "spins.py"
    assert 0.1 < line.sampled / 1e9 < 1


def test_modules_are_grouped_by_the_distribution_that_installed_them(record: Record) -> None:
    groups = {module: name for name, modules in record.distributions.items() for module in modules}

    assert groups["click"] == groups["click.core"] == f"click {version('click')}"
    assert groups["colorsys"] == "(standard library)"
    assert groups["lazy.spins"] == "(no distribution)"
    assert groups["__main__"] == "(the command itself)"
    assert set(groups) >= {event.module for event in record.processes[0].events}


def test_the_edge_to_a_module_that_was_loaded_already_counts(record: Record) -> None:
    edges = {edge.module: edge for edge in record.edges["lazy.sibling"]}
    rows = {row.name: row for row in costs.by_module(record, costs.graph_of(record))}

    assert set(edges) == {"click", "colorsys"}
    assert edges["click"].line == 1
    # "lazy" and "lazy.sibling" import it; only the whole package takes it away.
    assert rows["lazy.sibling"].exclusive < rows["click"].exclusive < rows["lazy"].exclusive


def test_the_environment_is_noted(record: Record) -> None:
    assert record.interpreter.executable == str(OURS)
    assert record.interpreter.version == sys.version
    assert record.interpreter.prefix == sys.prefix
    assert record.environment.processors >= 1
    assert record.environment.file_system not in ("", "unknown")
    assert record.notes == [] or all("scheduler" in note for note in record.notes)


def test_a_record_of_an_audit_survives_being_written(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    records.write(record, path)

    assert records.read(path) == record


def test_a_target_that_fails_ends_the_audit_and_keeps_what_was_seen(tmp_path: Path) -> None:
    write_tree(tmp_path, {"fails.py": "import colorsys\n1 / 0\n"})
    record, heard = audit(tmp_path, Target(modules=("fails",)), runs=3)

    assert heard.told == ["began fails", "started detail 1/1", "ended detail"]
    assert record.failure is not None
    assert (len(record.runs), record.first_use) == (1, None)
    assert "colorsys" in {event.module for event in record.processes[0].events}


def test_a_target_that_fails_in_a_later_run_shows_that_run(tmp_path: Path) -> None:
    code = "import os\nif os.path.exists('second'): raise ValueError('again')\n"
    write_tree(tmp_path, {"once.py": f"{code}open('second', 'w').close()\n"})
    record, _ = audit(tmp_path, Target(modules=("once",)), runs=3)

    assert record.failure is not None
    assert record.failure.message == "ValueError: again, while importing once"
    assert [(run.kind, run.exit) for run in record.runs] == [("detail", 0), ("timing", 1)]
    assert record.representative == 1
    assert record.edges["__main__"][0].module == "once"


def test_first_use_that_fails_is_told_from_first_use_that_works(tmp_path: Path) -> None:
    write_tree(tmp_path, {
        "lazy/__init__.py": "def __getattr__(name):\n    import lazy.good, lazy.bad\n",
        "lazy/good.py": "",
        "lazy/bad.py": "import absent_dependency\n",
    })  # fmt: skip
    record, _ = audit(tmp_path, Target(modules=("lazy",)), runs=1)

    assert record.first_use is not None
    assert record.first_use.known == ["lazy.bad", "lazy.good"]
    assert record.first_use.failed == ["lazy.bad"]


def test_first_use_that_ends_the_process_gives_no_figures(tmp_path: Path) -> None:
    write_tree(tmp_path, {
        "lazy/__init__.py": "def __getattr__(name):\n    import lazy.bad\n",
        "lazy/bad.py": "import os\nos._exit(0)\n",
    })  # fmt: skip
    record, _ = audit(tmp_path, Target(modules=("lazy",)), runs=1)

    assert record.failure is None  # the target itself is fine
    assert record.first_use is not None
    assert (record.first_use.failed, record.first_use.wall) == (["lazy.bad"], 0)


def test_a_thread_that_is_still_importing_is_noted(tmp_path: Path) -> None:
    write_tree(tmp_path, {
        "starts.py": "import threading, time\n"
        "threading.Thread(target=lambda: __import__('slow'), daemon=True).start()\n"
        "time.sleep(0.2)\n",
        "slow.py": "import time\ntime.sleep(60)\n",
    })  # fmt: skip
    record, _ = audit(tmp_path, Target(modules=("starts",)), runs=1)

    assert record.failure is None
    assert "a thread was still importing when the main thread was done" in record.notes
    assert {e.module: e.outcome for e in record.processes[0].events}["slow"] == "running"


def test_no_interpreter_no_audit(tmp_path: Path) -> None:
    heard = Heard()
    with pytest.raises(InterpreterError):
        perform(Plan(tmp_path / "python", Target(modules=("json",))), heard)

    assert heard.told == []


def test_the_file_system_of_a_folder() -> None:
    mounts = lookup.mounts(HERE.place().mounts)

    assert file_system("/proc/self", mounts) == "proc"
    assert file_system("/nowhere/at/all", mounts) == file_system("/", mounts)
    assert file_system("/", []) == "unknown"


def test_the_source_line_of_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"one\n  caf\xe9  \n")

    assert source_line(str(path), 2, LOCAL) == "caf\ufffd"
    assert source_line(str(path), 9, LOCAL) == source_line(str(path), 0, LOCAL) == ""
    assert source_line("<string>", 1, LOCAL) == source_line(str(tmp_path), 1, LOCAL) == ""
