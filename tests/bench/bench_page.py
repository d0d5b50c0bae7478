"""How long a browser takes to open the page of a target of 10,000 modules, and to draw it."""

from pathlib import Path
from statistics import median

from support.browser import chromium, opened
from support.records import large

from importaudit.views import html

MODULES, OPENINGS = 10_000, 11
LIMIT = 2.0  # seconds


def bench_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(html.render(large(MODULES)))
    with chromium() as driver:
        found = sorted(opened(driver, page) / 1000 for _ in range(OPENINGS))
    middle = median(found)
    print(
        f"\n{MODULES:,} modules, {page.stat().st_size / 1e6:.1f} MB: from navigation to all drawn"
        f" {middle:.2f} s (median of {OPENINGS}; {found[0]:.2f} to {found[-1]:.2f})"
    )
    assert middle < LIMIT
