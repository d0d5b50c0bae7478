"""A real Chromium, for pages of ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

PATIENCE = 60  # seconds


def missing() -> str:
    """What there is not, "" when all is there."""
    return ", ".join(name for name in ("chromium", "chromedriver") if shutil.which(name) is None)


@contextmanager
def chromium(width: int = 1400, height: int = 2000) -> Iterator[webdriver.Chrome]:
    """A browser without a window; skips where there is none, and fails under CI."""
    if absent := missing():
        reason = f"no {absent}: apt-get install chromium chromium-driver"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                     f"--window-size={width},{height}"):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(str(shutil.which("chromedriver"))))
    driver.set_page_load_timeout(PATIENCE)
    try:
        yield driver
    finally:
        driver.quit()


def opened(driver: webdriver.Chrome, page: Path) -> float:
    """Open PAGE; milliseconds from the start of loading to the end of its script."""
    driver.get(page.as_uri())
    return float(driver.execute_script("return document.documentElement.dataset.ready"))
