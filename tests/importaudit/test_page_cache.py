"""The page cache, as the kernel tells it: what is in it, and what eviction really evicted."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from importaudit.errors import AuditError, UsageError
from importaudit.measure import pagecache
from importaudit.measure.machine import HERE, Cached
from importaudit.probe.pagecache import PAGE, evict, load, pages_by_mincore, pages_in_cache

cached = HERE.cached


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file of nine pages and a bit, on disk."""
    path = tmp_path / "file"
    with path.open("wb") as out:
        out.write(os.urandom(9 * PAGE + 5))
        out.flush()
        os.fsync(out.fileno())
    return str(path)


def test_what_was_written_is_cached_until_it_is_evicted(file: str) -> None:
    assert cached([file]) == Cached(1, 10 * PAGE, 10 * PAGE)
    evict([file])
    assert cached([file]) == Cached(1, 10 * PAGE, 0)
    load([file])
    assert cached([file]) == Cached(1, 10 * PAGE, 10 * PAGE)


def test_what_somebody_has_mapped_and_read_stays_and_is_counted(file: str) -> None:
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:  # noqa: PTH123
        evict([file])
        assert mapped[0] is not None  # reads the first page, at least
        evict([file])
        left = cached([file])

    assert left.resident is not None
    assert PAGE <= left.resident <= left.bytes


def test_mincore_and_cachestat_agree(file: str) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        for change in (load, evict, load):
            change([file])
            expected = pages_in_cache(descriptor, 10)
            assert pages_by_mincore(descriptor, 10) == expected
    finally:
        os.close(descriptor)


def test_an_empty_file_has_no_pages(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    descriptor = os.open(empty, os.O_RDONLY)
    try:
        assert pages_by_mincore(descriptor, 0) == 0
    finally:
        os.close(descriptor)
    assert cached([str(empty)]) == Cached(1, 0, 0)


def test_what_cannot_be_opened_is_left_out(tmp_path: Path, file: str) -> None:
    paths = [str(tmp_path / "missing"), file, str(tmp_path)]
    evict(paths)
    load(paths)

    assert cached([str(tmp_path / "missing"), file]) == Cached(1, 10 * PAGE, 10 * PAGE)


def test_dropping_all_caches_needs_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagecache, "DROP_CACHES", tmp_path / "missing" / "drop_caches")

    with pytest.raises(UsageError) as caught:
        pagecache.check_drop()
    assert "needs root" in caught.value.hint
    with pytest.raises(AuditError, match="drop_caches: No such file or directory"):
        pagecache.drop()


def test_dropping_all_caches_asks_for_pages_and_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not the real one: it is the whole machine's, and others measure on it.
    control = tmp_path / "drop_caches"
    control.touch()
    monkeypatch.setattr(pagecache, "DROP_CACHES", control)
    pagecache.check_drop()
    pagecache.drop()

    assert control.read_text() == "3"
