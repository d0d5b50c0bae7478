"""Every figure in README and docs is what `make bench` measured."""

import re

import figures


def test_the_documents_say_what_was_measured() -> None:
    for path in figures.documents():
        assert figures.filled(path.read_text()) == path.read_text(), path


def test_a_changed_figure_is_noticed() -> None:
    changed = "<!-- figure: startup -->1 ms<!-- end -->"

    assert figures.filled(changed) != changed


def test_every_figure_is_quoted_somewhere() -> None:
    text = "".join(path.read_text() for path in figures.documents())

    assert set(re.findall(r"<!-- figure: ([a-z-]+) -->", text)) == set(figures.FIGURES)
