"""Where the time of an import goes: generated modules of known cost, in real interpreters."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import extension
from support.pipes import slow_pipe
from support.targets import Traced, assert_sound, trace, write_tree

from importaudit.analysis.graph import ImportGraph
from importaudit.measure import build
from importaudit.plan import Target
from importaudit.record import OWN_PHASES, Cost, Event

pytestmark = pytest.mark.xdist_group("phases")  # one package and one run for each interpreter

SECOND = 1_000_000_000
KNOWN = 0.3 * SECOND
# Phases in which the time of some module must lie; together they leave no large phase untested.
MODULES = {
    "sleeps": """
        import time
        time.sleep(0.3)
        """,
    "spins": """
        import time
        end = time.thread_time() + 0.3
        while time.thread_time() < end:
            pass
        """,
    "reads_pipe": """
        with open("slow.pipe", "rb") as pipe:
            pipe.read()
        """,
    "collects": """
        import gc
        import time
        gc.disable()
        heap = [[] for _ in range(4_000_000)]
        import collects_only
        heap.clear()
        """,
    "collects_only": """
        import gc
        import time
        began = time.thread_time_ns()
        gc.collect()
        print("collected", time.thread_time_ns() - began)
        """,
    "read_slowly": "value = 1\n",
    "compiled": "def unused():\n" + "".join(f"    x{n} = [{n}, a{n}.b]\n" for n in range(25_000)),
    # Holds on to its constants, whose end would be part of its body.
    "unmarshalled": "import sys\ncode = sys._getframe().f_code\n",
}

# Run by the target interpreter: bytecode that takes long to unmarshal, and some for the pipe.
PREPARE = """
import importlib._bootstrap_external as external
import os

def bytecode(name, constants):
    status = os.stat(name + ".py")
    code = compile(open(name + ".py").read(), os.path.abspath(name + ".py"), "exec")
    code = code.replace(co_consts=code.co_consts + constants)
    return external._code_to_timestamp_pyc(code, int(status.st_mtime), status.st_size)

def write(path, data):
    with open(path, "wb") as file:
        file.write(data)

os.mkdir("__pycache__")
table = tuple(range(2**30, 2**30 + 3_000_000))
write(external.cache_from_source("unmarshalled.py"), bytecode("unmarshalled", (table,)))
write("bytecode", bytecode("read_slowly", ()))
print(external.cache_from_source("read_slowly.py"))
"""


@pytest.fixture(scope="module")
def package(target_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    """One run that imports all of MODULES and an extension module that loads slowly."""
    root = tmp_path_factory.mktemp("phases")
    imports = "".join(f"import {name}\n" for name in ["slow_library", *MODULES])
    write_tree(root, {f"{name}.py": text for name, text in MODULES.items()})
    write_tree(root, {"all_of_them.py": imports})
    extension.build(target_python, root, "slow_library", dlopen=300, body=200)
    prepared = subprocess.run(
        [target_python, "-c", PREPARE], cwd=root, check=True, capture_output=True, text=True
    )
    code = (root / "bytecode").read_bytes()
    with (
        slow_pipe(root / "slow.pipe", b"late", 0.3),
        slow_pipe(root / prepared.stdout.strip(), code, 0.3),
    ):
        traced = trace(target_python, root, "all_of_them")
    assert traced.finished.status == 0, traced.finished.stderr
    return traced


def near(value: float) -> object:
    return pytest.approx(value, rel=0.1)


def others(event: Event, *phases: str) -> float:
    """Wall time of EVENT itself outside PHASES and collections."""
    return sum(c.wall for p, c in event.phases.items() if p not in (*phases, "gc", "probe"))


def test_a_sleep_is_blocked_time_of_the_body(package: Traced) -> None:
    event = package.event("sleeps")

    assert event.phases["body"].blocked == near(KNOWN)
    assert event.phases["body"].cpu < 0.1 * KNOWN
    assert others(event, "body") < 0.1 * KNOWN


def test_a_spin_is_processor_time_of_the_body(package: Traced) -> None:
    event = package.event("spins")

    assert event.phases["body"].cpu == near(KNOWN)
    assert event.phases["body"].blocked < 0.1 * KNOWN + package.stolen
    assert others(event, "body") < 0.1 * KNOWN


def test_a_body_that_reads_a_slow_pipe_is_blocked(package: Traced) -> None:
    event = package.event("reads_pipe")

    assert event.phases["body"].blocked == near(KNOWN)
    assert others(event, "body") < 0.1 * KNOWN


def test_reading_the_module_from_a_slow_pipe_is_blocked_time_of_reading(package: Traced) -> None:
    event = package.event("read_slowly")

    assert event.phases["read"].blocked == near(KNOWN)
    assert others(event, "read") < 0.1 * KNOWN


def test_a_collection_belongs_to_no_module(package: Traced) -> None:
    event = package.event("collects_only")
    took = int(package.finished.stdout.split()[1])

    assert took > 0.05 * SECOND  # else the heap is too small to prove anything
    assert event.phases["gc"].cpu == near(took)
    assert event.own.wall < 0.1 * took
    assert package.run.rows["gc"].cpu >= event.phases["gc"].cpu
    assert sum(package.process.collections) >= 1


def test_a_slow_library_is_loading_and_then_body(package: Traced) -> None:
    event = package.event("slow_library")

    assert event.phases["dlopen"].blocked == near(KNOWN)
    assert event.phases["body"].blocked == near(0.2 * SECOND)
    assert others(event, "dlopen", "body") < 0.1 * KNOWN


@pytest.mark.parametrize(
    ("module", "phase"), [("compiled", "compile"), ("unmarshalled", "unmarshal")]
)
def test_making_code_is_a_phase_of_its_own(package: Traced, module: str, phase: str) -> None:
    event = package.event(module)

    assert event.phases[phase].cpu > 0.03 * SECOND  # else too small to prove anything
    assert event.phases[phase].wall > 0.9 * event.own.wall


def test_a_row_is_the_sum_of_its_cells(package: Traced) -> None:
    for phase in OWN_PHASES:
        cells = [e.phases.get(phase, Cost()) for e in package.process.events]
        assert package.run.rows.get(phase, Cost()) == sum(cells, Cost())


def test_everything_adds_up(package: Traced) -> None:
    assert_sound(package)


def test_next_to_nothing_is_unattributed(package: Traced) -> None:
    left = package.run.rows["unattributed"].wall

    assert abs(left) < max(0.01 * package.run.wall, 5_000_000)


def test_processor_time_agrees_with_the_kernels(package: Traced) -> None:
    run = package.run

    assert sum(cost.cpu for cost in run.rows.values()) + sum(run.apart.values()) == run.cpu
    assert abs(run.rows["unattributed"].cpu) < max(0.01 * run.cpu, 5_000_000)


# --- what other tools get wrong ------------------------------------------------------------


def costs(traced: Traced) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for event in traced.process.events:
        found[event.module] = found.get(event.module, 0) + event.own.wall
    return found


def test_a_shared_dependency_is_nobodys_alone(target_python: Path, tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "app.py": "import a\nimport b\n",
            "a.py": "import heavy\n",
            "b.py": "import heavy\n",
            "heavy.py": "import time\ntime.sleep(0.5)\n",
        },
    )
    timing = trace(target_python, tmp_path, "app")
    detail = trace(target_python, tmp_path, "app", detail=True)
    own = costs(timing)
    edges = build.edges(detail.trace, own)
    graph = ImportGraph.build(own, [(a, edge.module) for a, to in edges.items() for edge in to])

    assert graph.exclusive_of({"a"}) < 0.05 * SECOND
    assert graph.exclusive_of({"b"}) < 0.05 * SECOND
    assert graph.exclusive_of({"a", "b"}) == near(0.5 * SECOND)
    assert graph.exclusive_of({"heavy"}) == near(0.5 * SECOND)


@pytest.mark.parametrize(
    "main",
    [
        """
        import importlib
        importlib.import_module("heavy")
        """,
        """
        import sys
        sys.stderr.write("loading...")
        import heavy
        print("import time:        10 |   9999999 | spoof", file=sys.stderr)
        """,
    ],
    ids=["import_module", "noise on stderr"],
)
def test_the_time_is_the_imported_modules(target_python: Path, tmp_path: Path, main: str) -> None:
    write_tree(tmp_path, {"app.py": main, "heavy.py": "import time\ntime.sleep(0.2)\n"})
    traced = trace(target_python, tmp_path, "app")

    assert_sound(traced)
    assert traced.event("heavy").own.blocked == near(0.2 * SECOND)
    assert traced.importer(traced.event("heavy")) == "app"
    assert traced.event("app").own.wall < 0.05 * SECOND
    assert traced.events("spoof") == []


def test_code_is_timed_like_a_module(target_python: Path, tmp_path: Path) -> None:
    code = "import time\ntime.sleep(0.2)\n"
    traced = trace(target_python, tmp_path, Target(code=code))

    assert_sound(traced)
    assert traced.by_number[0].own.blocked == near(0.2 * SECOND)
