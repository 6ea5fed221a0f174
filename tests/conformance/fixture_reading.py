"""The fixture's resources and prompts."""

from typing import Final

from pydantic import BaseModel

from nonsuch import Embedded, Image, Message, prompt, resource

from .fixture_parts import PIXEL
from .fixture_rounds import test_input_required_result_prompt


class Numbered(BaseModel):
    id: str


def read_text() -> str:
    return "This is the content of the static text resource."


def read_binary() -> bytes:
    return PIXEL


def read_watched() -> str:
    return "Watched resource content"


def read_numbered(input: Numbered) -> dict[str, object]:
    return {"id": input.id, "templateTest": True, "data": f"Data for ID: {input.id}"}


RESOURCES: Final = [
    resource("test://static-text", "static-text", "A text", read_text, mime_type="text/plain"),
    resource("test://static-binary", "static-binary", "A picture", read_binary, mime_type="image/png"),
    resource("test://watched-resource", "watched-resource", "A text", read_watched, mime_type="text/plain"),
    resource("test://template/{id}/data", "template", "Data of a number", read_numbered),
]


class Two(BaseModel):
    arg1: str
    arg2: str


class Located(BaseModel):
    resourceUri: str


def test_simple_prompt() -> str:
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(input: Two) -> str:
    return f"Prompt with arguments: arg1='{input.arg1}', arg2='{input.arg2}'"


def test_prompt_with_embedded_resource(input: Located) -> list[Message]:
    held = Embedded(input.resourceUri, "Embedded resource content for testing.", "text/plain")
    return [Message("user", held), Message("user", "Please process the embedded resource above.")]


def test_prompt_with_image() -> list[Message]:
    return [Message("user", Image(PIXEL, "image/png")), Message("user", "Please analyze the image above.")]


PROMPTS: Final = [
    prompt(test_simple_prompt, description="A prompt without arguments"),
    prompt(
        test_prompt_with_arguments,
        description="A prompt with two arguments",
        complete={"arg1": ["paris", "park", "party", "testing"]},
    ),
    prompt(test_prompt_with_embedded_resource, description="A prompt with a resource inside"),
    prompt(test_prompt_with_image, description="A prompt with a picture"),
    prompt(test_input_required_result_prompt, description="A prompt that asks first"),
]
