"""The options that several commands share, and the app that they choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from ..edge.app import App
from ..edge.draft import Draft, NotBooted
from .locate import apps, one
from .rules import Rules, draft_of, rules_of

Module = Annotated[str | None, Parameter(name="--app", help="module that exports `mcp`")]
Server = Annotated[str | None, Parameter(name="--server", help="name of one app, where `mcp` is a list")]
AsJson = Annotated[
    bool,
    Parameter(name="--json", negative="", help="answer in JSON, in the shape that `nonsuch --help` tells"),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Asked:
    """Which app a command speaks of, and how it answers: `json` is read where answers are printed."""

    app: Module = None
    server: Server = None
    json: AsJson = False

    def drafts(self) -> tuple[Draft, ...]:
        """Return what the apps declare: all, or the one that is named.

        A module is imported up to its first app that does not boot; that one is returned alone.
        Raises: Refused, BootError.
        """
        try:
            chosen = apps(self.app) if self.server is None else (self.one(),)
        except NotBooted as refusal:
            if self.server not in (None, refusal.draft.name):
                raise
            return (refusal.draft,)
        return tuple(draft_of(each) for each in chosen)

    def one(self) -> App:
        """Return the one app to speak of. Raises: Refused, BootError."""
        return one(self.app, self.server)

    def rules(self) -> Rules:
        """Return what decides for that app. Raises: Refused, BootError."""
        return rules_of(self.one())


ASKED: Final = Asked()
