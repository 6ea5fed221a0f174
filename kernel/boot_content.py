"""Resources and prompts -> entries, and every reason why one cannot be served.

An entry of a resource or prompt passes the gates that a tool's passes; what nobody declared a policy
for has a permission of ours, which a generated policy permits to whoever sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from pydantic import BaseModel

from .catalog import GET_PROMPT, READ_RESOURCE, Completer, Entry, Place
from .declare import Action, Complete, Completing, Expose, Prompt, Resource, can
from .schema import InputSchema, JsonSchema
from .signatures import Handler, read_signature
from .uri_template import TemplateRefused, UriTemplate, is_template, is_uri

RESOURCES: Final = "resources/"
PROMPTS: Final = "prompts/"


class ContentFault(ValueError):
    """Why one resource or prompt cannot be served, and what to do about it."""

    def __init__(self, cause: str, fix: str = "") -> None:
        self.cause, self.fix = cause, fix or None
        super().__init__(cause)


def resource_action(declared: Resource) -> Action:
    """Return the action that reads a resource."""
    face = _face(declared)
    rule = declared.policy or can(READ_RESOURCE)
    name = RESOURCES + declared.name
    return Action(name, "resource", declared.read, rule, face, "", True, False, False)


def prompt_action(declared: Prompt) -> Action:
    """Return the action that renders a prompt.

    Raises: ContentFault.
    """
    if not callable(declared.source):
        raise ContentFault(f"the prompt `{declared.name}` is a file that nobody read")
    rule = declared.policy or can(GET_PROMPT)
    return Action(
        PROMPTS + declared.name, "prompt", declared.source, rule, _face(declared), "", True, False, False
    )


def _face(declared: Resource | Prompt) -> Expose:
    return Expose(declared.description, declared.visible_to, declared.title, icons=declared.icons)


def placed(entry: Entry, declared: Resource) -> Entry:
    """Return a resource's entry with its place and completions.

    Raises: ContentFault.
    """
    names = _variables(declared.uri)
    fields = frozenset(cast("JsonSchema", entry.input.document.get("properties", {})))
    if fields != frozenset(names):
        told = ", ".join(f"`{each}`" for each in sorted(fields)) or "none"
        raise ContentFault(
            f"`{declared.uri}` has other variables than its `read` takes ({told})",
            "let `read` take a model with one field for each variable of the template",
        )
    template = UriTemplate(declared.uri) if names else None
    place = Place(declared.uri, template, declared.mime_type, declared.annotations)
    return replace(entry, place=place, completers=_completers(declared.uri, declared.complete, entry.input))


def _variables(uri: str) -> tuple[str, ...]:
    if not is_template(uri):
        if not is_uri(uri):
            raise ContentFault(f"`{_shown(uri)}` is no absolute URI", "write it as in `app://exports/org`")
        return ()
    try:
        return UriTemplate(uri).names
    except TemplateRefused as refusal:
        cause = f"the template `{_shown(uri)}` {refusal}"
        raise ContentFault(cause, "write it as in `app://posts/{id}`") from None


def prompted(entry: Entry, declared: Prompt) -> Entry:
    """Return a prompt's entry with its completions; its arguments are strings.

    Raises: ContentFault.
    """
    for name, held in cast("dict[str, JsonSchema]", entry.input.document.get("properties", {})).items():
        if not _is_word(held, entry.input.document.get("$defs", {})):
            raise ContentFault(
                f"the argument `{name}` of the prompt `{declared.name}` is no string",
                "a prompt's arguments are strings: declare `str`, a `Literal` or an enumeration of strings",
            )
    completers = _completers(declared.name, declared.complete, entry.input)
    return replace(entry, completers=completers)


def _options(held: JsonSchema, defs: Mapping[str, JsonSchema]) -> list[JsonSchema]:
    """Return what a field may be, definitions looked up, ``null`` left out."""
    listed = cast("list[JsonSchema]", held.get("anyOf", [held]))
    found = [defs.get(str(each.get("$ref", "")).removeprefix("#/$defs/"), each) for each in listed]
    return [each for each in found if each.get("type") != "null"]


def _is_word(held: JsonSchema, defs: Mapping[str, JsonSchema]) -> bool:
    """Whether a client can send it: prompts have arguments of strings."""
    return all(each.get("type") == "string" for each in _options(held, defs))


def _completers(what: str, declared: Complete, schema: InputSchema) -> Mapping[str, Completer]:
    known = cast("dict[str, JsonSchema]", schema.document.get("properties", {}))
    unknown = sorted(declared.keys() - known.keys())
    if unknown:
        raise ContentFault(
            f"`complete` of `{_shown(what)}` names `{unknown[0]}`, which is no argument",
            "complete the arguments that are declared",
        )
    defs = cast("dict[str, JsonSchema]", schema.document.get("$defs", {}))
    return {**_choices(known, defs), **{name: _completer(what, name, how) for name, how in declared.items()}}


def _choices(known: Mapping[str, JsonSchema], defs: Mapping[str, JsonSchema]) -> dict[str, Completer]:
    """An argument that is one of several values completes by itself."""
    options = {name: _options(held, defs) for name, held in known.items()}
    return {
        name: Completer(None, tuple(str(value) for each in held for value in each["enum"]))
        for name, held in options.items()
        if held and all("enum" in each for each in held)
    }


def _completer(what: str, name: str, how: Any) -> Completer:
    if not callable(how):
        values = tuple(how)
        if isinstance(how, str) or not all(isinstance(each, str) for each in values):
            raise ContentFault(f"`complete` of `{_shown(what)}` gives `{name}` no list of strings")
        return Completer(None, values)
    handler, model, output = read_signature(how)
    if isinstance(model, str) or not _takes_completing(handler, model) or output != list[str]:
        raise ContentFault(
            f"`complete` of `{_shown(what)}` gives `{name}` a function that completes nothing",
            "let it take a `Completing`, a `Context`, both or neither, and return `list[str]`",
        )
    return Completer(handler)


def _takes_completing(handler: Handler, model: type[BaseModel]) -> bool:
    return "input" not in handler.takes or model is Completing


def overlaps(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield why a URI cannot stand beside a template of another audience.

    Who may not see the URI would be answered by the template, and would so learn that something is there.
    """
    placed = [(each, each.place) for each in entries if each.place is not None]
    templates = [(each, place.template) for each, place in placed if place.template is not None]
    for entry, place in placed:
        for other, template in templates:
            if place.template is None and template.match(place.uri) and other.audience != entry.audience:
                yield f"`{place.uri}` is also one of `{template.text}`, which another audience sees"


def _shown(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()[:120]
