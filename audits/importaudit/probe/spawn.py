"""Guest, apart from the probe: starts a process, waits for it, and reads the clocks around it.

The host calls these functions itself where the target lives on this machine; in a container
``agent`` calls them. Plain values in and out.
"""

import os
import select
import signal
import subprocess
import time

SECTOR = 512  # bytes, in which getrusage counts what is read
TICKS = os.sysconf("SC_CLK_TCK")
TURN = 0.002  # seconds between looks at a process, where it cannot be waited for with others


def execute(
    command: "list[str]",
    environment: "dict[str, str]",
    folder: str,
    timeout: "float | None",
    stop: int = -1,
) -> "dict[str, int | None]":
    """Spawn COMMAND with its output in FOLDER, wait for it, and read the clocks around it.

    It is killed with its process group after TIMEOUT seconds, when Ctrl-C reaches us, or when the
    descriptor STOP can be read. The names are those of ``importaudit.measure.launch.Finished``;
    nanoseconds and bytes. Raises OSError when it cannot be started.
    """
    create = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    spawned = time.perf_counter_ns()
    pid = os.posix_spawn(
        command[0],
        command,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.path.join(folder, "stdout"), create, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, os.path.join(folder, "stderr"), create, 0o600),
        ],
        setpgroup=0,
    )
    ended = "stop"
    try:
        ended = wait(pid, timeout, stop)
    except KeyboardInterrupt:
        pass
    except BaseException:  # nothing of ours stays behind
        kill_group(pid)
        os.waitpid(pid, 0)
        raise
    if ended != "exit":
        kill_group(pid)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    exited = time.perf_counter_ns()
    found: dict[str, int | None] = {"spawned": spawned, "exited": exited, "pid": pid}
    found["timed_out"], found["interrupted"] = ended == "timeout", ended == "stop"
    found["waited"], found["children_cpu"] = scheduler_wait(pid), children_cpu(pid)
    _, status, usage = os.wait4(pid, 0)
    found["cpu"] = round((usage.ru_utime + usage.ru_stime) * 1e9)
    found["status"] = os.waitstatus_to_exitcode(status)
    found["disk"], found["faults"] = usage.ru_inblock * SECTOR, usage.ru_majflt
    return found


def wait(pid: int, timeout: "float | None", stop: int) -> str:
    """Wait until PID is dead, without reaping it: "exit", or "timeout", or "stop"."""
    if timeout is None and stop < 0:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return "exit"
    deadline = None if timeout is None else time.monotonic() + timeout
    poll = select.poll()
    if stop >= 0:
        poll.register(stop, select.POLLIN)
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # before Linux 5.3, or a container's engine forbids what it does not know
        descriptor = -1
    else:
        poll.register(descriptor, select.POLLIN)
    try:
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            turn = left if descriptor >= 0 else TURN
            ready = {number for number, _ in poll.poll(None if turn is None else turn * 1000)}
            if dead(pid):
                return "exit"
            if stop in ready:
                return "stop"
            if left == 0:
                return "timeout"
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def dead(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def kill_group(pid: int) -> None:
    """End the target and the children that stayed in its process group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def scheduler_wait(pid: int) -> "int | None":
    """Run-queue wait of the main thread of a dead but unreaped process, nanoseconds."""
    try:
        with open("/proc/%d/schedstat" % pid) as file:
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return None


def children_cpu(pid: int) -> int:
    """CPU of the children that PID waited for, in nanoseconds, counted in clock ticks."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[13]) + int(fields[14])) * 1_000_000_000 // TICKS


def capture(
    command: "list[str]", timeout: "float | None" = None
) -> "tuple[int, bytes, bytes] | None":
    """Run COMMAND to its end: status, stdout, stderr; None after TIMEOUT seconds.

    Raises OSError when it cannot be started.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    return done.returncode, done.stdout, done.stderr
