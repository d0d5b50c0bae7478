"""Starting the target under the probe, once, and what the parent's clock says about it."""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from importaudit.errors import AuditError
from importaudit.measure import guest, scratch
from importaudit.measure.trace import Trace, read
from importaudit.plan import Target

# The `-c` argument: evaluated to a context manager around CODE, on the one line that the
# target's own code begins on, leaving no name behind. %r is the configuration, %s CODE.
LINE = (
    "with(lambda k,c,d:(lambda f:d.update(codes=__import__('marshal').loads(f.read()))or f.close()"
    "or exec(d['codes']['start'],d))(open(c['code'],'rb'))or d['start'](k,c))"
    "((lambda t:(t.perf_counter_ns(),t.thread_time_ns()))(__import__('time')),%r,{}):%s"
)
SECTOR = 512  # bytes, in which getrusage counts what is read
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Finished:
    """One execution: clocks in nanoseconds, and what the processes wrote."""

    spawned: int
    exited: int
    cpu: int  # user and system, with the children that the target waited for
    children_cpu: int  # of those, in clock ticks
    waited: int | None  # run-queue wait of the main thread until its end, where known
    status: int
    timed_out: bool
    interrupted: bool  # by Ctrl-C
    pid: int
    disk: int = 0  # bytes read from disk, with the children's
    faults: int = 0  # major page faults, with the children's
    traces: list[Trace] = field(default_factory=list)
    stdout: str = ""
    stderr: str = ""

    @property
    def main(self) -> Trace:
        """The trace of the target itself; an empty one when it wrote none."""
        return next((t for t in self.traces if t.pid == self.pid), Trace(pid=self.pid))


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while the target ran; ``finished`` is what it had done by then."""

    def __init__(self, finished: Finished) -> None:
        super().__init__()
        self.finished = finished


def run(
    python: Path,
    target: Target,
    *,
    detail: bool = False,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
    pause_gc: bool = False,
    write_bytecode: bool = False,
) -> Finished:
    """Run TARGET under PYTHON and the probe; TIMEOUT is in seconds of wall time.

    With PAUSE_GC nothing is collected until the target is done, or collects by itself.

    Raises AuditError when the interpreter cannot be started, and InterpreterError when it cannot
    compile the probe; Interrupted, with what there is, after Ctrl-C. A target that fails does not
    raise: what is known of it is returned.
    """
    with scratch.folder() as folder:
        config: dict[str, Any] = {
            "code": str(guest.code(python, detail=detail)),
            "prefix": str(folder / "trace"),
            "detail": detail,
            "pause_gc": pause_gc,
            "script": str(target.script) if target.script is not None else None,
            "argv": list(target.argv),
            "statement": target.statement,
            "line": LINE,
        }
        code = LINE % (config, target.statement)
        command = [str(python), *([] if write_bytecode else ["-B"]), "-c", code]
        finished = execute(
            command, folder, timeout, os.environ if environment is None else environment
        )
        finished.traces = [read(path) for path in sorted(folder.glob("trace.*"))]
        if finished.interrupted:
            raise Interrupted(finished)
        return finished


def execute(
    command: list[str], folder: Path, timeout: float | None, environment: Mapping[str, str]
) -> Finished:
    """Spawn COMMAND with its output in FOLDER, wait for it, and read the clocks around it."""
    out, err = folder / "stdout", folder / "stderr"
    create = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    spawned = time.perf_counter_ns()
    try:
        pid = os.posix_spawn(
            command[0],
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(out), create, 0o600),
                (os.POSIX_SPAWN_OPEN, 2, str(err), create, 0o600),
            ],
            setpgroup=0,
        )
    except OSError as error:
        raise AuditError(f"cannot start {command[0]}: {error.strerror}") from error
    timed_out = interrupted = False
    try:
        timed_out = not wait(pid, timeout)
    except KeyboardInterrupt:
        interrupted = True
    except BaseException:  # nothing of ours stays behind
        kill_group(pid)
        os.waitpid(pid, 0)
        raise
    if timed_out or interrupted:
        kill_group(pid)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    exited = time.perf_counter_ns()
    waited, children = scheduler_wait(pid), children_cpu(pid)
    _, status, usage = os.wait4(pid, 0)
    return Finished(
        spawned=spawned,
        exited=exited,
        cpu=cpu_of(usage),
        children_cpu=children,
        waited=waited,
        status=os.waitstatus_to_exitcode(status),
        timed_out=timed_out,
        interrupted=interrupted,
        pid=pid,
        disk=usage.ru_inblock * SECTOR,
        faults=usage.ru_majflt,
        stdout=out.read_text("utf-8", "replace"),
        stderr=err.read_text("utf-8", "replace"),
    )


def cpu_of(usage: resource.struct_rusage) -> int:
    """User and system time, nanoseconds."""
    return round((usage.ru_utime + usage.ru_stime) * 1e9)


def wait(pid: int, timeout: float | None) -> bool:
    """Wait until PID is dead, without reaping it; False when TIMEOUT seconds have passed."""
    if timeout is not None:
        descriptor = os.pidfd_open(pid)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if not poll.poll(timeout * 1000):
                return False
        finally:
            os.close(descriptor)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return True


def kill_group(pid: int) -> None:
    """End the target and the children that stayed in its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def scheduler_wait(pid: int) -> int | None:
    """Run-queue wait of the main thread of a dead but unreaped process, nanoseconds."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None


def children_cpu(pid: int) -> int:
    """CPU of the children that PID waited for, in nanoseconds, counted in clock ticks."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[13]) + int(fields[14])) * 1_000_000_000 // TICKS
