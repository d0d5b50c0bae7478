"""The sentence that must work: `importaudit sglang.multimodal_gen`, on the real sglang.

Structure and ratios only: seconds depend on the machine.
"""

import subprocess
import sysconfig
from collections import defaultdict
from functools import cache
from pathlib import Path

import msgspec
import pytest

from importaudit.analysis import costs
from importaudit.measure import audit
from importaudit.plan import Plan, Schedule, Target
from importaudit.record import Cost, Record, Run

BARE = "sglang.multimodal_gen"
SERVER = "sglang.multimodal_gen.runtime.launch_server"


class Quiet:
    """A listener that only keeps the runs."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def began(self, plan: Plan) -> None:
        """Nothing is shown in tests."""

    def planned(self, schedule: Schedule) -> None:
        """Nor here."""

    def started(self, label: str, number: int, of: int) -> None:
        """Nor here."""

    def ended(self, run: Run) -> None:
        self.runs.append(run)

    def interrupted(self) -> None:
        """Not in these tests."""


@cache
def audited(python: Path, module: str) -> Record:
    """One timing run and one detail run; each takes a quarter of a minute."""
    return audit.perform(Plan(python, Target(modules=(module,)), runs=1), Quiet())


@pytest.fixture(params=[BARE, SERVER])
def record(request: pytest.FixtureRequest, sglang_python: Path) -> Record:
    return audited(sglang_python, request.param)


@pytest.fixture
def bare(sglang_python: Path) -> Record:
    return audited(sglang_python, BARE)


@pytest.fixture
def server(sglang_python: Path) -> Record:
    return audited(sglang_python, SERVER)


def test_the_import_comes_to_its_end(record: Record) -> None:
    assert record.failure is None
    assert record.processes[0].finished
    assert record.notes == []


def test_at_least_99_percent_is_attributed(record: Record) -> None:
    run = record.runs[record.representative]

    assert sum((c.wall for c in run.rows.values()), 0) == run.wall
    assert abs(run.rows["unattributed"].wall) < run.wall / 100
    assert abs(run.rows["unattributed"].cpu) < run.cpu / 100


def test_no_time_is_negative(record: Record) -> None:
    for event in record.processes[0].events:
        assert event.wall >= 0, event
        for cost in event.phases.values():
            assert min(cost.wall, cost.cpu, cost.waiting) >= 0, event


def test_what_an_import_took_is_its_own_cells_and_its_children(record: Record) -> None:
    events = record.processes[0].events
    inside: dict[int, int] = defaultdict(int)
    for event in events:
        if event.number and event.thread == 0:
            inside[event.parent] += event.wall

    for event in events:
        if event.thread == 0:
            cells = sum(cost.wall for cost in event.phases.values())
            assert event.wall == cells + inside[event.number], event


def test_modules_loaded_through_import_module_are_seen(server: Record) -> None:
    # transformers loads its submodules that way, so `-X importtime` never shows them by name.
    loaded = {e.module for e in server.processes[0].events if e.outcome == "loaded"}

    assert {m for m in loaded if m.startswith("transformers.models.")}


def test_there_are_more_imports_than_importtime_has_rows(
    server: Record, sglang_python: Path
) -> None:
    command = [str(sglang_python), "-B", "-X", "importtime", "-c", f"import {SERVER}"]
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    printed = sum(line.startswith("import time:") for line in rows.splitlines()) - 1

    # Those of the interpreter's own start come before the probe.
    before = subprocess.run(
        [*command[:-1], "pass"], capture_output=True, text=True, check=True
    ).stderr.count("import time:")
    assert server.runs[0].imports > printed - before


def test_bodies_are_the_largest_row_and_nothing_is_compiled(server: Record) -> None:
    rows = server.runs[server.representative].rows
    largest = max(rows, key=lambda name: rows[name].wall)

    assert largest == "body"
    assert rows.get("compile", Cost()).wall < rows["unmarshal"].wall  # pip compiled it all
    assert rows["gc"].cpu > server.runs[server.representative].cpu / 20


def test_exclusive_costs_make_sense(record: Record) -> None:
    graph = costs.graph_of(record)
    rows = {row.name: row for row in costs.by_module(record, graph)}
    everything = sum(graph.costs[m] for m in graph.reached() if m in graph.costs)

    assert rows["sglang"].exclusive > 0.99 * (everything - graph.costs["__main__"])
    assert 0.1 * everything < rows["torch"].exclusive < everything
    for name, row in rows.items():
        # A module that the walk does not reach was imported by code without an edge to it.
        assert row.exclusive >= graph.costs[name] or name == "__main__", name


def test_every_module_of_the_run_is_reached_in_the_graph(record: Record) -> None:
    graph = costs.graph_of(record)
    loaded = {e.module for e in record.processes[0].events if e.outcome == "loaded"}

    assert loaded - graph.reached() == set()


def test_modules_are_assigned_to_distributions(record: Record) -> None:
    owner = {m: name for name, modules in record.distributions.items() for m in modules}

    assert owner["torch"].startswith("torch ")
    assert owner["sglang"].startswith("sglang ")
    assert owner["json"] == "(standard library)"
    unknown = record.distributions.get("(no distribution)", [])
    assert len(unknown) < len(owner) / 50, unknown


def test_the_bare_package_is_lazy_and_first_use_is_measured(bare: Record) -> None:
    assert bare.first_use is not None
    assert "sglang.multimodal_gen.configs.pipeline_configs" in bare.first_use.known
    assert bare.first_use.modules > 1000
    assert bare.first_use.failed == []


def test_the_record_is_small_enough_to_keep(server: Record) -> None:
    size = len(msgspec.json.encode(server))

    assert size * 10_000 / len(server.processes[0].events) < 10_000_000


def test_the_report_names_the_heavy_ones(server: Record, tmp_path: Path) -> None:
    from importaudit import record as records

    records.write(server, tmp_path / "server.json")
    script = Path(sysconfig.get_path("scripts"), "importaudit")
    report = subprocess.run(
        [script, "show", tmp_path / "server.json"], capture_output=True, text=True, check=True
    ).stdout

    assert "torch" in report
    assert "garbage collection" in report
