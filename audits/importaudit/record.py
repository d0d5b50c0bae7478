"""The Record: everything that an audit measured, as one JSON file.

Times are integers in nanoseconds of CLOCK_MONOTONIC (``wall``), of the thread's CPU clock
(``cpu``) and of the scheduler's run-queue wait (``waiting``: runnable but not running). What is
left of ``wall`` was spent blocked. Reading back what was written gives an equal Record.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from importaudit.errors import OutputError, RecordError

FORMAT = "importaudit-record"
VERSION = 3
BYTECODE_FORMAT = "importaudit-bytecode"
BYTECODE_VERSION = 2

# The phases of an import, in the order of the cells in a trace.
PHASES = ("import", "find", "read", "unmarshal", "compile", "dlopen", "gc", "body", "probe")
# The phases that are a module's own cost: collections and the probe belong to nobody.
OWN_PHASES = ("import", "find", "read", "unmarshal", "compile", "dlopen", "body")


class Cost(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """[wall, cpu, waiting], nanoseconds."""

    wall: int = 0
    cpu: int = 0
    waiting: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu, self.waiting + other.waiting)

    @property
    def blocked(self) -> int:
        """Nanoseconds neither on a processor nor waiting for one."""
        return self.wall - self.cpu - self.waiting


class Event(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One import of one module: found, loaded and executed, or not."""

    number: int
    parent: int  # the import that was running; 0 is __main__
    module: str
    start: int  # since the process was spawned
    outcome: str = "loaded"  # or present (waited for), failed, abandoned, running
    wall: int = 0  # including what it imported
    phases: dict[str, Cost] = {}  # without what it imported
    file: str = ""  # of the code that asked, where it is not the file of the import around it
    line: int = 0
    thread: int = 0  # 0 is the main thread
    origin: str = ""  # the file that was loaded
    loader: str = "SourceFileLoader"  # type of it; "" where nothing was loaded
    error: str = ""  # type of the exception that ended it
    message: str = ""

    @property
    def own(self) -> Cost:
        """Self time: everything but the imports inside it, collections and the probe."""
        total = Cost()
        for phase in OWN_PHASES:
            total += self.phases.get(phase, NOTHING)
        return total


NOTHING = Cost()


class Process(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One traced process of a run: the target itself, or a child of it."""

    pid: int
    parent: int = 0
    started_by: str = ""  # fork or spawn, for a child
    events: list[Event] = []
    by_hand: list[str] = []  # in sys.modules at the end, created by no import
    threads: list[int] = []  # that were still importing at the end
    collections: list[int] = []  # of the garbage collector, by generation
    finished: bool = False  # its code came to an end


class Run(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One execution of the target, as the parent's clock saw it."""

    kind: str  # timing, detail, first-use
    wall: int  # from exec to exit
    cpu: int  # user and system, of the process and the children that it waited for
    rows: dict[str, Cost]  # what the wall time consists of; adds up to it
    apart: dict[str, int]  # CPU beside the main thread: other threads, child processes
    imports: int
    modules: int
    exit: int  # exit status; negative: the signal
    timed_out: bool = False
    state: str = ""  # name of the State that it ran in
    disk: int = 0  # bytes read from disk
    faults: int = 0  # major page faults
    files: int = 0  # sources, bytecode and extension modules that the import system opened
    compiled: int = 0  # modules that were compiled from source


class State(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A state of the machine that the target was run in; its runs carry its name."""

    name: str  # "cold-as-shipped": of the three below
    cache: str  # page cache of the files that the chain opens: warm or cold
    bytecode: str  # as-shipped, complete or none
    pause_gc: bool = False
    files: int = 0  # that the chain opens, as far as they are known
    bytes: int = 0  # of those files
    resident: int = 0  # of these, how many were in the page cache when a run began (median)
    lower_bound: str = ""  # why a cold run may take longer than was measured, if it may
    # What each phase cost the modules of each distribution, in the run of median wall time.
    distributions: dict[str, dict[str, Cost]] = {}


class Edge(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """[module, line, count, names]: MODULE is imported, loaded already or not."""

    module: str
    # Of the statement, in the importer's own file; "file:line" where it stands elsewhere.
    line: int | str = 0
    count: int = 1
    names: str = ""  # the from-list, joined by commas


class HotLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a module's body, and the share of its samples."""

    module: str
    file: str
    line: int
    sampled: int  # nanoseconds
    source: str = ""


class Link(msgspec.Struct, forbid_unknown_fields=True):
    """One step of an import chain: MODULE, asked for at FILE:LINE."""

    module: str
    file: str
    line: int


class Failure(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Why the target did not come to its end."""

    kind: str  # exception, exit, vanished, signal, timeout, interrupt
    message: str
    hint: str = ""
    chain: list[Link] = []
    stderr: str = ""  # the target's own, with its traceback
    stdout: str = ""


class FirstUse(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """What a target that is lazy itself puts off: modules it names and has not loaded."""

    known: list[str]
    modules: int = 0  # that importing them loads
    wall: int = 0
    cpu: int = 0
    failed: list[str] = []


class Interpreter(msgspec.Struct, forbid_unknown_fields=True):
    """The interpreter that ran the target."""

    executable: str
    version: str
    prefix: str
    base_prefix: str
    path: list[str]  # sys.path before the target ran
    cache_tag: str = ""
    platlibdir: str = "lib"
    optimize: int = 0
    pycache_prefix: str = ""


class Image(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The container image that the target ran in."""

    reference: str  # as the user named it
    id: str  # its digest
    user: str  # that the target ran as: "uid:gid"
    engine: str  # "Docker 20.10.24"
    storage: str  # the engine's storage driver, such as overlay2
    read_only: bool = False  # the root file system
    read_iops: int = 0  # reads a second that the disk was held to; 0: as fast as it is


class Environment(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """What else changes the answer."""

    variables: dict[str, str]  # PYTHON*, as the target saw them
    file_system: str  # of site-packages
    processors: int  # that this process may use
    load: float  # one-minute average before the first run
    machine: str
    kernel: str
    image: Image | None = None


class Spread(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Self time of a module over the timing runs: median, least, most; wall then CPU."""

    wall: list[int]
    cpu: list[int]


class Verdict(StrEnum):
    """Whether an interpreter would load bytecode for a source, and if not, why not."""

    LOADABLE = "loadable"
    MISSING = "missing"
    STALE = "stale"  # of another source: by mtime, size, hash, flags, or content (--verify)
    OTHER_TAG = "other-tag"  # only for another interpreter or optimisation level
    WRONG_MAGIC = "wrong-magic"  # the right name, written by another interpreter
    UNCACHEABLE = "uncacheable"  # none that is usable, and none can be written here
    DAMAGED = "damaged"  # accepted by its header, and then the import fails
    NOT_COMPILABLE = "not-compilable"  # known with --verify only


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What decides whether an interpreter loads bytecode, as it says itself."""

    executable: str
    version: str
    magic: str  # importlib.util.MAGIC_NUMBER, hexadecimal
    cache_tag: str | None
    optimize: int
    pycache_prefix: str | None
    check_hash: str  # --check-hash-based-pycs: default, always or never
    dont_write: bool  # PYTHONDONTWRITEBYTECODE
    hash_sample: str  # _imp.source_hash of a known source: its algorithm differs by version
    path: list[str]  # sys.path without the folder of the script
    sites: list[str]  # folders that site looks for packages and .pth files in
    prefix: str
    base_prefix: str
    platlibdir: str


class Judged(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A source and its verdict. Sizes are in bytes."""

    source: str
    verdict: Verdict
    reason: str = ""
    size: int = 0
    bytecode: int = 0  # size of the file where this interpreter looks; 0 where there is none


class BytecodeRow(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The sources of one distribution, or of one folder that none owns."""

    name: str
    kind: str  # stdlib, site-packages, editable, path
    sources: int
    verdicts: dict[Verdict, int]
    adds: int = 0  # bytes that compiling what has no usable bytecode would add, about


class Bytecode(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """How much of an environment, or of a chain of imports, has bytecode that is loaded."""

    folders: int  # that hold sources
    without: int  # of these, folders where not one source has usable bytecode
    verdicts: dict[Verdict, int]
    rows: list[BytecodeRow]  # worst first
    adds: int = 0  # bytes, about

    @property
    def sources(self) -> int:
        return sum(self.verdicts.values())

    @property
    def percent(self) -> float:
        """Folders without usable bytecode, in percent of those with sources."""
        return 100 * self.without / self.folders if self.folders else 0.0


class Root(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A folder, file or archive that was looked at, and the kind of what it holds."""

    path: str
    kind: str  # stdlib, site-packages, editable, path: decides which bytecode is right for it
    sources: int = 0
    unusable: int = 0  # of these, without usable bytecode though they may compile


class BytecodeReport(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The result of ``importaudit bytecode``: a document of its own."""

    format: str
    version: int
    tool: str  # version of importaudit
    created: str  # ISO 8601, UTC
    facts: Facts
    verified: bool  # every source compiled and compared
    roots: list[Root]
    summary: Bytecode
    sources: list[Judged] = []  # those that are not loadable
    notes: list[str] = []  # what could not be looked at, and why
    image: Image | None = None  # that all of this is in


class Record(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One audit."""

    format: str
    version: int
    tool: str  # version of importaudit
    created: str  # ISO 8601, UTC
    target: str  # as the user wrote it
    modules: list[str]  # that the target imports; empty for code and scripts
    interpreter: Interpreter
    environment: Environment
    runs: list[Run]
    representative: int  # index of the run whose events follow: the one of median wall time
    processes: list[Process]
    states: list[State] = []  # in the order of the report
    bytecode: Bytecode | None = None  # of the sources of the chain, as shipped
    spreads: dict[str, Spread] = {}
    edges: dict[str, list[Edge]] = {}  # by the module whose body was running
    lines: list[HotLine] = []
    distributions: dict[str, list[str]] = {}  # "name version": modules
    # Bytes of the file that each module is loaded from: its bytecode as shipped, its source where
    # none is usable, or the extension module.
    sizes: dict[str, int] = {}
    first_use: FirstUse | None = None
    failure: Failure | None = None
    notes: list[str] = []  # what could not be measured, and why
    output_lines: int = 0  # that the target printed


def text(value: str) -> str:
    """VALUE as a Record can hold it: what is no Unicode (a file name in bytes) is spelled out."""
    return value.encode("utf-8", "backslashreplace").decode()


def write(record: Record, path: Path) -> None:
    """Write RECORD to PATH: to a temporary file beside it, then renamed.

    Raises OutputError; PATH is then as it was before.
    """
    write_bytes(path, msgspec.json.encode(record) + b"\n")


def write_bytes(path: Path, data: bytes) -> None:
    """Replace PATH by a file that holds DATA, or leave it alone and raise OutputError."""
    temporary: Path | None = None
    try:
        if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
            path.write_bytes(data)
            return
        path = path.resolve()  # a link stays one
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.chmod(0o666 & ~current_umask())
        temporary.replace(path)
        temporary = None
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"cannot write {path}: {reason}", "choose another place for it"
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def current_umask() -> int:
    """The file mode creation mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def read(path: Path) -> Record:
    """Read the Record at PATH; raises RecordError naming everything that is wrong with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        head = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        kind = msgspec.json.decode(head.get("format", b"null"))
        number = msgspec.json.decode(head.get("version", b"null"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordError(f"{path} is not a Record: {error}", REMEDY) from error
    if kind != FORMAT:
        raise RecordError(f"{path} is not a Record: its format is not {FORMAT!r}", REMEDY)
    if number != VERSION:
        raise RecordError(
            f"{path} has Record version {number!r}; this importaudit reads {VERSION}",
            "use the importaudit that wrote it, or audit again",
        )
    try:
        return msgspec.json.decode(data, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problems = "; ".join(problems_of(head) or [str(error)])
        raise RecordError(f"{path} is a malformed Record: {problems}", REMEDY) from error


def problems_of(head: Mapping[str, msgspec.Raw]) -> list[str]:
    """What is wrong with each field of a Record; msgspec itself stops at the first."""
    fields = {field.name: field for field in msgspec.structs.fields(Record)}
    problems = [f"unknown field {name!r}" for name in sorted(set(head) - set(fields))]
    for name, field in fields.items():
        if name not in head:
            if field.required:
                problems.append(f"no field {name!r}")
            continue
        try:
            msgspec.json.decode(head[name], type=field.type)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(f"field {name!r}: {error}")
    return problems


REMEDY = "write one with: importaudit MODULE --json FILE"


def schema() -> dict[str, Any]:
    """The JSON Schema of a Record."""
    return msgspec.json.schema(Record)
