"""Small apps whose one handler is the scene of a test, and who may call them. Knows no test."""

from __future__ import annotations

from typing import Any, Final

from nonsuch import Agent, App, Human, Principal, Registry, define_app_mcp, grant, prompt, resource, tool

ROLES: Final = frozenset({"r"})
CALLERS: Final[dict[str, Principal]] = {
    "t": Agent("a", roles=ROLES),
    "same": Agent("a", roles={*ROLES, "more"}, scopes={"s"}),
    "else": Agent("a", roles=ROLES, org="acme"),
    "other": Agent("b", roles=ROLES),
    "ann": Human("ann", roles=ROLES).delegate("bot"),
    "bob": Human("bob", roles=ROLES).delegate("bot"),
    "bot": Agent("bot", roles=ROLES),
    "nobody": Agent("n"),
}


def resolve(token: str) -> Principal | None:
    """A token is a name."""
    return CALLERS.get(token)


def stage(handler: Any = None, **given: Any) -> App:
    """An app with one tool `t`, beside what is given; everything is permitted to the role `r`."""
    face = given.pop("face", {})
    tools = {"t": tool("T", handler, policy="a:b", **face)} if handler is not None else {}
    tools |= given.pop("tools", {})
    settings: dict[str, Any] = {
        "resolve_token": resolve,
        "grants": [grant("r", "any")],
        "name": "stage",
        "rate_limits": None,
        **given,
    }
    return define_app_mcp(Registry(), tools=tools, **settings)


def reading(read: Any, **given: Any) -> App:
    """An app with one resource at `a:b`."""
    return stage(resources=[resource("a:b", "b", "B", read, mime_type="text/plain")], **given)


def prompting(render: Any, **given: Any) -> App:
    """An app with one prompt `p`."""
    return stage(prompts=[prompt(render, description="P", name="p")], **given)
