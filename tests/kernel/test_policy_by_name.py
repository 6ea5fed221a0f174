"""A policy is a permission's name, or what `can` makes of one, wherever it is declared."""

from __future__ import annotations

from nonsuch import Agent, Registry, can, define_app_mcp, expose, grant
from nonsuch.kernel.declare import Can

BOT = Agent("bot", roles={"clerk"})


def declared(policy: str | Can) -> list[str]:
    registry = Registry()

    @registry.query(policy=policy, mcp=expose("Letters"))
    def letters() -> list[str]:
        return []

    @registry.action(policy=policy, mcp=expose("Send"))
    def send() -> str:
        return ""

    app = define_app_mcp(registry, name="office", include="exposed", grants=[grant("clerk", "letter:send")])
    return sorted(app.kernel.view_for(BOT).table.tools)


def test_a_name_is_as_good_as_what_is_made_of_it() -> None:
    assert declared("letter:send") == declared(can("letter:send")) == ["letters", "send"]
