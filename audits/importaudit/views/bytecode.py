"""The result of ``importaudit bytecode`` on one screen."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from importaudit.analysis.bytecode import NOBODYS_FAULT
from importaudit.record import Bytecode, BytecodeReport, BytecodeRow, Root, Verdict
from importaudit.views.figures import WIDE, container, grid, middle, number, right, visible

REASONS = 3  # of a verdict that are named
# Bytecode with an unchecked hash is loaded whatever becomes of the source: for sealed folders only.
KIND, NAME = 16, 22  # columns of those, at least
SEALED = ("stdlib", "site-packages")


def show(report: BytecodeReport, console: Console, top: int) -> None:
    """Print REPORT, with TOP rows of its table."""
    for part in parts(report, console.width, top):
        console.print(part, soft_wrap=isinstance(part, Text) and part.no_wrap is True)


def parts(report: BytecodeReport, width: int, top: int) -> list[RenderableType]:
    """The parts of the report, in order."""
    found: list[RenderableType] = [heading(report), headline(report.summary), Text()]
    if report.summary.sources:
        found += [verdicts(report, width), Text()]
    rows = [row for row in report.summary.rows if unusable(row)]
    if rows:
        found += [table(rows, width, top), Text()]
        found += advice(report)
    found += [Text(f"Note: {one_line(note)}.", style="yellow") for note in report.notes]
    return found


def chain(summary: Bytecode, costs: Sequence[str], width: int, top: int) -> RenderableType:
    """The same for the sources of a chain of imports, as a section of another report.

    COSTS are sentences on what missing bytecode costs.
    """
    found: list[RenderableType] = [Text("Bytecode of the chain", style="bold"), headline(summary)]
    found += [Text(sentence) for sentence in costs]
    rows = [row for row in summary.rows if unusable(row)]
    if rows:
        found.append(table(rows, width, top))
    return Group(*found, Text())


def heading(report: BytecodeReport) -> RenderableType:
    """The interpreter, and what of its environment changes the answer."""
    facts = report.facts
    words = [f"looks for *.{facts.cache_tag}" if facts.cache_tag else "no cache tag"]
    if facts.optimize:
        words[0] += f".opt-{facts.optimize}"
    words[0] += ".pyc"
    if facts.pycache_prefix:
        words.append(f"below {facts.pycache_prefix}")
    if facts.check_hash != "default":
        words.append(f"checks hashes: {facts.check_hash}")
    if report.image is not None:
        words[:0] = container(report.image)
    line = f"{facts.executable}  Python {facts.version}\n{' · '.join(words)}"
    return Text("\n".join(visible(line)), style="dim")


def headline(summary: Bytecode) -> Text:
    """The one sentence."""
    if not summary.sources:
        return Text("No importable source found.", style="bold")
    text = Text()
    text.append(f"{summary.without:,} of {summary.folders:,}", style="bold")
    has = "package directory has" if summary.folders == 1 else "package directories have"
    text.append(f" {has} no usable bytecode (")
    text.append(f"{summary.percent:.1f} %", style="bold")
    text.append(f"); {number(summary.sources, 'source')}.")
    if summary.adds:
        text.append(f" Baking it adds about {megabytes(summary.adds)} MB.")
    return text


def verdicts(report: BytecodeReport, width: int) -> RenderableType:
    """How many sources have which verdict, and the commonest reasons."""
    reasons: dict[Verdict, Counter[str]] = {}
    for one in report.sources:
        reasons.setdefault(one.verdict, Counter())[one.reason] += bool(one.reason)
    lines: list[Text] = []
    for verdict, count in report.summary.verdicts.items():
        line = Text(f"  {verdict.value:<14} {count:>8,}")
        common = [pair for pair in reasons.get(verdict, Counter()).most_common() if pair[0]]
        why = ", ".join(f"{n:,} {one_line(reason)}" for reason, n in common[:REASONS])
        why += ", …" if len(common) > REASONS else ""
        if why:
            line.append(f"  {right(why, max(8, width - 28))}", style="dim")
        lines.append(line)
    return Group(*lines)


def table(rows: Sequence[BytecodeRow], width: int, top: int) -> RenderableType:
    """The TOP distributions with most sources that have no usable bytecode."""
    occurring = [v for v in Verdict if any(row.verdicts.get(v) for row in rows)]
    figures = sum(max(6, len(verdict.value)) + 2 for verdict in occurring) + 19
    wide = width >= max(WIDE, figures + KIND + NAME)
    if not wide:  # figures that fit: what is not shown here is in the list above
        occurring = []
    columns = ["sources", *(verdict.value for verdict in occurring)]
    columns += ["adds MB"] if wide else ["unusable", "adds MB"]
    drawn = grid("Distribution", *([""] if wide else []), *columns)
    room = width - sum(max(6, len(column)) + 2 for column in columns) - (16 if wide else 0)
    for row in rows[:top]:
        cells = [Text(middle(one_line(row.name), max(12, room)))]
        cells += [Text(row.kind, style="dim")] if wide else []
        cells.append(Text(f"{row.sources:,}"))
        cells += [Text(f"{row.verdicts.get(verdict, 0):,}") for verdict in occurring]
        cells += [] if wide else [Text(f"{unusable(row):,}", style="bold")]
        cells.append(Text(megabytes(row.adds)))
        drawn.add_row(*cells)
    if len(rows) <= top:
        return drawn
    more = f"  … and {len(rows) - top:,} more: --top {len(rows)}, or --json FILE for all"
    return Group(drawn, Text(more, style="dim"))


def advice(report: BytecodeReport) -> list[RenderableType]:
    """The commands that compile what has no usable bytecode: one for each kind of folder."""
    found: list[RenderableType] = []
    blocked = report.summary.verdicts.get(Verdict.UNCACHEABLE, 0)
    where = " where it can be written, for instance while the image is built" if blocked else ""
    if report.image is not None:
        where = " in the Dockerfile, after what installs them"
    for sealed in (True, False):
        roots = [r for r in report.roots if r.unusable and (r.kind in SEALED) is sealed]
        roots = [root for root in roots if not root.path.endswith((".zip", ".egg", ".whl"))]
        if roots:
            what = "sealed" if sealed else "edited"
            run = "RUN " if report.image is not None else ""
            line = f"Next{where} ({what} folders): {run}{command(report, roots, sealed)}"
            found.append(Text(one_line(line), style="cyan", no_wrap=True))
    if not report.verified:
        note = "Some may be templates that never compile: --verify tells them apart."
        found.append(Text(note, style="dim"))
    return [*found, Text()]


def command(report: BytecodeReport, roots: Sequence[Root], sealed: bool) -> str:
    """The call of compileall for ROOTS; a hash, unlike a time stamp, survives copying."""
    facts = report.facts
    words = [facts.executable, "-m", "compileall", "-q", "-j", "0"]
    # It skips what has the right mtime, whatever the size, the content or the rest of the file.
    below = tuple(f"{root.path}/" for root in roots)
    judged = [one.verdict for one in report.sources if one.source.startswith(below)]
    if Verdict.STALE in judged or Verdict.DAMAGED in judged:
        words.append("-f")
    if facts.optimize:
        words += ["-o", str(facts.optimize)]
    words += ["--invalidation-mode", "unchecked-hash" if sealed else "checked-hash"]
    return shlex.join([*words, *(root.path for root in roots)])


def unusable(row: BytecodeRow) -> int:
    return row.sources - sum(row.verdicts.get(verdict, 0) for verdict in NOBODYS_FAULT)


def megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f}" if count == 0 or count >= 50_000 else f"{count / 1e6:.3f}"


def one_line(text: str) -> str:
    return " ".join(visible(text))
