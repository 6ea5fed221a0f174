"""The server that the client tests share."""

from collections.abc import Iterator

import pytest

from .watched import Service, serving


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """The drafts app with static tokens."""
    with serving("static") as running:
        yield running
