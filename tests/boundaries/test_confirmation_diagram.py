"""The decision page draws the states of a confirmation as the kernel's table has them."""

from __future__ import annotations

from .confirmation_diagram import BLOCK, PAGE, diagram, page


def test_the_page_draws_the_table() -> None:
    """A stale drawing fails: run ``python -m tests.boundaries.confirmation_diagram``."""
    assert PAGE.read_text() == page()
    assert len(BLOCK.findall(PAGE.read_text())) == 1


def test_every_change_is_an_arrow() -> None:
    assert "    pending --> approved: before it lapses\n" in diagram()
    assert "    running --> approved\n" in diagram()
    assert diagram().count("-->") == 1 + 9 + 4
