"""The states, measured: bytecode complete, as shipped and none, in a page cache warm and cold."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest
from support.targets import write_tree
from support.trees import snapshot

from importaudit.analysis import states
from importaudit.measure import ground, launch
from importaudit.measure.audit import perform
from importaudit.measure.machine import HERE, Cached
from importaudit.plan import AS_SHIPPED, COLD, CONDITIONS, Condition, Plan, Target
from importaudit.probe import pagecache
from importaudit.record import Record
from importaudit.views.progress import Progress

MODULES = 20
FILES = {
    "shop/__init__.py": "from shop import " + ", ".join(f"m{n}" for n in range(MODULES)),
    **{f"shop/m{n}.py": "def f(): return 1\n" * 40 for n in range(MODULES)},
    "shop/data.txt": "x" * 50_000,
}
FILES["shop/m0.py"] += (
    "import os\nopen(os.path.join(os.path.dirname(__file__), 'data.txt')).close()\n"
)
ALL = MODULES + 1  # modules of the package


def measured(python: Path, root: Path, *conditions: Condition, runs: int = 1) -> Record:
    plan = Plan(python, Target(("shop",)), runs, timeout=60, states=conditions or None)
    with chdir(root):
        record = perform(plan, Progress(quiet=True))
    assert record.failure is None
    return record


def rows(record: Record) -> dict[str, states.Row]:
    return {row.state.name: row for row in states.rows(record)}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A package without bytecode."""
    return write_tree(tmp_path / "site", FILES)


@pytest.fixture
def baked(target_python: Path, shop: Path) -> Path:
    """The same with the bytecode of the target's interpreter."""
    code = "import compileall, sys; sys.exit(not compileall.compile_dir('shop', quiet=2))"
    subprocess.run([target_python, "-c", code], cwd=shop, check=True)
    return shop


def ours_compiled(record: Record) -> dict[str, int]:
    """How many modules of the package each state compiled, by its runs' own count.

    The standard library of an interpreter may have bytecode or not: what the complete state
    compiled of that is nothing, and so is the difference.
    """
    return {name: row.compiled for name, row in rows(record).items()}


def test_bytecode_complete_is_all_loaded_and_none_is_all_compiled(
    target_python: Path, baked: Path
) -> None:
    record = measured(target_python, baked, *CONDITIONS)
    compiled = ours_compiled(record)

    assert compiled["warm-complete"] == compiled["cold-complete"] == 0
    assert compiled["warm-none"] == compiled["cold-none"] >= ALL
    assert compiled["warm-as-shipped"] == compiled["cold-as-shipped"]
    assert compiled["warm-as-shipped"] <= compiled["warm-none"] - ALL
    cpu = {name: row.cpu.median for name, row in rows(record).items()}
    assert cpu["warm-none"] > cpu["warm-complete"]


def test_as_shipped_without_bytecode_is_compiled_each_time(target_python: Path, shop: Path) -> None:
    record = measured(target_python, shop, AS_SHIPPED, Condition("warm", "complete"), runs=2)

    assert [run.compiled >= ALL for run in record.runs if run.state == "warm-as-shipped"] == [
        True
    ] * 2
    assert rows(record)["warm-complete"].compiled == 0


def test_nobody_named_states_and_those_that_tell_something_are_measured(
    target_python: Path, shop: Path
) -> None:
    without = [state.name for state in measured(target_python, shop).states]

    assert "warm-complete" in without
    assert {"warm-as-shipped", "cold-as-shipped", "warm-as-shipped-no-gc"} <= set(without)


def test_the_audited_tree_and_the_temporary_folder_stay_as_they_are(
    target_python: Path, baked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = snapshot(baked)
    measured(target_python, baked, *CONDITIONS)

    assert snapshot(baked) == before
    assert list(scratch.iterdir()) == []


def test_the_interpreters_own_prefix_is_what_is_shipped(
    target_python: Path, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path / "cache"
    subprocess.run(
        [target_python, "-c", "import shop"],
        cwd=shop,
        check=True,
        env={"PYTHONPYCACHEPREFIX": str(prefix)},
    )
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(prefix))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    record = measured(target_python, shop, AS_SHIPPED, Condition("warm", "none"))

    assert rows(record)["warm-as-shipped"].compiled == 0
    assert rows(record)["warm-none"].compiled >= ALL


def test_a_cold_run_starts_without_the_files_that_the_chain_opens(
    target_python: Path, baked: Path
) -> None:
    record = measured(target_python, baked, AS_SHIPPED, COLD, runs=2)
    warm, cold = (state for state in record.states)

    # Another test may evict the same interpreter's files at the same moment; and what somebody
    # has mapped (the interpreter, if it is theirs) stays.
    assert cold.resident < warm.resident <= warm.bytes
    assert warm.lower_bound == ""
    assert (cold.files, cold.bytes) == (warm.files, warm.bytes)


def test_the_files_of_the_chain_are_known(target_python: Path, baked: Path) -> None:
    plan = Plan(target_python, Target(("shop",)), 1, timeout=60)
    with chdir(baked):
        detail = launch.run(plan.python, plan.target, detail=True)
        found = ground.files_of(detail)

    package = {str(path) for path in (baked / "shop").rglob("*") if path.is_file()}
    assert package <= found  # sources, bytecode, and the file that a body opens
    assert any("encodings" in path for path in found)  # from before the probe
    assert any(".so" in path for path in found)  # mapped


@pytest.mark.parametrize("machine", [True, False], ids=["virtual machine", "no virtual machine"])
def test_a_cold_run_that_may_not_be_one_is_a_lower_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: bool
) -> None:
    monkeypatch.setattr(pagecache, "virtual_machine", lambda: machine)
    plan = Plan(Path("python"), Target(("m",)))
    basis = ground.Ground(plan, HERE, set(), str(tmp_path), str(tmp_path))
    basis.found[COLD.name] = [Cached(2, 1000, 5), Cached(2, 1000, 300)]
    said = basis.lower_bound(COLD)

    assert "30% of the files' bytes stayed in the page cache" in said
    assert ("a virtual machine" in said) == machine
    assert basis.lower_bound(AS_SHIPPED) == ""
    basis.found[COLD.name] = [Cached(2, 1000, 5)]
    assert ("stayed" in basis.lower_bound(COLD)) is False


def test_no_collections_with_gc_paused(target_python: Path, shop: Path) -> None:
    (shop / "shop/m1.py").write_text("import gc\nx = [[i] for i in range(50_000)]\n")
    paused = replace(AS_SHIPPED, pause_gc=True)
    record = measured(target_python, shop, paused)

    assert record.processes[0].collections == [0, 0, 0]
    assert "gc" not in record.runs[record.representative].rows
    assert measured(target_python, shop, AS_SHIPPED).processes[0].collections[0] > 0


def test_what_fails_without_bytecode_only_is_a_failure_of_that_state(
    target_python: Path, shop: Path
) -> None:
    # It is there as bytecode, and its source no longer compiles.
    (shop / "shop/m1.py").write_text("ok = 1\n")
    command = "-m compileall -q --invalidation-mode unchecked-hash shop/m1.py"
    subprocess.run([target_python, *command.split()], cwd=shop, check=True)
    (shop / "shop/m1.py").write_text("no Python (\n")
    plan = Plan(target_python, Target(("shop",)), 1, 60, (AS_SHIPPED, Condition("warm", "none")))
    with chdir(shop):
        record = perform(plan, Progress(quiet=True))

    assert record.failure is not None
    assert "SyntaxError" in record.failure.message
    assert record.runs[record.representative].state == "warm-none"
    assert [run.exit for run in record.runs] == [0, 0, 1]
