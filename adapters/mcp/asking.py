"""What a handler asks of its client, as MCP spells it, and what a client answers, read with suspicion.

Knows no request and no stream.
"""

from __future__ import annotations

from typing import Any, Final, assert_never, cast

from ...kernel.asks import (
    Ask,
    Elicit,
    Elicited,
    ElicitUrl,
    Given,
    ListRoots,
    Root,
    Roots,
    Sample,
    Sampled,
)
from ...kernel.content import message_json
from ...kernel.form import form_of
from ...kernel.strict_json import Json

_ROLES: Final = ("user", "assistant")


def request_of(ask: Ask) -> dict[str, Json]:
    """Return the method and params of a question.

    Raises: SchemaRefused, for a form that is none.
    """
    match ask:
        case Elicit(message, schema):
            form: dict[str, Json] = {"message": message, "requestedSchema": form_of(schema).document}
            return {"method": "elicitation/create", "params": {"mode": "form", **form}}
        case ElicitUrl(message, url):
            return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": url}}
        case Sample():
            return {"method": "sampling/createMessage", "params": _sampling(ask)}
        case ListRoots():
            return {"method": "roots/list"}
        case _:
            assert_never(ask)


def _sampling(ask: Sample) -> dict[str, Json]:
    params: dict[str, Json] = {
        "messages": [cast(Json, message_json(each)) for each in ask.messages],
        "maxTokens": ask.max_tokens,
    }
    if ask.system_prompt is not None:
        params["systemPrompt"] = ask.system_prompt
    if ask.temperature is not None:
        params["temperature"] = ask.temperature
    if ask.stop_sequences:
        params["stopSequences"] = list(ask.stop_sequences)
    return params


def given(ask: Ask, answer: Json) -> Given | None:
    """Return a client's answer to a question, or nothing if it is none."""
    if not isinstance(answer, dict):
        return None
    match ask:
        case Elicit():
            return _elicited(ask, answer)
        case ElicitUrl():
            return _consented(answer)
        case Sample():
            return _sampled(answer)
        case ListRoots():
            return _roots(answer)
        case _:
            assert_never(ask)


def _elicited(ask: Elicit, answer: dict[str, Json]) -> Elicited | None:
    if answer.get("action") != "accept":
        return _consented(answer)
    content = answer.get("content", {})
    if not isinstance(content, dict) or not form_of(ask.schema).filled(content):
        return None
    return Elicited("accept", content)


def _consented(answer: dict[str, Json]) -> Elicited | None:
    match answer.get("action"):
        case "accept" | "decline" | "cancel" as action:
            return Elicited(cast(Any, action))
        case _:
            return None


def _sampled(answer: dict[str, Json]) -> Sampled | None:
    role, content, model = answer.get("role"), answer.get("content"), answer.get("model")
    if not isinstance(role, str) or role not in _ROLES or not isinstance(model, str):
        return None
    return Sampled(role, content, model) if isinstance(content, (dict, list)) else None


def _roots(answer: dict[str, Json]) -> Roots | None:
    held = answer.get("roots")
    if not isinstance(held, list):
        return None
    roots = [_root(each) for each in held]
    return None if None in roots else Roots(tuple(each for each in roots if each is not None))


def _root(held: Json) -> Root | None:
    if not isinstance(held, dict):
        return None
    uri, name = held.get("uri"), held.get("name")
    if not isinstance(uri, str) or not (name is None or isinstance(name, str)):
        return None
    return Root(uri, name)
