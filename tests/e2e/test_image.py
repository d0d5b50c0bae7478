"""Audits and bytecode surveys inside containers, by a real engine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import engine as engines
import env
import images
import msgspec
import pytest
from support.command import COMMAND, PATIENCE, audit, importaudit
from support.containers import eventually, of_another_machine, ours
from support.targets import write_tree

from importaudit import record as records
from importaudit.record import BytecodeReport, Verdict

pytestmark = [pytest.mark.xdist_group("engine")]


@pytest.fixture(autouse=True)
def left(engine: docker.APIClient) -> Iterator[None]:
    """Whatever a test does, no container is left by it; one test at a time uses the engine."""
    with env.locked(engines.home() / "tests.lock"):
        yield
        assert ours(engine) == []


def bytecode(*words: str | Path, cwd: Path) -> BytecodeReport:
    done = importaudit("bytecode", "--json", "-", *words, cwd=cwd)
    assert done.code == 0, done.err
    return msgspec.json.decode(done.out, type=BytecodeReport)


# --- what runs, and as whom ----------------------------------------------------------------


def test_as_the_images_user_in_its_folder_and_past_its_entrypoint(
    nonroot_image: str, tmp_path: Path
) -> None:
    done = audit("--image", nonroot_image, "mine", cwd=tmp_path)

    assert done.code == 0, done.err
    found = done.record.environment.image
    assert found is not None
    assert (found.reference, found.user) == (nonroot_image, "1234:4321")
    assert found.id.startswith("sha256:")
    assert found.engine.startswith("Docker ")
    assert f"in {nonroot_image} as 1234:4321" in done.out
    origins = {e.module: e.origin for e in done.record.processes[0].events}
    assert origins["heavy.part"] == "/app/heavy/part.py"
    assert origins["decimal"].startswith("/usr/lib/python3")


def test_what_a_target_sees(nonroot_image: str, tmp_path: Path) -> None:
    code = (
        "import os, socket, sys\n"
        "assert os.getuid() == 1234 and os.getgid() == 4321\n"
        "assert os.getcwd() == '/app' and sys.path[0] == ''\n"
        "assert os.environ['FROM_IMAGE'] == 'yes' and os.environ['MORE'] == 'a=b'\n"
        "assert os.environ['FROM_HERE'] == 'here'\n"
        "assert [n for _, n in socket.if_nameindex()] == ['lo']\n"
        "assert open('/mounted/file').read() == 'content'\n"
        "try: open('/mounted/new', 'w')\n"
        "except OSError: pass\n"
        "else: raise AssertionError('not read-only')\n"
    )  # fmt: skip
    write_tree(tmp_path / "folder", {"file": "content"})
    done = audit(
        *("--image", nonroot_image, "--env", "MORE=a=b", "--env", "FROM_HERE"),
        *("--mount", "./folder:/mounted:ro", "--code", code),
        cwd=tmp_path,
        FROM_HERE="here",
    )

    assert done.code == 0, done.out + done.err


def test_a_script_is_the_images(nonroot_image: str, tmp_path: Path) -> None:
    done = audit("--image", nonroot_image, "--script", "start.py", "two words", cwd=tmp_path)
    missing = importaudit("--image", nonroot_image, "--script", "none.py", cwd=tmp_path)

    assert (done.code, done.record.output_lines) == (0, 1)
    assert "mine" in {event.module for event in done.record.processes[0].events}
    assert (missing.code, missing.out) == (2, "")
    assert f"no script at none.py in {nonroot_image}" in missing.err


def test_a_target_that_fails(nonroot_image: str, tmp_path: Path) -> None:
    done = audit("--image", nonroot_image, "--code", "import mine, missing", cwd=tmp_path)

    assert done.code == 3
    assert done.record.failure is not None
    assert "ModuleNotFoundError" in done.record.failure.stderr
    assert "missing" in done.out


def test_all_states_with_a_read_only_root(nonroot_image: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    words: list[str | Path] = ["--read-only", "--runs", "1", "--states", "all", "--json", file]
    done = importaudit("--image", nonroot_image, *words, "mine", cwd=tmp_path)

    assert done.code == 0, done.err
    record = records.read(file)
    compiled = {run.state: run.compiled for run in record.runs if run.kind == "timing"}
    assert len(compiled) == 7
    assert compiled["warm-complete"] == compiled["cold-complete"] == 0
    assert compiled["warm-none"] == compiled["cold-none"] > compiled["warm-as-shipped"]
    resident = {state.name: state.resident / state.bytes for state in record.states}
    assert resident["warm-none"] > 0.99
    assert resident["cold-none"] < 0.8  # some the agent itself has mapped
    assert "read-only root" in done.out


def test_an_image_without_a_shell(engine: docker.APIClient, tmp_path: Path) -> None:
    image = images.build(engine, "no-shell")
    done = audit("--image", image, "json", cwd=tmp_path)

    assert done.code == 0, done.err


def test_nothing_in_the_image_is_changed(
    engine: docker.APIClient, nonroot_image: str, tmp_path: Path
) -> None:
    done = importaudit("--image", nonroot_image, "--quick", "--keep", "mine", cwd=tmp_path)
    (name,) = ours(engine)
    try:
        state = engine.inspect_container(name)
        changed = [change["Path"] for change in engine.diff(name)]
    finally:
        engine.remove_container(name, force=True, v=True)

    assert done.code == 0
    assert f"the container {name} stays: docker exec -it {name} /usr/bin/python3" in done.err
    assert state["State"]["Running"]
    assert [path for path in changed if not path.startswith("/.importaudit")] == []


# --- which Python --------------------------------------------------------------------------


def test_several_pythons(two_pythons_image: str, tmp_path: Path) -> None:
    words = ["--image", two_pythons_image]
    unsaid = importaudit(*words, "json", cwd=tmp_path)
    for said, runs in [
        ("/opt/venv", "/opt/venv/bin/python"),
        ("/usr/bin/python3", "/usr/bin/python3"),
    ]:
        done = audit(*words, "--python", said, "json", cwd=tmp_path)
        assert (done.code, done.record.interpreter.executable) == (0, runs)

    assert (unsaid.code, unsaid.out) == (2, "")
    assert "the image has 2 Pythons: /opt/venv/bin/python3, /usr/bin/python3" in unsaid.err
    assert "--python /opt/venv/bin/python3" in unsaid.err


def test_several_pythons_on_a_terminal_are_asked_about(
    two_pythons_image: str, tmp_path: Path
) -> None:
    main, terminal = os.openpty()
    words = ["--image", two_pythons_image, "--quick", "--json", "record.json", "json"]
    child = subprocess.Popen(
        [COMMAND, *words], cwd=tmp_path, stdin=terminal, stderr=terminal, stdout=subprocess.PIPE
    )
    os.close(terminal)
    shown = b""
    while b"audited?" not in shown:
        shown += os.read(main, 1024)
    os.write(main, b"2\n")
    out, _ = child.communicate(timeout=PATIENCE)
    os.close(main)

    assert b"1  /opt/venv/bin/python3" in shown
    assert (child.returncode, b"/usr/bin/python3" in out) == (0, True)


@pytest.mark.parametrize("asked", [[], ["--python", "/usr/bin/python3"]])
def test_no_python(engine: docker.APIClient, tmp_path: Path, asked: list[str]) -> None:
    image = images.build(engine, "no-python", {"README": b"x"})
    done = importaudit("--image", image, *asked, "json", cwd=tmp_path)

    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert "no Python" in done.err or "no interpreter at /usr/bin/python3" in done.err
    assert "--python takes the path" in done.err


# --- what cannot be ------------------------------------------------------------------------


def test_another_architecture(engine: docker.APIClient, tmp_path: Path) -> None:
    image = of_another_machine(engine, "s390x")
    done = importaudit("--image", image, "json", cwd=tmp_path)

    assert (done.code, done.out) == (2, "")
    assert f"{image} is for linux/s390x, and this machine is linux/" in done.err
    assert "docker pull --platform linux/" in done.err


@pytest.mark.parametrize("command", [["json"], ["bytecode"]])
def test_an_image_that_is_not_there(tmp_path: Path, command: list[str]) -> None:
    done = importaudit(*command, "--image", "nobody/has-this:1", cwd=tmp_path)

    assert (done.code, done.out) == (2, "")
    assert "no image nobody/has-this:1" in done.err
    assert "next: docker pull nobody/has-this:1" in done.err


def test_no_engine(tmp_path: Path) -> None:
    where = f"unix://{tmp_path}/none.sock"
    done = importaudit("--image", "any", "json", cwd=tmp_path, DOCKER_HOST=where)

    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert f"no container engine answers at {where}" in done.err
    assert "systemctl start docker" in done.err


# The command itself may be where nobody else can read it, so it is loaded first.
AS_NOBODY = """
import os
from importaudit.errors import ContainerError
from importaudit.measure.container import Engine
for user in (0, 65534):
    os.setuid(user)
    try:
        Engine()
    except ContainerError as error:
        print(error.problem, error.hint, sep="; ")
"""


def test_an_engine_that_is_somebody_elses(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, who alone can become another user")
    path = tmp_path / "sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    path.chmod(0o600)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    environment = os.environ | {"DOCKER_HOST": f"unix://{path}"}
    command = [sys.executable, "-c", AS_NOBODY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    as_root, as_nobody = done.stdout.splitlines()
    assert f"no container engine answers at unix://{path}" in as_root
    assert f"no permission to use the container engine at unix://{path}" in as_nobody
    assert "usermod -aG docker" in as_nobody


def test_a_volume_that_is_not_there(
    engine: docker.APIClient, nonroot_image: str, tmp_path: Path
) -> None:
    """An engine would make it, and it would stay."""
    write_tree(tmp_path, {"folder/file": ""})
    words = ["--image", nonroot_image, "--mount", "folder:/there", "mine"]
    done = importaudit(*words, cwd=tmp_path)

    assert (done.code, done.out) == (2, "")
    assert "no volume is called folder" in done.err
    assert "./folder" in done.err
    assert not engine.volumes(filters={"name": "folder"})["Volumes"]


def test_a_container_that_does_not_start(nonroot_image: str, tmp_path: Path) -> None:
    write_tree(tmp_path, {"file": ""})
    words = ["--image", nonroot_image, "--mount", "./file:/opt", "mine"]
    done = importaudit(*words, cwd=tmp_path)

    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert f"cannot start a container of {nonroot_image}" in done.err


# --- how it ends ---------------------------------------------------------------------------

# Whose child shows that it has come so far; its own command line says all from the start.
SLEEPS = "import mine, subprocess, time; subprocess.Popen(['sleep', '601']); time.sleep(600)"


def started(engine: docker.APIClient, image: str, cwd: Path, code: str) -> subprocess.Popen[str]:
    """An audit of code that takes long, once it is at it."""
    child = subprocess.Popen(
        [COMMAND, "--image", image, "--json", "record.json", "--code", code],
        cwd=cwd, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip

    def sleeps() -> bool:
        for name in ours(engine):
            processes = (
                engine.top(name, "-eww -o pid,args")["Processes"] if running(engine, name) else []
            )
            if any(arguments == "sleep 601" for _, arguments in processes):
                return True
        return False

    if not eventually(sleeps):
        child.kill()
        raise AssertionError(child.communicate())
    return child


def running(engine: docker.APIClient, name: str) -> bool:
    try:
        return bool(engine.inspect_container(name)["State"]["Running"])
    except docker.errors.NotFound:
        return False


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_however_it_is_stopped_the_container_goes(
    engine: docker.APIClient, nonroot_image: str, tmp_path: Path, number: int, status: int
) -> None:
    child = started(engine, nonroot_image, tmp_path, SLEEPS)
    child.send_signal(number)
    _, err = child.communicate(timeout=20)

    assert (child.returncode, "Traceback" in err) == (status, False), err
    assert eventually(lambda: ours(engine) == [])


def test_what_was_measured_before_ctrl_c_is_kept(
    engine: docker.APIClient, nonroot_image: str, tmp_path: Path
) -> None:
    child = started(engine, nonroot_image, tmp_path, SLEEPS)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)

    record = records.read(tmp_path / "record.json")
    assert record.failure is not None
    assert record.failure.kind == "interrupt"
    assert "mine" in {event.module for event in record.processes[0].events}


def test_a_container_that_is_killed(
    engine: docker.APIClient, nonroot_image: str, tmp_path: Path
) -> None:
    child = started(engine, nonroot_image, tmp_path, SLEEPS)
    engine.kill(ours(engine)[0])
    _, err = child.communicate(timeout=20)

    assert (child.returncode, "Traceback" in err) == (2, False)
    assert "what works for importaudit in the container has ended" in err


def test_a_timeout(nonroot_image: str, tmp_path: Path) -> None:
    done = audit("--image", nonroot_image, "--timeout", "1", "--code", SLEEPS, cwd=tmp_path)

    assert done.code == 3
    assert done.record.failure is not None
    assert done.record.failure.kind == "timeout"


# --- throttled storage ---------------------------------------------------------------------


def test_throttled_reads(nonroot_image: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    words = ["--runs", "1", "--states", "warm-as-shipped,cold-as-shipped"]
    done = importaudit(
        "--image", nonroot_image, *words, "--json", file, "--read-iops", "50", "mine", cwd=tmp_path
    )

    assert done.code == 0, done.err
    image = records.read(file).environment.image
    assert image is not None
    assert image.read_iops == 50
    assert "50 reads a second at most" in done.out


# --- bytecode ------------------------------------------------------------------------------


def test_bytecode_of_an_image_that_has_none(pandas_image: str, tmp_path: Path) -> None:
    report = bytecode("--image", pandas_image, "/opt/packages", cwd=tmp_path)

    assert report.image is not None
    assert report.image.reference == pandas_image
    assert report.summary.sources > 1000
    assert report.summary.verdicts.get(Verdict.LOADABLE, 0) == 0
    assert report.summary.percent == 100
    assert report.summary.without == report.summary.folders > 100


def test_bytecode_of_an_image_that_has_all(baked_image: str, tmp_path: Path) -> None:
    report = bytecode("--image", baked_image, "--verify", "/opt/packages", cwd=tmp_path)

    assert report.verified
    assert report.summary.verdicts == {Verdict.LOADABLE: report.summary.sources}
    assert report.summary.percent == 0


def test_gates(pandas_image: str, baked_image: str, tmp_path: Path) -> None:
    gate = ["/opt/packages", "--fail-on", "missing", "--max-missing-percent", "5"]
    fails = importaudit("bytecode", "--image", pandas_image, *gate, cwd=tmp_path)
    passes = importaudit("bytecode", "--image", baked_image, *gate, cwd=tmp_path)

    assert (fails.code, passes.code) == (1, 0)
    assert "--fail-on missing" in fails.err
    assert "--max-missing-percent 5: 100.0 %" in fails.err


def test_pandas_says_what_is_missing(pandas_image: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    few = ["--runs", "4", "--states", "warm-as-shipped,warm-complete"]
    done = importaudit("--image", pandas_image, *few, "--json", file, "pandas", cwd=tmp_path)

    assert done.code == 0, done.err
    record = records.read(file)
    assert any(name.startswith("pandas 3") for name in record.distributions)
    assert record.bytecode is not None
    assert record.bytecode.verdicts[Verdict.MISSING] > 300
    compiled = {run.state: run.compiled for run in record.runs if run.kind == "timing"}
    assert compiled["warm-as-shipped"] > 300
    assert compiled["warm-complete"] < 20
    assert "in the Dockerfile: RUN" in done.out
