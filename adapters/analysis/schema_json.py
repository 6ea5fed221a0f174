"""A Cedar schema -> the same schema in Cedar's JSON format.

Reads the schema as the engine writes it, so every form of the language is one of few. Knows no app.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json import dumps
from typing import Final, TypeVar, cast

from ...kernel import cedar
from ...kernel.policy_text import tokens
from ...kernel.strict_json import Json

T = TypeVar("T")
Document = dict[str, Json]
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_CHARACTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


class SchemaUnwritable(ValueError):
    """A schema has a form that this module cannot write as JSON."""


def schema_json(text: str) -> Document:
    """Return a schema in Cedar's JSON format; the engine reads the two as one schema.

    Raises: PolicyRefused, when the text is no schema; SchemaUnwritable.
    """
    written = str(cedar.schema(text))
    document = _Reader(written).document()
    if schema_text(document) != written:  # the engine's own word: nothing was lost or added
        raise SchemaUnwritable("its JSON form would be another schema")
    return document


def schema_text(document: Document) -> str:
    """Return a schema in Cedar's JSON format as the engine writes it. Raises: SchemaUnwritable."""
    try:
        return str(cedar.Schema.from_json_str(dumps(document)))
    except ValueError as refusal:
        raise SchemaUnwritable(" ".join(str(refusal).split())) from None


def unquoted(literal: str) -> str:
    """Return what a Cedar string literal holds."""
    return _ESCAPE.sub(_character, literal[1:-1])


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _CHARACTERS.get(match[3], match[3])


class _Reader:
    """Reads the tokens of a schema from the left. Raises: SchemaUnwritable, at one it does not know."""

    def __init__(self, written: str) -> None:
        self._tokens = [each.text for each in tokens(written)]
        self._at = 0

    def document(self) -> Document:
        """Read everything: the declarations outside namespaces stand under the empty name."""
        root, found = _namespace(), dict[str, Json]()
        while not self._ended:
            notes = self._annotations()
            if self._taken("namespace"):
                name, inner = self._path(), _namespace()
                self._take("{")
                while not self._taken("}"):
                    self._declaration(inner, self._annotations())
                found[name] = {**inner, **notes}
            else:
                self._declaration(root, notes)
        return {**({"": root} if any(root.values()) else {}), **found}

    def _declaration(self, into: Document, notes: Document) -> None:
        kind = self._next()
        read = {"type": self._common_type, "entity": self._entity, "action": self._action}.get(kind)
        if read is None:
            raise SchemaUnwritable(f"`{kind}` opens no declaration that has a JSON form here")
        section, name, declared = read()
        self._take(";")
        under = cast("Document", into.setdefault(section, {}))
        under[name] = {**declared, **notes}

    def _common_type(self) -> tuple[str, str, Document]:
        name = self._next()
        self._take("=")
        return "commonTypes", name, self._type()

    def _entity(self) -> tuple[str, str, Document]:
        name, declared = self._next(), Document()
        if self._taken("enum"):
            return "entityTypes", name, {"enum": self._list("[", "]", lambda: unquoted(self._next()))}
        if self._taken("in"):
            declared["memberOfTypes"] = self._list("[", "]", self._path)
        if self._taken("="):
            declared["shape"] = self._type()
        if self._taken("tags"):
            declared["tags"] = self._type()
        return "entityTypes", name, declared

    def _action(self) -> tuple[str, str, Document]:
        name, declared = self._name(), Document()
        if self._taken("in"):
            declared["memberOf"] = self._list("[", "]", self._group)
        applies: Document = {
            "principalTypes": [],
            "resourceTypes": [],
        }  # left out, it once meant another thing
        if self._taken("appliesTo"):
            applies = dict(self._list("{", "}", self._applies))
        return "actions", name, {**declared, "appliesTo": applies}

    def _group(self) -> Document:
        kind = self._path()
        return {"type": kind, "id": unquoted(self._next())}

    def _applies(self) -> tuple[str, Json]:
        part = self._next()
        self._take(":")
        if part == "context":
            return part, self._type()
        return f"{part}Types", self._list("[", "]", self._path)

    def _type(self) -> Document:
        if self._peek == "{":
            return {"type": "Record", "attributes": dict(self._list("{", "}", self._attribute))}
        name = self._path()
        if name == "Set" and self._taken("<"):
            element = self._type()
            self._take(">")
            return {"type": "Set", "element": element}
        return {"type": "EntityOrCommon", "name": name}

    def _attribute(self) -> tuple[str, Json]:
        notes, name = self._annotations(), self._name()
        optional = self._taken("?")
        self._take(":")
        return name, {**self._type(), **({"required": False} if optional else {}), **notes}

    def _annotations(self) -> Document:
        found = Document()
        while self._taken("@"):
            name = self._next()
            self._take("(")
            found[name] = unquoted(self._next())
            self._take(")")
        return {"annotations": found} if found else {}

    # tokens

    @property
    def _ended(self) -> bool:
        return self._at == len(self._tokens)

    @property
    def _peek(self) -> str:
        return "" if self._ended else self._tokens[self._at]

    def _next(self) -> str:
        found = self._peek
        self._at += not self._ended
        return found

    def _taken(self, mark: str) -> bool:
        """Whether the next token is ``mark``; it is passed if so."""
        found = self._peek == mark
        self._at += found
        return found

    def _take(self, mark: str) -> None:
        found = self._next()
        if found != mark:
            raise SchemaUnwritable(f"`{found}` stands where `{mark}` has a JSON form here")

    def _name(self) -> str:
        found = self._next()
        return unquoted(found) if found.startswith('"') else found

    def _path(self) -> str:
        """Read names with ``::`` between them, up to a string."""
        found = [self._next()]
        while self._peek == "::":
            self._at += 1
            if self._peek.startswith('"'):
                break
            found.append(self._next())
        return "::".join(found)

    def _list(self, opening: str, closing: str, read: Callable[[], T]) -> list[T]:
        self._take(opening)
        found: list[T] = []
        while not self._taken(closing):
            if found:
                self._take(",")
            found.append(read())
        return found


def _namespace() -> Document:
    return {"entityTypes": {}, "actions": {}}
