"""Child processes are recorded apart: by pid, with their own imports and nothing else's."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.targets import Traced, assert_adds_up, assert_sound, trace, write_tree

from importaudit.plan import Target
from importaudit.record import Process

PLACES = ("before", "child", "parent", "grandchild")
LEAVES = {f"only_in_{place}.py": f"import below_{place}\n" for place in PLACES}
LEAVES |= {f"below_{place}.py": "" for place in PLACES}


def audit(python: Path, root: Path, app: str, *, detail: bool = False) -> Traced:
    write_tree(root, {**LEAVES, "app.py": app})
    traced = trace(python, root, "app", detail=detail)
    assert traced.finished.status == 0, traced.finished.stderr
    assert_sound(traced)
    for child in traced.children():
        assert_adds_up(child.events)
    return traced


def ended(process: Process) -> set[str]:
    """The imports that PROCESS has made, without those that it was forked in."""
    return {event.module for event in process.events if event.outcome != "running"}


def only_child(traced: Traced) -> Process:
    (child,) = traced.children()
    assert child.parent == traced.finished.pid
    assert child.pid != traced.finished.pid
    return child


@pytest.mark.parametrize("detail", [False, True], ids=["timing", "detail"])
def test_a_fork_that_leaves_at_once(target_python: Path, tmp_path: Path, detail: bool) -> None:
    app = """
        import os
        import only_in_before
        pid = os.fork()
        if pid == 0:
            import only_in_child
            os._exit(0)
        os.waitpid(pid, 0)
        import only_in_parent
        """
    traced = audit(target_python, tmp_path, app, detail=detail)
    child = only_child(traced)

    assert child.started_by == "fork"
    assert not child.finished
    assert ended(child) == {"only_in_child", "below_child"}
    assert {"app", "only_in_before", "below_before", "only_in_parent"} <= ended(traced.process)
    assert not {"only_in_child", "below_child"} & ended(traced.process)


def test_a_fork_that_goes_on(target_python: Path, tmp_path: Path) -> None:
    app = """
        import os
        import only_in_before
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            import only_in_parent
        else:
            import only_in_child
        """
    traced = audit(target_python, tmp_path, app)
    child = only_child(traced)
    names = {event.number: event.module for event in child.events}
    inside = {event.module: names.get(event.parent) for event in child.events}

    assert child.finished
    assert ended(child) >= {"app", "only_in_child", "below_child"}
    assert (inside["app"], inside["only_in_child"]) == ("__main__", "app")
    assert not {"only_in_parent", "only_in_before"} & ended(child)
    assert not {"only_in_child", "below_child"} & ended(traced.process)


def test_a_fork_of_a_fork(target_python: Path, tmp_path: Path) -> None:
    app = """
        import os
        if os.fork() == 0:
            import only_in_child
            if os.fork() == 0:
                import only_in_grandchild
                os._exit(0)
            os.wait()
            os._exit(0)
        os.wait()
        """
    traced = audit(target_python, tmp_path, app)
    children = {child.parent: child for child in traced.children()}
    child = children[traced.finished.pid]
    grandchild = children[child.pid]

    assert ended(child) == {"only_in_child", "below_child"}
    assert ended(grandchild) == {"only_in_grandchild", "below_grandchild"}
    assert not ended(traced.process) & {"only_in_child", "only_in_grandchild"}


def test_the_time_in_a_forked_child_is_its_own(target_python: Path, tmp_path: Path) -> None:
    write_tree(tmp_path, {"sleeps.py": "import time\ntime.sleep(0.2)\n"})
    app = """
        import os, time
        time.sleep(0.3)
        if os.fork() == 0:
            import sleeps
            os._exit(0)
        os.wait()
        """
    child = only_child(audit(target_python, tmp_path, app))
    (sleeps,) = (event for event in child.events if event.module == "sleeps")

    assert sleeps.own.blocked == pytest.approx(0.2e9, rel=0.1)
    assert sum(event.own.wall for event in child.events if event is not sleeps) < 0.1e9


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(target_python: Path, tmp_path: Path, method: str) -> None:
    write_tree(
        tmp_path,
        {
            "work/__init__.py": "",
            "work/target.py": """
                def run(queue):
                    import only_in_child
                    queue.put(only_in_child.__name__)
                """,
        },
    )
    app = f"""
        import multiprocessing
        from work import target
        context = multiprocessing.get_context("{method}")
        queue = context.SimpleQueue()
        process = context.Process(target=target.run, args=(queue,))
        process.start()
        print(queue.get())
        process.join()
        if "{method}" == "forkserver":
            from multiprocessing import forkserver
            forkserver._forkserver._stop()
        """
    traced = audit(target_python, tmp_path, app)
    found = [child for child in traced.children() if "only_in_child" in ended(child)]

    assert traced.finished.stdout == "only_in_child\n"
    assert len(found) == 1
    assert "below_child" in ended(found[0])
    assert found[0].started_by == ("spawn" if method == "spawn" else "fork")
    if method != "forkserver":
        assert found[0].parent == traced.finished.pid
    assert not {"only_in_child", "below_child"} & ended(traced.process)


@pytest.mark.parametrize(
    "call",
    [
        "subprocess.run([sys.executable, '-c', CODE], check=True)",
        "subprocess.run([sys.executable, '-B', '-X', 'utf8', '-Wignore', '-c', CODE, 'x', '-c'])",
        "subprocess.check_output([sys.executable, '-I', '-c', CODE])",
    ],
)
def test_a_command_of_this_interpreter(target_python: Path, tmp_path: Path, call: str) -> None:
    app = f"""
        import subprocess, sys
        CODE = '''import sys
        sys.path.insert(0, {str(tmp_path)!r})
        print(sys.argv)
        import only_in_child
        '''.replace("        ", "")
        {call}
        import only_in_parent
        """
    child = only_child(audit(target_python, tmp_path, app))

    assert child.started_by == "spawn"
    assert child.finished
    assert {"only_in_child", "below_child"} <= ended(child)
    assert not {"app", "only_in_parent"} & ended(child)


def test_other_commands_run_as_they_are(target_python: Path, tmp_path: Path) -> None:
    write_tree(tmp_path, {"script.py": "import sys\nprint(sys.argv)\n"})
    app = """
        import subprocess, sys
        for command in (["/bin/echo", "-c", "hello"], [sys.executable, "script.py", "-c", "a"],
                        [sys.executable, "-m", "script", "b"], ["/bin/sh", "-c", "echo shell"]):
            print(subprocess.check_output(command, text=True), end="")
        """
    traced = audit(target_python, tmp_path, app)

    assert traced.children() == []
    assert traced.finished.stdout == (
        f"-c hello\n['script.py', '-c', 'a']\n['{tmp_path}/script.py', 'b']\nshell\n"
    )


def test_children_of_code(target_python: Path, tmp_path: Path) -> None:
    write_tree(tmp_path, LEAVES)
    code = "import os\nif os.fork() == 0:\n    import only_in_child\n    os._exit(0)\nos.wait()\n"
    traced = trace(target_python, tmp_path, Target(code=code))

    assert_sound(traced)
    assert "only_in_child" in ended(only_child(traced))
