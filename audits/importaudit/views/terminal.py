"""The report on one screen. Takes a Record, nothing else, and shows what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.console import Console, Group, RenderableType
from rich.text import Text

from importaudit.analysis import advice, costs, states
from importaudit.analysis.costs import Row
from importaudit.analysis.distributions import MAIN
from importaudit.analysis.graph import ROOT
from importaudit.record import Failure, FirstUse, HotLine, Link, Record, Run
from importaudit.views import bytecode, next_steps, state_table
from importaudit.views.figures import (
    FIRST,
    WIDE,
    container,
    figures,
    fit,
    grid,
    left,
    middle,
    number,
    place,
    right,
    seconds,
    share,
    spread,
    visible,
)

WORDS = {
    "start": "interpreter start and site",
    "import": "another thread's import",
    "find": "finding (path scan, stat)",
    "read": "reading",
    "compile": "compiling",
    "unmarshal": "unmarshalling",
    "dlopen": "dlopen",
    "gc": "garbage collection",
    "body": "module bodies",
    "probe": "the probe itself",
    "shutdown": "shutdown",
    "unattributed": "unattributed",
    "threads": "other threads (CPU)",
    "children": "child processes (CPU)",
}
WORTH_A_ROW = 20_000_000  # nanoseconds of a module's second hottest line
CHAIN = 5  # distributions without bytecode that are named at most
LONGEST = 40  # lines of a failed target's stderr that are shown


def show(record: Record, console: Console, top: int) -> None:
    """Print the report of RECORD, with TOP rows a table."""
    for part in report(record, console.width, top):
        console.print(part, soft_wrap=False)


def report(record: Record, width: int, top: int) -> list[RenderableType]:
    """The parts of the report, in order."""
    parts: list[RenderableType] = [heading(record)]
    if record.failure is not None:
        parts.append(failure(record.failure))
    if record.processes and record.processes[0].events:
        run = record.runs[record.representative]
        graph = costs.graph_of(record)
        parts.append(phases(record, run, width))
        if len(record.states) > 1:
            parts.append(state_table.table(states.rows(record), width))
        cold = states.stack(record)
        if cold is not None:
            parts.append(state_table.stack(cold, width))
        if record.bytecode is not None and record.bytecode.sources:
            costly = state_table.bytecode_costs(record)
            parts.append(bytecode.chain(record.bytecode, costly, width, min(top, CHAIN)))
        parts.append(
            rows("Distributions", costs.by_distribution(record, graph), record, width, top)
        )
        parts.append(rows("Modules", costs.by_module(record, graph), record, width, top))
        if any(event.number for event in record.processes[0].events):
            parts.append(legend())
    if record.lines:
        parts.append(lines(record, width))
    if record.first_use is not None:
        parts.append(first_use(record.first_use))
    if record.processes and record.processes[0].events:
        parts.append(next_steps.steps(advice.steps(record, graph), record))
    parts += [Text(f"Note: {' '.join(visible(note))}.", style="yellow") for note in remarks(record)]
    return parts


# --- parts ---------------------------------------------------------------------------------


def heading(record: Record) -> RenderableType:
    """What was audited, with what, and the facts of the environment that change the answer."""
    python = record.interpreter
    text = Text()
    text.append("\n".join(visible(record.target)), style="bold")
    executable = " ".join(visible(python.executable)) or "unknown interpreter"
    text.append(f"\n{executable}", style="dim")
    text.append(f"  Python {python.version.split()[0] if python.version else '?'}", style="dim")
    text.append(f"\n{' '.join(visible(' · '.join(circumstances(record))))}", style="dim")
    return Group(text, Text())


def circumstances(record: Record) -> list[str]:
    """Each fact of the environment that changes the answer."""
    environment, python = record.environment, record.interpreter
    facts = [f"{name}={value}" for name, value in environment.variables.items()]
    if environment.image is not None:
        facts[:0] = container(environment.image)
    if python.optimize:
        facts.append(f"optimised (-{'O' * python.optimize})")
    facts.append(f"{environment.file_system} file system")
    processors = environment.processors
    facts.append(f"{processors} processor{'s' if processors != 1 else ''}")
    facts.append(f"load {environment.load:.1f}")
    facts.append("bytecode not written (-B)")
    return facts


def failure(problem: Failure) -> RenderableType:
    """What went wrong: the message, the chain to it, and the target's own words."""
    message = "\n".join(visible(f"Failed: {problem.message}"))
    parts: list[RenderableType] = [Text(message, style="bold red")]
    for depth, link in enumerate(problem.chain):
        step = Text("  " * depth + "└ " if depth else "  ")
        step.append(" ".join(visible(link.module)), style="bold")
        step.append(f"  {place(link)}", style="dim")
        parts.append(step)
    for name, output in (("stdout", problem.stdout), ("stderr", problem.stderr)):
        parts += own_words(name, visible(output.rstrip()))
    if problem.hint:
        parts.append(Text(f"Next: {' '.join(visible(problem.hint))}", style="cyan"))
    return Group(*parts, Text())


def own_words(stream: str, said: Sequence[str]) -> list[RenderableType]:
    """The end of what a failed target wrote to STREAM."""
    if not any(said):
        return []
    parts: list[RenderableType] = [Text(f"The target's own output, {stream}:", style="bold")]
    if len(said) > LONGEST:
        left_out = f"  … {len(said) - LONGEST} lines before, all in --json"
        parts.append(Text(left_out, style="dim"))
    return [*parts, Text("\n".join(f"  {line}" for line in said[-LONGEST:]))]


def phases(record: Record, run: Run, width: int) -> RenderableType:
    """Wall and CPU time from exec to exit, and the rows that they consist of."""
    timed = [r for r in record.runs if r.kind == "timing" and r.state == run.state] or [run]
    table = grid("", "wall s", "on CPU", "runnable", "blocked", "share")
    room = max(10, width - 46)
    for name, cost in run.rows.items():
        table.add_row(right(WORDS[name], room), *figures(cost), share(cost.wall, run.wall))
    for name, cpu in run.apart.items():
        if cpu >= 5_000_000:
            table.add_row(
                Text(right(WORDS[name], room), style="dim"), "", Text(seconds(cpu), style="dim")
            )
    total = Text()
    total.append(f"{run.state}: wall " if len(record.states) > 1 else "Wall ")
    total.append(f"{median(r.wall for r in timed) / 1e9:.2f} s", style="bold")
    total.append(f"{spread([r.wall for r in timed])}, CPU ")
    total.append(f"{median(r.cpu for r in timed) / 1e9:.2f} s", style="bold")
    total.append(f"{spread([r.cpu for r in timed])} from exec to exit; ")
    total.append(f"{number(run.imports, 'import')}, {number(run.modules, 'module')}")
    if len(timed) > 1:
        total.append(". Below: the run of median wall time.")
    elif run.kind == "detail":
        total.append(". Below: the detail run, which costs more than a timing run.")
    return Group(total, Text(), table, Text())


def rows(title: str, found: Sequence[Row], record: Record, width: int, top: int) -> RenderableType:
    """The TOP rows of a table by module or distribution."""
    found = [row for row in found if row.name not in (MAIN, ROOT)]
    if not found:
        return Group()
    shown = found[:top]
    wide = width >= WIDE
    columns = ["self s", "exclusive", "cumulative", "below"]
    table = grid(title, *columns, *([FIRST] if wide else []))
    links = [place(row.first, record) if row.first is not None else "" for row in shown]
    names = [title, *(row.name for row in shown)]
    name_room, link_room = fit(width - 41, names, [FIRST, *links] if wide else [])
    for row, link in zip(shown, links, strict=True):
        cells: list[RenderableType] = [
            Text(middle(" ".join(visible(row.name)), name_room)),
            seconds(row.own.wall),
            Text(seconds(row.exclusive), style="bold"),
            seconds(row.cumulative),
            f"{row.below:,}",
        ]
        if wide:
            cells.append(Text(left(link, link_room), style="dim"))
        table.add_row(*cells)
    rest = len(found) - len(shown)
    parts: list[RenderableType] = [table]
    if rest > 0:
        note = f"  … {rest:,} more: --top {len(found)}, or --json FILE for all"
        parts.append(Text(note, style="dim"))
    if not wide:
        note = f"  from {WIDE} columns on: where each was first imported"
        parts.append(Text(note, style="dim"))
    return Group(*parts, Text())


def legend() -> RenderableType:
    """What the columns mean."""
    return Group(
        Text(
            "self: without what it imports and without collections. exclusive: what goes away if"
            " it is never imported (a package with its submodules); the rest is needed elsewhere"
            " too. cumulative: while it was imported first. below: modules loaded meanwhile.",
            style="dim",
        ),
        Text(),
    )


def lines(record: Record, width: int) -> RenderableType:
    """The hottest lines of the module bodies of largest self time."""
    shown: list[HotLine] = []
    for line in record.lines:
        if not shown or line.module != shown[-1].module or line.sampled >= WORTH_A_ROW:
            shown.append(line)
    title = "Hottest lines"
    places = [place(Link(line.module, line.file, line.line), record) for line in shown]
    place_room, source_room = fit(width - 13, [title, *places], [line.source for line in shown])
    table = grid(title, "sampled s", "")
    for line, where in zip(shown, places, strict=True):
        source = Text(right(" ".join(visible(line.source)), source_room), "dim")
        table.add_row(Text(left(where, place_room)), seconds(line.sampled), source)
    parts: list[RenderableType] = [table]
    if len(shown) < len(record.lines):
        rest = len(record.lines) - len(shown)
        note = f"  and {rest} more below {WORTH_A_ROW // 1_000_000} ms: --json FILE for all"
        parts.append(Text(note, style="dim"))
    return Group(*parts, Text())


def first_use(found: FirstUse) -> RenderableType:
    """What the target puts off, as a sentence."""
    names = " ".join(visible(", ".join(found.known[:3]))) + (", …" if len(found.known) > 3 else "")
    count = len(found.known)
    text = f"The target is lazy itself: it names {number(count, 'module')} that it"
    text += f" has not loaded ({names}). "
    if len(found.failed) == count:
        text += "Importing them failed here, so what first use would add is not known."
    else:
        text += (
            f"Importing them as well loads {number(found.modules, 'module')} more and takes"
            f" {found.wall / 1e9:.1f} s more, {found.cpu / 1e9:.1f} of CPU (one run)."
        )
        if found.failed:
            text += f" {len(found.failed)} of them failed."
    return Group(Text(text), Text())


def remarks(record: Record) -> list[str]:
    """What the reader has to know beside the figures."""
    found = list(record.notes)
    children = record.processes[1:]
    if children:
        imports = sum(event.number > 0 for child in children for event in child.events)
        pids = ", ".join(f"{c.pid} ({c.started_by})" for c in children[:5])
        more = f" and {len(children) - 5} more" if len(children) > 5 else ""
        found.append(
            f"{number(len(children), 'child process', 'child processes')} with"
            f" {number(imports, 'import')} recorded apart: {pids}{more}"
        )
    if record.processes and record.processes[0].by_hand:
        count = number(len(record.processes[0].by_hand), "module")
        found.append(f"{count} put into sys.modules by hand, without an import")
    if record.output_lines and record.failure is None:
        found.append(f"the target printed {number(record.output_lines, 'line')}")
    return found
