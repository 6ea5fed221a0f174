"""What came of one batch that runs a query: its rows, whether they may be believed, what went wrong.

Sends nothing and asks nothing; statements of a batch are known by their number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .readonly_caps import Rows
from .readonly_wire import ServerError


class Unpinned(Exception):
    """The session is not what it was made to be: nothing was run on it."""


@dataclass(slots=True)
class Batch:
    """``place`` is the number of the query, ``verified`` that of the statement without which nothing runs.

    ``same`` says that the columns of the query are those that its rows are read by: no row is taken before.
    """

    rows: Rows
    place: int
    verified: int | None = None
    same: bool = field(init=False)
    error: ServerError | None = None

    def __post_init__(self) -> None:
        self.same = self.verified is None  # or it is yet to be told

    @property
    def described(self) -> int | None:
        """The number of the statement that tells the columns: the text is read between the two."""
        return None if self.verified is None else self.verified + 2

    def fails(self, at: int, error: ServerError) -> None:
        """Note what the server refused; a place is one in the text only before that is run.

        Raises: Unpinned.
        """
        if self.verified is not None and at <= self.verified:
            raise Unpinned(error.message)
        self.error = error if at < self.place else ServerError(error.state, error.message)
