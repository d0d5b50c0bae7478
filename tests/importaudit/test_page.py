"""The page of a Record, in a real browser: it loads nothing, and its numbers are the Record's."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from support.browser import chromium, opened
from support.command import importaudit
from support.records import large, tiny

from importaudit import record as records
from importaudit.analysis import costs
from importaudit.errors import OutputError
from importaudit.record import Cost, Event, Failure, Process, Record, Run, State
from importaudit.views import html

pytestmark = pytest.mark.xdist_group("browser")
MS = 1_000_000


def event(number: int, parent: int, module: str, wall: int) -> Event:
    cost = Cost(wall * MS, wall * MS // 2)
    return Event(number, parent, module, number, wall=wall * MS, phases={"body": cost}, line=1)


def example() -> Record:
    """`top` imports `left` and `right`, both need `shared`; nobody else needs `right.own`."""
    events = [
        Event(0, -1, "__main__", start=0, wall=100 * MS, loader=""),
        event(1, 0, "top", 10),
        event(2, 1, "left", 20),
        event(3, 2, "shared", 30),
        event(4, 1, "right", 5),
        event(5, 4, "right.own", 35),
        Event(6, 4, "shared", start=6, outcome="present"),
    ]
    runs = [
        Run("timing", w * MS, w * MS, {"body": Cost(w * MS, w * MS)}, {}, 5, 5, 0, state=name)
        for name, w in (("warm-complete", 100), ("cold-none", 300))
    ]
    return tiny(
        target="top",
        modules=["top"],
        runs=runs,
        states=[State("warm-complete", "warm", "complete"), State("cold-none", "cold", "none")],
        processes=[Process(7, events=events, finished=True)],
        distributions={"app 1": ["top", "left"], "lib 2": ["right", "right.own", "shared"]},
        sizes={"top": 100, "left": 2_000_000, "right": 3, "right.own": 4, "shared": 5_000_000},
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture
def page(browser: webdriver.Chrome, tmp_path: Path) -> webdriver.Chrome:
    return show(browser, tmp_path, example())


def show(browser: webdriver.Chrome, folder: Path, record: Record) -> webdriver.Chrome:
    file = folder / "page.html"
    file.write_bytes(html.render(record))
    browser.get_log("browser")  # type: ignore[no-untyped-call]
    opened(browser, file)
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]
    return browser


def script(page: webdriver.Chrome, words: str) -> Any:
    return page.execute_script(f"return {words}")


def values(page: webdriver.Chrome) -> dict[str, int]:
    """What the icicle shows, by name; what is no module is left out."""
    shown = script(page, "[$('icicle').data[0].ids, $('icicle').data[0].values, data.nodes.name]")
    return {shown[2][int(i)]: v for i, v in zip(*shown[:2], strict=True) if i.isdigit()}


def path(page: webdriver.Chrome) -> list[str]:
    return [step.text for step in page.find_elements(By.CSS_SELECTOR, "#path button")]


def click(page: webdriver.Chrome, label: str) -> None:
    """Click the part of the icicle that says LABEL."""
    for part in page.find_elements(By.CSS_SELECTOR, "#icicle g.slice"):
        if part.text.startswith(f"{label} "):
            ActionChains(page).move_to_element(part).click().perform()
            return
    raise AssertionError(f"nothing says {label}")


def column(page: webdriver.Chrome, table: str, number: int) -> list[str]:
    cells = page.find_elements(By.CSS_SELECTOR, f"#{table} tbody td:nth-child({number})")
    return [cell.text for cell in cells]


# --- the numbers ---------------------------------------------------------------------------


def test_the_numbers_are_the_records() -> None:
    record = large(300)
    found = html.content(record)
    rows = costs.by_module(record, costs.graph_of(record))

    shown = [(row[0], *row[1:6]) for row in found["modules"]]
    assert shown == [
        (row.name, row.own.wall, row.own.cpu, row.exclusive, row.cumulative, row.below)
        for row in rows
        if row.name.startswith("package")
    ]
    own = {e.module: e.own for e in record.processes[0].events}
    nodes = found["nodes"]
    for name, wall, cpu, size in zip(
        *(nodes[key][1:] for key in ("name", "wall", "cpu", "bytes")), strict=True
    ):
        assert (wall, cpu, size) == (own[name].wall, own[name].cpu, record.sizes[name])
    for tree in ("imported", "dominator"):  # both are trees over all modules
        assert all(reaches_the_root(nodes[tree], number) for number in range(301))


def reaches_the_root(parents: list[int], number: int) -> bool:
    for _ in parents:
        if number == 0:
            return True
        number = parents[number]
    return False


def test_by_who_imported_first_and_by_who_alone_needs_it(page: webdriver.Chrome) -> None:
    expected = {
        "import top": 100,
        "top": 100,
        "left": 50,
        "shared": 30,
        "right": 40,
        "right.own": 35,
    }
    assert values(page) == {name: wall * MS for name, wall in expected.items()}

    Select(page.find_element(By.ID, "tree")).select_by_value("dominator")
    assert values(page) == {name: wall * MS for name, wall in (expected | {"left": 20}).items()}

    Select(page.find_element(By.ID, "metric")).select_by_value("cpu")
    assert values(page)["right"] == 20 * MS

    Select(page.find_element(By.ID, "metric")).select_by_value("bytes")
    assert values(page)["import top"] == 7_000_107
    assert values(page)["left"] == 2_000_000


def test_states_are_bars_of_their_phases(page: webdriver.Chrome) -> None:
    shown = script(page, "[...$('bars').data].map((t) => [t.name, t.y, t.x])")

    assert shown == [["module bodies", ["warm-complete", "cold-none"], [0.1, 0.3]]]
    assert "0.300 s" in page.find_element(By.ID, "bars").text


# --- clicks --------------------------------------------------------------------------------


def test_a_click_zooms_and_the_path_leads_back(page: webdriver.Chrome) -> None:
    assert path(page) == ["import top"]
    click(page, "right")

    assert path(page) == ["import top", "top", "right"]
    assert set(values(page)) == {"right", "right.own"}
    click(page, "right")  # the one that fills the picture
    assert path(page) == ["import top", "top"]
    page.find_element(By.CSS_SELECTOR, "#path button").click()
    assert path(page) == ["import top"]
    assert len(values(page)) == 6


def test_search(page: webdriver.Chrome) -> None:
    search = page.find_element(By.ID, "search")
    search.send_keys("LIB")

    said = page.find_element(By.ID, "found").text
    assert said == "3 modules match, 0.070 s of their own"
    faint = script(page, "css('--faint')")
    colours = script(page, "$('icicle').data[0].marker.colors")
    assert colours.count(faint) == 3  # the target, top and left
    search.send_keys(Keys.ENTER)
    assert path(page)[-1] == "right"


def test_colours(page: webdriver.Chrome) -> None:
    by_distribution = script(page, "new Set($('icicle').data[0].marker.colors).size")
    Select(page.find_element(By.ID, "colour")).select_by_value("phase")
    names = [item.text for item in page.find_elements(By.CSS_SELECTOR, "#legend span")]

    assert by_distribution == 3
    assert script(page, "new Set($('icicle').data[0].marker.colors).size") == 2
    assert "module bodies" in names


def test_tables_sort_and_filter(page: webdriver.Chrome) -> None:
    assert column(page, "modules", 1)[0] == "top"
    page.find_element(By.XPATH, "//table[@id='modules']//th[text()='self s']").click()
    assert column(page, "modules", 2) == ["0.035", "0.030", "0.020", "0.010", "0.005"]
    page.find_element(By.XPATH, "//table[@id='modules']//th[text()='self s']").click()
    assert column(page, "modules", 2)[0] == "0.005"
    page.find_element(By.XPATH, "//table[@id='modules']//th[text()='module']").click()
    assert column(page, "modules", 1) == ["left", "right", "right.own", "shared", "top"]
    page.find_element(By.CSS_SELECTOR, "input[aria-label='filter Modules']").send_keys("right")
    assert column(page, "modules", 1) == ["right", "right.own"]


def test_light_and_dark(page: webdriver.Chrome) -> None:
    before = script(page, "getComputedStyle(document.body).backgroundColor")
    page.find_element(By.ID, "theme").click()
    after = script(page, "getComputedStyle(document.body).backgroundColor")

    assert {before, after} == {"rgb(255, 255, 255)", "rgb(20, 23, 26)"}
    assert script(page, "$('icicle').layout.paper_bgcolor") == script(page, "css('--back')")


# --- what can be in it ---------------------------------------------------------------------


def test_it_loads_nothing(page: webdriver.Chrome) -> None:
    assert script(page, "performance.getEntriesByType('resource').length") == 0
    refused = "fetch('data:,x').then(() => 'loaded', () => 'refused')"
    assert script(page, refused) == "refused"


HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>&amp;"


def test_names_are_never_markup(browser: webdriver.Chrome, tmp_path: Path) -> None:
    failure = Failure("exit", HOSTILE, HOSTILE, stderr=HOSTILE)
    record = tiny(
        target=HOSTILE, modules=[], notes=[HOSTILE],
        processes=[Process(7, events=[tiny().processes[0].events[0], event(1, 0, HOSTILE, 5)])],
        distributions={HOSTILE: [HOSTILE]}, failure=failure,
    )  # fmt: skip
    page = show(browser, tmp_path, record)

    assert script(page, "window.hacked === undefined")
    assert page.find_element(By.ID, "target").text == HOSTILE
    assert page.find_element(By.ID, "stderr").text == HOSTILE
    assert column(page, "modules", 1) == [HOSTILE]
    assert script(page, "document.querySelectorAll('img, #icicle a').length") == 0
    assert HOSTILE in page.find_element(By.ID, "icicle").text


def test_a_target_of_which_nothing_is_known(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = show(browser, tmp_path, tiny(processes=[], failure=Failure("vanished", "it is gone")))

    assert page.find_element(By.ID, "message").text == "it is gone"
    assert not page.find_element(By.ID, "chain").is_displayed()


def test_many_modules_stay_few_rectangles(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = show(browser, tmp_path, large(10_000))
    parts = page.find_elements(By.CSS_SELECTOR, "#icicle g.slice")

    assert 50 < len(parts) < 1500
    heights = script(page, "[...document.querySelectorAll('#icicle g.slice path')].map((p) => "
                     "p.getBBox().height)")  # fmt: skip
    assert min(heights) >= 1
    assert script(page, "$('icicle').data[0].values[0]") == sum(
        e.own.wall for e in large(10_000).processes[0].events
    )
    assert len(column(page, "modules", 1)) == 100


# --- the command ---------------------------------------------------------------------------


def test_show_writes_it(tmp_path: Path) -> None:
    records.write(example(), tmp_path / "record.json")
    done = importaudit("show", "record.json", "--html", "page.html", cwd=tmp_path)

    assert done.code == 0
    text = (tmp_path / "page.html").read_text()
    data = text.partition('<script id="data" type="application/json">')[2].partition("</script>")[0]
    assert json.loads(data) == json.loads(json.dumps(html.content(example())))


def test_without_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)

    with pytest.raises(OutputError) as caught:
        html.render(example())
    assert caught.value.hint == "pip install 'importaudit[html]'"
