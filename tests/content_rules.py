"""The rules of resources, prompts and completions, naive as `rules.py`: what comes of each, in plain values.

Written from the documents. Imports nothing of nonsuch.
"""

from __future__ import annotations

from urllib.parse import unquote

from .rules import Caller, Content, Json, Rule, Verdict, World, admits, every_rule, parties, presents, run
from .rules import Tool as Ran

PLAIN = frozenset(chr(code) for code in range(0x21, 0x7F)) - frozenset("/?#")


def sees(content: Content, caller: Caller) -> bool:
    """Whether a caller may know of content: every party must be of its audience."""
    return all(admits(content.audience, party) for party in parties(caller))


def shown(world: World, caller: Caller, kind: str) -> list[str]:
    """What a list of the caller's holds, in its order: names, or URIs."""
    seen = [each for each in world.content if each.kind == kind and sees(each, caller)]
    return sorted(each.name if kind == "prompt" else each.uri for each in seen)


def variable(template: str, uri: str) -> str | None:
    """The value of a template's `id` in a URI, or nothing if the URI is none of it."""
    before, _, after = template.partition("{id}")
    held = uri[len(before) : len(uri) - len(after)]
    fits = uri == before + held + after and held != "" and set(held) <= PLAIN
    value = unquote(held, errors="replace") if fits else "\ufffd"
    return None if "\ufffd" in value else value


def reading(world: World, caller: Caller, uri: str) -> Verdict:
    """What must come of reading a URI: what is declared at it, else the first template that it is one of."""
    seen = [each for each in world.content if sees(each, caller)]
    for each in seen:
        if each.kind == "resource" and each.uri == uri:
            return used(world, caller, each)
    for each in seen:
        if each.kind == "template" and variable(each.uri, uri) is not None:
            return used(world, caller, each)
    return Verdict("hidden", "X_MCP_RESOURCE_UNKNOWN")


def rendering(world: World, caller: Caller, name: str, arguments: dict[str, Json]) -> Verdict:
    """What must come of a prompt: visibility, then scope, then its one argument, then policy."""
    found = named(world, caller, "prompt", name)
    if found is None:
        return Verdict("hidden", "X_MCP_PROMPT_UNKNOWN")
    return used(world, caller, found, fits=set(arguments) == {"id"} and isinstance(arguments["id"], str))


def completing(world: World, caller: Caller, kind: str, name: str) -> Verdict:
    """What must come of a completion: visibility, then scope, then policy."""
    found = named(world, caller, kind, name)
    if found is None:
        return Verdict("hidden", "X_MCP_PROMPT_UNKNOWN")
    verdict = used(world, caller, found)
    return Verdict("ok") if verdict.ran else verdict


def values(world: World, caller: Caller, kind: str, name: str, argument: str, value: str) -> list[str]:
    """The values of a completion that is answered."""
    found = named(world, caller, kind, name)
    if found is None or argument != "id":
        return []
    return [each for each in found.completes if each.startswith(value)]


def named(world: World, caller: Caller, kind: str, name: str) -> Content | None:
    """The content of a name (a prompt's) or of a template, if the caller may know of it."""
    for each in world.content:
        if each.kind == kind and name == (each.name if kind == "prompt" else each.uri):
            return each if sees(each, caller) else None
    return None


def used(world: World, caller: Caller, content: Content, *, fits: bool = True) -> Verdict:
    """Scope, arguments, policy, and then the function."""
    scope = content.scope
    if scope is not None and not all(presents(party, scope) for party in parties(caller)):
        return Verdict("scope-denied", "X_MCP_SCOPE_DENIED")
    if not fits:
        return Verdict("invalid-args", "X_INPUT_INVALID")
    if not all(permitted(world, party, content) for party in parties(caller)):
        return Verdict("policy-denied", "X_FORBIDDEN")
    return run(Ran(content.name, behaves=content.behaves))


def permitted(world: World, party: Caller, content: Content) -> bool:
    """Whether policies without a condition permit: ours do what asks for no permission of the app's."""
    about = [rule for rule in every_rule(world) if covers(rule, content)]
    of_party = [rule for rule in about if rule.role is None or rule.role in party.roles]
    ours = content.permission is None and admits(content.audience, party)
    permits = ours or any(rule.effect == "permit" for rule in of_party)
    return permits and not any(rule.effect == "forbid" for rule in of_party)


def covers(rule: Rule, content: Content) -> bool:
    """Whether a policy is about content."""
    return rule.on in ("any", content.action, content.permission)
