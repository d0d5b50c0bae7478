"""The report as one page that opens anywhere and loads nothing.

The page draws what is in the Record: the figures go into it as JSON, and ``page/page.js`` shows
them. The chart library is plotly.js, as the plotly package carries it.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec

from importaudit.analysis import advice, costs, icicle, states, statistics
from importaudit.analysis.costs import Row
from importaudit.analysis.distributions import MAIN
from importaudit.analysis.graph import ROOT, ImportGraph
from importaudit.analysis.statistics import Spread
from importaudit.errors import OutputError
from importaudit.record import OWN_PHASES, Record, Run
from importaudit.views.bytecode import headline, unusable
from importaudit.views.figures import place, visible
from importaudit.views.terminal import WORDS, circumstances, remarks

PAGE = files("importaudit.views") / "page"


def render(record: Record) -> bytes:
    """RECORD as a page. Raises OutputError where the chart library is missing."""
    page = (PAGE / "page.html").read_text("utf-8")
    data = msgspec.json.encode(content(record)).decode("utf-8", "backslashreplace")
    # Nothing in the data may end the script element that it stands in.
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    parts = {
        "STYLE": (PAGE / "page.css").read_text("utf-8"),
        "LIBRARY": library(),
        "DATA": data,
        "SCRIPT": (PAGE / "page.js").read_text("utf-8"),
    }
    for name, part in parts.items():  # each stands there once; parts are not looked into
        before, _, after = page.rpartition(f"/*{name}*/")
        page = before + part + after
    return page.encode("utf-8", "backslashreplace")


def library() -> str:
    """The chart library's source; raises OutputError where there is none."""
    try:
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise OutputError(
            "a page needs plotly, which is not installed", "pip install 'importaudit[html]'"
        ) from error
    source: str = get_plotlyjs()
    return source


def content(record: Record) -> dict[str, Any]:
    """What the page shows, in the Record's units: nanoseconds and bytes."""
    found: dict[str, Any] = {
        "target": " ".join(visible(record.target)),
        "tool": record.tool,
        "created": record.created,
        "python": " ".join(visible(record.interpreter.executable)),
        "version": record.interpreter.version.split(" ")[0],
        "facts": [" ".join(visible(fact)) for fact in circumstances(record)],
        "failure": record.failure and {
            "message": "\n".join(visible(record.failure.message)),
            "hint": "\n".join(visible(record.failure.hint)),
            "stderr": "\n".join(visible(record.failure.stderr)),
        },
        "notes": [" ".join(visible(note)) for note in remarks(record)],
        "phases": [[phase, WORDS[phase]] for phase in OWN_PHASES],
        "states": state_bars(record),
        "lines": [
            [line.module, f"{line.file}:{line.line}", line.source, line.sampled]
            for line in record.lines
        ],
    }  # fmt: skip
    if record.bytecode is not None and record.bytecode.sources:
        found["bytecode"] = headline(record.bytecode).plain
        found["unbaked"] = [
            [row.name, row.kind, row.sources, unusable(row), row.adds]
            for row in record.bytecode.rows
        ]
    if record.processes and record.processes[0].events:
        found |= chain(record, costs.graph_of(record))
    return found


def chain(record: Record, graph: ImportGraph) -> dict[str, Any]:
    """The trees, the tables and what to do next."""
    modules = icicle.nodes(record, graph)
    rows = {row.name: row for row in costs.by_module(record, graph)}
    by_distribution = costs.by_distribution(record, graph)
    return {
        "nodes": {
            "name": ["\ufffd".join(visible(node.name)) for node in modules],
            "distribution": [node.distribution for node in modules],
            "imported": [node.imported for node in modules],
            "dominator": [node.dominator for node in modules],
            "wall": [node.wall for node in modules],
            "cpu": [node.cpu for node in modules],
            "bytes": [node.bytes for node in modules],
            "phases": [node.phases for node in modules],
        },
        "modules": [cells(row, record) for row in rows.values() if row.name not in (MAIN, ROOT)],
        "distributions": [
            cells(row, record) for row in by_distribution if row.name not in (MAIN, ROOT)
        ],
        "next": [
            {
                "saving": step.saving,
                "what": step.what,
                "known": step.known,
                "how": step.how,
                "where": place(step.where, record) if step.where is not None else "",
            }
            for step in advice.steps(record, graph)
        ],
    }


def cells(row: Row, record: Record) -> list[str | int]:
    """A row of a table: name, self (wall, CPU), exclusive, cumulative, below, first imported at."""
    first = place(row.first, record) if row.first is not None else ""
    name = "\ufffd".join(visible(row.name))
    return [name, row.own.wall, row.own.cpu, row.exclusive, row.cumulative, row.below, first]


def state_bars(record: Record) -> list[dict[str, Any]]:
    """For each state, the rows of its run of median wall time; without states, of the one run."""
    bars = []
    for row in states.rows(record):
        run = states.middle(record, row.state.name)
        if run is not None:
            bars.append(bar(row.state.name, row.wall, run, row.state.lower_bound))
    if not bars and record.runs:
        run = record.runs[record.representative]
        bars.append(bar(run.kind, statistics.spread([run.wall]), run))
    return bars


def bar(name: str, wall: Spread, run: Run, bound: str = "") -> dict[str, Any]:
    """The bar of RUN, one of those that WALL is of."""
    rows = [[WORDS[phase], cost.wall] for phase, cost in run.rows.items()]
    spread = {"wall": wall.median, "least": wall.least, "most": wall.most, "runs": wall.count}
    return {"name": name, **spread, "rows": rows, "bound": bound}
