"""The report as Markdown, short enough for a CI step summary: under 60 lines, whatever is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from importaudit.analysis import advice, costs, states
from importaudit.analysis.distributions import MAIN
from importaudit.analysis.graph import ROOT, ImportGraph
from importaudit.analysis.states import Row, Stack
from importaudit.record import Bytecode, Failure, Record
from importaudit.views.bytecode import headline, megabytes, unusable
from importaudit.views.figures import number, place, seconds, share, visible
from importaudit.views.state_table import several

TOP = 5  # rows of a table
LONGEST = 160  # characters of a cell
TAIL = 4  # lines of what a failed target wrote
# What Markdown, or GitHub's dialect of it, would take for more than text.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#&$!])")


def render(record: Record) -> bytes:
    """RECORD as Markdown. Names come from strangers' code: nothing in them is markup."""
    return ("\n".join(lines(record)) + "\n").encode("utf-8", "backslashreplace")


def lines(record: Record) -> Iterator[str]:
    yield f"### importaudit: {plain(record.target)}"
    yield ""
    yield plain(surroundings(record))
    if record.failure is not None:
        yield from failure(record.failure)
    if not record.processes:
        return
    graph = costs.graph_of(record)
    yield from state_table(states.rows(record), record)
    yield from next_steps(record, graph)
    found = states.stack(record)
    if found is not None:
        yield from stack(found)
    if record.bytecode is not None:
        yield from bytecode(record.bytecode)
    yield from distributions(record, graph)


def plain(words: str) -> str:
    """WORDS as one line of text that stands for itself; mentions notify nobody."""
    line = " ".join(visible(words))
    line = line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
    return SPECIAL.sub(r"\\\1", line).replace("@", "@\u200b")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left_out: int = 0) -> Iterator[str]:
    """A table, figures to the right; its first column is text."""
    yield ""
    yield f"| {' | '.join(header)} |"
    yield f"|{'|'.join(['---', *['---:'] * (len(header) - 1)])}|"
    for row in rows:
        yield f"| {' | '.join(plain(cell) for cell in row)} |"
    if left_out > 0:
        yield f"| … and {left_out:,} more |{' |' * (len(header) - 1)}"


def surroundings(record: Record) -> str:
    """One line on what was measured where."""
    run = record.runs[record.representative]
    words = [
        f"Python {record.interpreter.version.split(' ')[0] or '?'}",
        f"{number(run.imports, 'import')}, {number(run.modules, 'module')}",
        number(record.environment.processors, "processor"),
        f"{record.environment.file_system} file system",
    ]
    image = record.environment.image
    if image is not None:
        words.insert(0, f"image {image.reference} as {image.user}")
    return " · ".join(words)


def failure(problem: Failure) -> Iterator[str]:
    """Why the target did not come to its end, and the end of what it said."""
    yield ""
    yield f"**Failed**: {plain(problem.message)}"
    if problem.hint:
        yield f"Next: {plain(problem.hint)}"
    said = [line for line in visible(problem.stderr) if line.strip()]
    yield ""
    yield from (f"    {line[:LONGEST]}" for line in said[-TAIL:])  # code, as it is


def state_table(rows: Sequence[Row], record: Record) -> Iterator[str]:
    """Wall and CPU time of each state; of a run without one, its own."""
    if not rows:
        run = record.runs[record.representative]
        yield from table(["", "wall s", "CPU s"], [[run.kind, seconds(run.wall), seconds(run.cpu)]])
        return
    header = ["State", "wall s", "CPU s", "MB read", "compiled"]
    yield from table(header, [
        [row.state.name, several(row.wall, True), several(row.cpu, True), f"{row.disk / 1e6:,.1f}",
         f"{row.compiled:,}"]
        for row in rows
    ])  # fmt: skip


def next_steps(record: Record, graph: ImportGraph) -> Iterator[str]:
    """What would save most."""
    found = advice.steps(record, graph)
    if found:
        yield ""
        yield "**What to do next**"
        yield ""
    for step in found:
        where = f" {place(step.where, record)}" if step.where is not None else ""
        saving, how = f"{step.saving / 1e9:.2f} s", plain(f"{step.how}{where}")
        yield f"- **{saving}** {plain(step.what)} ({plain(step.known)}): {how}"


def stack(found: Stack) -> Iterator[str]:
    """Where the cold time goes."""
    yield from table(
        ["Where the cold time goes", "wall s", "share"],
        [[part.name, seconds(part.wall), share(part.wall, found.wall)] for part in found.parts],
    )


def bytecode(summary: Bytecode) -> Iterator[str]:
    """How much of the chain has bytecode, and who has least."""
    yield ""
    yield f"Bytecode of the chain: {headline(summary).plain}"
    rows = [row for row in summary.rows if unusable(row)]
    if rows:
        header = ["Distribution", "sources", "unusable", "adds MB"]
        yield from table(header, [
            [row.name, f"{row.sources:,}", f"{unusable(row):,}", megabytes(row.adds)]
            for row in rows[:TOP]
        ], len(rows) - TOP)  # fmt: skip


def distributions(record: Record, graph: ImportGraph) -> Iterator[str]:
    """Whose modules take longest."""
    found = costs.by_distribution(record, graph)
    rows = [row for row in found if row.name not in (MAIN, ROOT)]
    if rows:
        header = ["Distribution", "self s", "exclusive s", "modules below"]
        yield from table(header, [
            [row.name, seconds(row.own.wall), seconds(row.exclusive), f"{row.below:,}"]
            for row in islice(rows, TOP)
        ], len(rows) - TOP)  # fmt: skip
