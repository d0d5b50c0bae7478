"""Starting the target under the probe, once, and what the parent's clock says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from importaudit.errors import AuditError
from importaudit.measure import guest
from importaudit.measure import machine as machines
from importaudit.measure.machine import HERE, Execution, Machine
from importaudit.measure.trace import Trace, parse
from importaudit.plan import Target

# The `-c` argument: evaluated to a context manager around CODE, on the one line that the
# target's own code begins on, leaving no name behind. %r is the configuration, %s CODE.
LINE = (
    "with(lambda k,c,d:(lambda f:d.update(codes=__import__('marshal').loads(f.read()))or f.close()"
    "or exec(d['codes']['start'],d))(open(c['code'],'rb'))or d['start'](k,c))"
    "((lambda t:(t.perf_counter_ns(),t.thread_time_ns()))(__import__('time')),%r,{}):%s"
)


@dataclass(frozen=True)
class Finished(Execution):
    """One execution, and what the processes wrote."""

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
    machine: Machine = HERE,
    detail: bool = False,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
    pause_gc: bool = False,
    write_bytecode: bool = False,
) -> Finished:
    """Run TARGET under PYTHON of MACHINE and the probe; TIMEOUT is in seconds of wall time.

    With PAUSE_GC nothing is collected until the target is done, or collects by itself.

    Raises AuditError when the interpreter cannot be started, and InterpreterError when it cannot
    compile the probe; Interrupted, with what there is, after Ctrl-C. A target that fails does not
    raise: what is known of it is returned.
    """
    statement = target.statement(machine.work)
    with machines.folder(machine, "the trace") as folder:
        config: dict[str, Any] = {
            "code": guest.code(machine, python, detail=detail),
            "prefix": f"{folder}/trace",
            "detail": detail,
            "pause_gc": pause_gc,
            "script": str(target.script) if target.script is not None else None,
            "argv": list(target.argv),
            "statement": statement,
            "line": LINE,
        }
        code = LINE % (config, statement)
        command = [str(python), *([] if write_bytecode else ["-B"]), "-c", code]
        variables = machine.environment if environment is None else environment
        try:
            found = machine.execute(command, variables, folder, timeout)
        except OSError as error:
            raise AuditError(f"cannot start {python}: {error.strerror}") from error
        finished = left_behind(machine, folder, found)
        if finished.interrupted:
            raise Interrupted(finished)
        return finished


def left_behind(machine: Machine, folder: str, found: Execution) -> Finished:
    """What an execution wrote into FOLDER, together with its clocks."""
    files = machine.files
    traces = sorted(name for name in files.names(folder) if name.startswith("trace."))
    out, err = (files.read(f"{folder}/{name}") for name in ("stdout", "stderr"))
    return Finished(
        **asdict(found),
        traces=[parse(files.read(f"{folder}/{name}")) for name in traces],
        stdout=out.decode("utf-8", "replace"),
        stderr=err.decode("utf-8", "replace"),
    )
