"""Content blocks and messages, member by member as MCP names them, whatever carries them."""

from __future__ import annotations

import base64
import json
from typing import Annotated, Any, Literal, Optional, Union

import pytest

from nonsuch import Audio, Content, Embedded, Image, Link, Message, Text
from nonsuch.kernel.content import contents, is_content, message_json
from nonsuch.kernel.schema import publish_output

RAW = b"\x89PNG\x00\xff"
CODED = base64.b64encode(RAW).decode()
BLOCKS: tuple[tuple[Content, dict[str, Any]], ...] = (
    (Text("h\u00e9"), {"type": "text", "text": "h\u00e9"}),
    (Text(""), {"type": "text", "text": ""}),
    (Image(RAW, "image/png"), {"type": "image", "data": CODED, "mimeType": "image/png"}),
    (Audio(RAW, "audio/wav"), {"type": "audio", "data": CODED, "mimeType": "audio/wav"}),
    (Link("a:b", "b"), {"type": "resource_link", "uri": "a:b", "name": "b"}),
    (
        Link("a:b", "b", "The b", "text/plain"),
        {
            "type": "resource_link",
            "uri": "a:b",
            "name": "b",
            "description": "The b",
            "mimeType": "text/plain",
        },
    ),
    (
        Embedded("a:b", "words", "text/plain"),
        {"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "words"}},
    ),
    (
        Embedded("a:b", RAW, "image/png"),
        {"type": "resource", "resource": {"uri": "a:b", "mimeType": "image/png", "blob": CODED}},
    ),
)


@pytest.mark.parametrize(("block", "told"), BLOCKS)
def test_a_block_is_told_as_the_protocol_names_it(block: Content, told: dict[str, Any]) -> None:
    """Bytes are in base64, and what is not given is left out."""
    for annotation, value, expected in (
        (type(block), block, told),
        (Content, block, told),
        (list[Content], [block, block], [told, told]),
        (tuple[Content, ...], (block,), [told]),
    ):
        output = publish_output(annotation, rows=False)
        assert (output.form, output.document, output.wrapped) == ("content", None, False)
        assert json.loads(output.serialise(value)) == expected


@pytest.mark.parametrize(("block", "told"), BLOCKS)
def test_a_message_holds_a_block(block: Content, told: dict[str, Any]) -> None:
    assert message_json(Message("assistant", block)) == {"role": "assistant", "content": told}


def test_a_message_of_a_plain_string_is_words() -> None:
    assert message_json(Message("user", "hi")) == {"role": "user", "content": {"type": "text", "text": "hi"}}


def test_a_list_of_messages_is_told_whole() -> None:
    output = publish_output(list[Message], rows=False)
    assert json.loads(output.serialise([Message("user", "a"), Message("assistant", Text("b"))])) == [
        {"role": "user", "content": {"type": "text", "text": "a"}},
        {"role": "assistant", "content": {"type": "text", "text": "b"}},
    ]


def test_the_contents_of_a_resource() -> None:
    assert contents("a:b", "text/plain", "x") == {"uri": "a:b", "mimeType": "text/plain", "text": "x"}
    assert contents("a:b", "image/png", RAW) == {"uri": "a:b", "mimeType": "image/png", "blob": CODED}


@pytest.mark.parametrize("wrong", [{"role": "system", "content": "x"}, {"role": "user", "content": 7}])
def test_a_message_is_the_user_s_or_the_assistant_s(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Message"):
        Message(**wrong)


ANNOTATIONS: tuple[tuple[Any, bool], ...] = (
    (Text, True),
    (Image, True),
    (Audio, True),
    (Link, True),
    (Embedded, True),
    (Content, True),
    (Text | Image, True),
    (Union[Text, Image], True),  # noqa: UP007  (the older spelling is test material)
    (list[Text], True),
    (list[Text | Image], True),
    (tuple[Text, ...], True),
    (tuple[Text, Image], True),
    (Message, False),
    (list[Message], False),
    (Text | None, False),
    (Optional[Text], False),  # noqa: UP045  (the older spelling is test material)
    (Text | str, False),
    (list[str], False),
    (list[Text | dict[str, str]], False),
    (dict[str, Text], False),
    (list, False),
    (str, False),
    (bytes, False),
    (Literal["text"], False),
    (Annotated[int, "x"], False),
    (Annotated[int, ["what no set can hold"]], False),
    (tuple[()], False),
    (list[Any], False),
    (None, False),
    (Any, False),
)


@pytest.mark.parametrize(("annotation", "content"), ANNOTATIONS, ids=str)
def test_which_answers_are_content(annotation: Any, content: bool) -> None:
    assert is_content(annotation) is content
