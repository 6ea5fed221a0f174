"""Content for people and models: what tool results and prompt messages are made of, beside plain JSON.

The member names on the wire are those of MCP (``ContentBlock``); every surface sends the same.
"""

from __future__ import annotations

import base64
import types
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import Field, PlainSerializer, TypeAdapter, model_serializer
from pydantic.dataclasses import dataclass

Base64 = Annotated[bytes, PlainSerializer(lambda raw: base64.b64encode(raw).decode(), return_type=str)]
Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: its bytes and their media type."""

    data: Base64
    mime_type: Annotated[str, Field(serialization_alias="mimeType")]
    type: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound: its bytes and their media type."""

    data: Base64
    mime_type: Annotated[str, Field(serialization_alias="mimeType")]
    type: Literal["audio"] = "audio"


@dataclass(frozen=True, slots=True)
class Link:
    """A resource that the reader may fetch."""

    uri: str
    name: str
    description: str | None = None
    mime_type: Annotated[str | None, Field(serialization_alias="mimeType")] = None
    type: Literal["resource_link"] = "resource_link"

    @model_serializer(mode="plain")
    def _told(self) -> dict[str, Any]:
        members = {"description": self.description, "mimeType": self.mime_type}
        held = {name: value for name, value in members.items() if value is not None}
        return {"type": self.type, "uri": self.uri, "name": self.name, **held}


@dataclass(frozen=True, slots=True)
class Embedded:
    """A resource with its contents: words as ``str``, anything else as ``bytes``."""

    uri: str
    contents: str | bytes
    mime_type: str
    type: Literal["resource"] = "resource"

    @model_serializer(mode="plain")
    def _told(self) -> dict[str, Any]:
        return {"type": self.type, "resource": contents(self.uri, self.mime_type, self.contents)}


def contents(uri: str, mime_type: str, held: str | bytes) -> dict[str, str]:
    """Return the contents of a resource as the wire has them."""
    if isinstance(held, str):
        return {"uri": uri, "mimeType": mime_type, "text": held}
    return {"uri": uri, "mimeType": mime_type, "blob": base64.b64encode(held).decode()}


Content = Text | Image | Audio | Link | Embedded


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt, or of a conversation for a model. A plain string is text."""

    role: Role
    content: str | Content

    @model_serializer(mode="plain")
    def _told(self) -> dict[str, Any]:
        block = Text(self.content) if isinstance(self.content, str) else self.content
        return {"role": self.role, "content": _AS_JSON.dump_python(block, mode="json", by_alias=True)}


def message_json(message: Message) -> dict[str, Any]:
    """Return a message as plain JSON values."""
    told: dict[str, Any] = _MESSAGE.dump_python(message, mode="json")
    return told


_AS_JSON: Final = TypeAdapter[Any](Content)
_MESSAGE: Final = TypeAdapter[Any](Message)
_BLOCKS: Final = frozenset(get_args(Content))


def is_content(annotation: Any) -> bool:
    """Whether a handler's return annotation is content: a block, several kinds of them, or a list of them."""
    if get_origin(annotation) in (list, tuple):
        kinds = [each for each in get_args(annotation) if each is not Ellipsis]
        return bool(kinds) and all(is_content(each) for each in kinds)
    if get_origin(annotation) in (Union, types.UnionType):
        return all(is_content(each) for each in get_args(annotation))
    return isinstance(annotation, type) and annotation in _BLOCKS
