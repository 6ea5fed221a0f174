"""Open subscriptions while operators change the policies: they see what their caller is served now.

The policies are files, and the reload is the one that operators do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from nonsuch import App, reload_policies, resource, tool

from .live import Json, Live, Stream, play
from .stage import stage
from .test_listen import ALL, TOOLS, UPDATED, Board, heard, words

HIDES: Final = '@id("no") forbid (principal, action == Action::"see", resource == Audience::"roles:r");\n'
CLOSES: Final = '@id("no") forbid (principal, action == Action::"present", resource == Scope::"s");\n'
REFUSES: Final = '@id("no") forbid (principal, action == Action::"resources/always", resource);\n'
BROKEN: Final = "permit("


class Office(Board):
    """A board whose policies are a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(policies_dir=directory)
        self.app = self.again()
        self.live = Live(self.app)

    def again(self) -> App:
        return stage(
            tools={
                "always": tool("A", words, policy="a:b"),
                "role": tool("R", words, policy="a:b", visible_to=["r"]),
            },
            resources=[
                resource("a:always", "always", "A", words, policy="a:b"),
                resource("a:role", "role", "R", words, visible_to=["r"]),
                resource("a:scoped", "scoped", "S", words, scope="s"),
            ],
            resolve_token=self._resolve,
            policies_dir=self.directory,
        )

    def says(self, text: str) -> bool:
        """Write the policies, and reload; whether they are in force."""
        (self.directory / "own.cedar").write_text(text)
        return not reload_policies(self.app).faults

    async def opened(self, caller: str) -> Stream:
        uris = ["a:always", "a:role", "a:scoped"]
        return await self.listen(caller, **ALL, resourceSubscriptions=uris)

    async def updates(self, stream: Stream) -> list[Any]:
        """The resources whose updates arrive when all of them are updated."""
        for uri in ("a:always", "a:role", "a:scoped"):
            self.app.notify.resource_updated(uri)
        told = await heard(stream)
        return [params["uri"] for method, params in told if method == UPDATED]


CASES: Final[dict[str, tuple[str, list[str], list[str]]]] = {
    "hidden": (HIDES, [TOOLS, "notifications/resources/list_changed"], ["a:always", "a:scoped"]),
    "under a scope that nobody has": (CLOSES, [], ["a:always", "a:role"]),
    "refused": (REFUSES, [], ["a:role", "a:scoped"]),
}


@pytest.mark.parametrize("what", CASES)
def test_a_reload_reaches_open_streams(what: str, tmp_path: Path) -> None:
    policies, lists, left = CASES[what]

    async def scene() -> None:
        office = Office(tmp_path)
        stream = await office.opened("same")
        everything = ["a:always", "a:role", "a:scoped"]
        assert await office.updates(stream) == everything
        assert office.says(policies)
        assert [method for method, _ in await heard(stream)] == lists
        assert await office.updates(stream) == left
        assert not office.says(BROKEN), "a set that is refused changes nothing"
        assert await heard(stream) == []
        assert await office.updates(stream) == left
        assert office.says("")
        assert [method for method, _ in await heard(stream)] == lists
        assert await office.updates(stream) == everything
        office.app.notify.close()
        await stream.rest()

    play(scene())


def test_a_reload_tells_a_caller_nothing_that_is_not_its_own(tmp_path: Path) -> None:
    """One who never saw what was hidden now is told of no change, and hears no update of it."""

    async def scene() -> None:
        office = Office(tmp_path)
        stream = await office.opened("nobody")
        told: list[Json] = []
        for policies in (HIDES, CLOSES, REFUSES, ""):
            assert office.says(policies)
            told += [{"method": method} for method, _ in await heard(stream)]
        assert told == []
        office.app.notify.close()
        await stream.rest()

    play(scene())
