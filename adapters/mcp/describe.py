"""Entry -> its member of a list, encoded once. One projection, field for field the served one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final, Literal, cast

from pydantic_core import to_json

from ...kernel.boot import Declarations, build
from ...kernel.catalog import Entry
from ...kernel.declare import Action, Icon, Registry
from ...kernel.errors import BootError, fault
from ...kernel.idempotency import advertised
from ...kernel.meta import TOOLS, resources_of
from ...kernel.meta_text import render_catalog
from ...kernel.view import Table

LISTINGS: Final = 512
Listed = Literal["tools", "resources", "resourceTemplates", "prompts"]


def hints(entry: Entry) -> dict[str, bool | str]:
    """Return the MCP hints: derived from the declaration, overridden key by key."""
    derived: dict[str, bool | str] = {"readOnlyHint": entry.reads_only}
    if entry.kind != "query" and not entry.reads_only:
        derived |= {"destructiveHint": entry.destructive, "idempotentHint": entry.idempotent}
    return {**derived, **entry.annotations}


def tool_from(action: Action, name: str | None = None) -> Entry:
    """Return the tool that an app serves for a declaration; a hand-written one is given its name here.

    ``tool_list_entry(tool_from(action))`` is its member of ``tools/list``, field for field.
    Raises: BootError, with every fault of the declaration.
    """
    named = name or action.name
    if action.mcp is None:
        cause = f"`{named}` never declared `mcp=expose(...)`"
        raise BootError([fault("X_MCP_TOOL_UNDECLARED", cause)])
    built = build(Declarations("one tool", Registry(), tools={named: action}))
    if built.faults:
        raise BootError(built.faults)
    return built.catalog.entries[0]


def tool_list_entry(entry: Entry) -> dict[str, object]:
    """Return the ``tools/list`` member of an entry; what it lacks is left out, never null."""
    described = _named(entry)
    described["inputSchema"] = advertised(entry)
    if entry.output.document is not None:
        described["outputSchema"] = entry.output.document
    return {**described, "annotations": hints(entry), **_pictures(entry.icons)}


def resource_list_entry(entry: Entry) -> dict[str, object]:
    """Return the ``resources/list`` or ``resources/templates/list`` member of an entry."""
    place = entry.place
    if place is None:
        raise TypeError(f"`{entry.name}` is no resource")
    key = "uri" if place.template is None else "uriTemplate"
    described = {key: place.uri, **_named(entry), "mimeType": place.mime_type}
    if place.annotations:
        described["annotations"] = dict(place.annotations)
    return {**described, **_pictures(entry.icons)}


def prompt_list_entry(entry: Entry) -> dict[str, object]:
    """Return the ``prompts/list`` member of an entry."""
    described = _named(entry)
    required = frozenset(cast("list[str]", entry.input.document.get("required", [])))
    properties = cast("dict[str, dict[str, object]]", entry.input.document.get("properties", {}))
    arguments = [_argument(name, held, name in required) for name, held in properties.items()]
    if arguments:
        described["arguments"] = arguments
    return {**described, **_pictures(entry.icons)}


def _argument(name: str, held: Mapping[str, object], required: bool) -> dict[str, object]:
    told = {key: held[key] for key in ("title", "description") if key in held}
    return {"name": name, **told, "required": required}


def _named(entry: Entry) -> dict[str, object]:
    described: dict[str, object] = {"name": entry.shown}
    if entry.title is not None:
        described["title"] = entry.title
    described["description"] = entry.description
    return described


def _pictures(icons: Iterable[Icon]) -> dict[str, object]:
    drawn = [picture(each) for each in icons]
    return {"icons": drawn} if drawn else {}


def picture(icon: Icon) -> dict[str, object]:
    """Return an icon as the wire has it."""
    told: dict[str, object] = {"src": icon.src}
    if icon.mime_type is not None:
        told["mimeType"] = icon.mime_type
    if icon.sizes:
        told["sizes"] = list(icon.sizes)
    return told


_MEMBER: Final[Mapping[Listed, Callable[[Entry], dict[str, object]]]] = {
    "tools": tool_list_entry,
    "resources": resource_list_entry,
    "resourceTemplates": resource_list_entry,
    "prompts": prompt_list_entry,
}


class Listing:
    """The encoded lists of each set of visible entries, kept while they are asked for."""

    def __init__(self, constant: Iterable[tuple[str, bytes]] = ()) -> None:
        """``constant`` are the tools of the constant surface, by name, already encoded."""
        self._constant = dict(constant)
        self._entry = lru_cache(None)(_encoded)
        self.whole = lru_cache(LISTINGS)(self._whole)
        self.digest = lru_cache(LISTINGS)(self._digest)
        self.members = lru_cache(LISTINGS)(self._members)
        self.catalog = lru_cache(LISTINGS)(_catalog)

    def _whole(self, table: Table, kind: Listed) -> bytes:
        """Return the JSON array of one list, in the order of names: what is hidden cannot show in it."""
        return array(self.members(table, kind).values())

    def _digest(self, table: Table, kind: Listed) -> bytes:
        """Return what tells one list from another: many listeners compare theirs at every change."""
        return sha256(self.whole(table, kind)).digest()

    def _members(self, table: Table, kind: Listed) -> Mapping[str, bytes]:
        """Return the encoded members of one list by what sorts them."""
        members = {name: self._entry(entry, kind) for name, entry in _entries(table, kind).items()}
        if kind == "tools" and table.meta:
            members |= self._constant
        return dict(sorted(members.items()))


def constant_tools() -> Iterator[tuple[str, bytes]]:
    """Yield the tools of the constant surface as their list has them."""
    for each in TOOLS.values():
        told = {"name": each.name, "description": each.description, "inputSchema": each.input.document}
        yield each.name, to_json({**told, "annotations": each.hints})


def _catalog(table: Table) -> bytes:
    """Return the text of ``list_resources`` as a JSON string."""
    return to_json(render_catalog(resources_of(table)))


def array(members: Iterable[bytes]) -> bytes:
    """Return a JSON array of encoded members."""
    return b"[" + b",".join(members) + b"]"


def _entries(table: Table, kind: Listed) -> Mapping[str, Entry]:
    match kind:
        case "tools":
            return table.listed
        case "resources":
            return table.resources
        case "resourceTemplates":
            return {each.place.uri: each for each in table.templates if each.place is not None}
        case "prompts":
            return table.prompts


def _encoded(entry: Entry, kind: Listed) -> bytes:
    return to_json(_MEMBER[kind](entry))
