"""What a low caller does in both worlds beside calling tools: lists, pages, resources, prompts, completions.

Also the parts of a request that are not its arguments: mirrored headers, capabilities, rounds, wires.
Everything is compared by `Two.same`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Final, cast

from ..rules import Content
from ..world import JSON_ONLY, MODERN, PROTOCOL, REVISIONS, WIRES, Answer, Request, World, call, mcp, over
from .hidden_content import (
    CAPABILITIES,
    CONDITIONS,
    CONTENT,
    HEADERS,
    PROMPT_ARGUMENTS,
    PROMPTS,
    TEMPLATES,
    URIS,
)
from .two_worlds import Two, absent, near, spellings

LISTS: Final = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
SPOKEN: Final[Mapping[str, object]] = {"progressToken": 0, f"{PROTOCOL}logLevel": "debug"}
LEGACY: Final = REVISIONS[:2]


def reading(token: str | None, revision: str, uri: object, **more: object) -> Request:
    return mcp(token, revision, "resources/read", {"uri": uri, **more}, meta=SPOKEN)


def getting(token: str | None, revision: str, name: object, arguments: object, **more: object) -> Request:
    return mcp(token, revision, "prompts/get", {"name": name, "arguments": arguments, **more}, meta=SPOKEN)


def completing(
    token: str | None, revision: str, kind: str, name: str, value: str, argument: str = "id"
) -> Request:
    """A `completion/complete` for a prompt or a template."""
    ref = {"type": "ref/prompt", "name": name} if kind == "prompt" else {"type": "ref/resource", "uri": name}
    params = {
        "ref": ref,
        "argument": {"name": argument, "value": value},
        "context": {"arguments": {"id": "x"}},
    }
    return mcp(token, revision, "completion/complete", params)


def capable(request: Request, capabilities: Mapping[str, object]) -> Request:
    """The same request of a client that declares more."""
    message = json.loads(request.body)
    message["params"]["_meta"][f"{PROTOCOL}clientCapabilities"] = capabilities
    return dataclasses.replace(request, body=json.dumps(message).encode())


# lists


def lists(two: Two, token: str | None) -> None:
    """Every list to its end, page by page."""
    for revision in REVISIONS:
        for method in LISTS:
            answer = two.same(mcp(token, revision, method))
            while (cursor := cursor_of(answer)) is not None:
                answer = two.same(mcp(token, revision, method, {"cursor": cursor}))


def cursor_of(answer: Answer) -> str | None:
    """The cursor of the next page, if there is one."""
    if answer.status != 200 or "result" not in answer.value:
        return None
    return cast("dict[str, str]", answer.value["result"]).get("nextCursor")


def cursors_of_others(two: Two, token: str | None) -> None:
    """A cursor of somebody who sees what is hidden, made in A alone, and one for another list."""
    for method in LISTS:
        theirs = cursor_of(two.a.send(mcp("root", MODERN, method)))
        own = cursor_of(two.same(mcp(token, MODERN, method)))
        for cursor in (theirs, own):
            for other in LISTS if cursor is not None else ():
                two.same(mcp(token, MODERN, other, {"cursor": cursor}))


def conditions(two: Two, token: str | None) -> None:
    """Lists asked for with the headers of a cache."""
    for header in CONDITIONS:
        for revision, method in ((MODERN, "tools/list"), (REVISIONS[1], "resources/list")):
            asked = mcp(token, revision, method)
            two.same(dataclasses.replace(asked, headers=(*asked.headers, header)))


# resources, prompts, completions


def reads(two: Two, token: str | None, uri: str) -> None:
    """One URI in every form that names it."""
    for revision in REVISIONS:
        two.same(reading(token, revision, uri))
        two.same(mcp(token, revision, "resources/read", {"uri": uri}, ident=None))
        two.same(mcp(token, revision, "resources/read", {"uri": [uri]}))
        two.same(reading(token, revision, uri, inputResponses={"who": {"action": "accept"}}))
        two.same(reading(token, revision, uri, requestState="x"))
    for revision in LEGACY:
        for method in ("resources/subscribe", "resources/unsubscribe"):
            two.same(mcp(token, revision, method, {"uri": uri}))
    honest = reading(token, MODERN, uri)
    for header in (("mcp-name", uri), ("mcp-name", "app://other"), ("mcp-param-id", "d1")):
        two.same(dataclasses.replace(honest, headers=(*honest.headers, header)))
    listening: dict[str, object] = {"notifications": {"resourceSubscriptions": [uri]}}
    two.same(over(mcp(token, MODERN, "subscriptions/listen", listening), JSON_ONLY))


def gets(two: Two, token: str | None, name: str) -> None:
    """One prompt with every kind of argument."""
    for revision in REVISIONS:
        for arguments in PROMPT_ARGUMENTS:
            two.same(getting(token, revision, name, arguments))
        two.same(mcp(token, revision, "prompts/get", {"name": name}))
        two.same(mcp(token, revision, "prompts/get", {"name": name}, ident=None))
        two.same(getting(token, revision, name, {"id": "ann"}, requestState="x"))
    for capabilities in CAPABILITIES:
        two.same(capable(getting(token, MODERN, name, {"id": "ann"}), capabilities))


def completes(two: Two, token: str | None, kind: str, name: str, value: str) -> None:
    """Every prefix of a value, and arguments that are none."""
    for revision in REVISIONS:
        for end in range(len(value) + 1):
            two.same(completing(token, revision, kind, name, value[:end]))
        two.same(completing(token, revision, kind, name, value, "other"))
        two.same(mcp(token, revision, "completion/complete", {"ref": {"type": "ref/prompt", "name": name}}))


def content(two: Two, token: str | None, each: Content) -> None:
    """Everything that can be done with one resource, template or prompt."""
    if each.kind == "prompt":
        gets(two, token, each.name)
    else:
        reads(two, token, each.uri.replace("{id}", "d1"))
    if each.kind != "resource":
        completes(two, token, each.kind, each.name if each.kind == "prompt" else each.uri, "ann")


def spelled(two: Two, token: str | None, each: Content) -> None:
    """Every spelling of a name or a URI."""
    named = each.name if each.kind == "prompt" else each.uri
    for spelling in (*spellings(named), *near(named), named.replace("://", ":"), f"{named}#x", f"{named}?x"):
        for revision in (REVISIONS[0], MODERN):
            if each.kind == "prompt":
                two.same(getting(token, revision, spelling, {"id": "ann"}))
            else:
                two.same(reading(token, revision, spelling.replace("{id}", "d1")))
        if each.kind != "resource":
            two.same(completing(token, MODERN, each.kind, spelling, "a"))


def relabelled(two: Two, token: str, each: Content) -> None:
    """In A alone: what is hidden answers as what is absent, once its name is replaced."""
    named = each.name if each.kind == "prompt" else each.uri.replace("{id}", "d1")
    other = named[:6] + absent(named[6:]) if "://" in named else absent(named)
    for revision in REVISIONS:
        for wire in WIRES:
            if each.kind == "prompt":
                pair = (getting(token, revision, name, {"id": "ann"}) for name in (named, other))
            else:
                pair = (reading(token, revision, name) for name in (named, other))
            real, none = (two.a.send(over(request, wire)) for request in pair)
            assert dataclasses.replace(real, body=real.body.replace(named.encode(), other.encode())) == none


# the rest of a request


def particular(two: Two, token: str | None, name: str) -> None:
    """A call with every header that could repeat an argument, and every capability."""
    arguments: Mapping[str, object] = {"region": "eu"}
    for given in (arguments, {}):
        for headers in HEADERS:
            for revision in (REVISIONS[1], MODERN):
                asked = call(token, revision, name, given)
                two.same(dataclasses.replace(asked, headers=(*asked.headers, *headers)))
    for capabilities in CAPABILITIES:
        two.same(capable(call(token, MODERN, name, {}), capabilities))


def wires(two: Two, token: str | None, name: str) -> None:
    """A call that may be answered by a stream, over every wire: no absent name opens one."""
    for revision in REVISIONS:
        for arguments in ({}, {"region": "eu"}, {"id": "d1"}):
            params = {"name": name, "arguments": arguments}
            asked = mcp(token, revision, "tools/call", params, meta=SPOKEN)
            mirrored = dataclasses.replace(asked, headers=(*asked.headers, ("mcp-param-region", "eu")))
            for wire in WIRES:
                two.same(over(asked, wire))
                two.same(over(mirrored, wire))


def states(two: Two, token: str | None, name: str) -> None:
    """The state of a round that somebody else began with something hidden, in A alone."""
    begun = capable(call("root", MODERN, "askDocs", {}), {"elicitation": {}})
    told = two.a.send(begun).value.get("result", {})
    state = cast("dict[str, object]", told).get("requestState", "x")
    accepted: dict[str, object] = {"action": "accept", "content": {}}
    answers: dict[str, object] = {"who": accepted}
    for more in (
        {"requestState": state},
        {"requestState": state, "inputResponses": answers},
        {"inputResponses": answers},
    ):
        params: dict[str, object] = {"name": name, "arguments": {}, **more}
        two.same(capable(mcp(token, MODERN, "tools/call", params), {"elicitation": {}}))
        two.same(mcp(token, REVISIONS[1], "tools/call", params))


def around(two: Two, token: str | None) -> None:
    """Everything that is there without naming what is hidden, beside `Two.passive`."""
    lists(two, token)
    cursors_of_others(two, token)
    conditions(two, token)
    for uri in URIS:
        for revision in REVISIONS:
            two.same(reading(token, revision, uri))
    for name in PROMPTS:
        two.same(getting(token, MODERN, name, {"id": "ann"}))
        two.same(completing(token, REVISIONS[1], "prompt", name, "a"))
    for template in TEMPLATES:
        two.same(completing(token, MODERN, "template", template, "d"))


# others


def busy(world: World, token: str, names: list[str]) -> None:
    """Somebody who sees hidden content uses it."""
    for each in (CONTENT[name] for name in names if name in CONTENT):
        for revision in REVISIONS:
            if each.kind == "prompt":
                world.send(getting(token, revision, each.name, {"id": "ann"}))
                world.send(completing(token, revision, "prompt", each.name, "a"))
            else:
                world.send(over(reading(token, revision, each.uri.replace("{id}", "d1")), WIRES[2]))
                world.send(completing(token, revision, "template", each.uri, "d"))
