"""The fixture's tools that answer at once, report while they run, ask an older client, or change a list."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from nonsuch import (
    ActionError,
    Audio,
    Elicit,
    Elicited,
    Embedded,
    Image,
    Message,
    Principal,
    Registry,
    Sample,
    Sampled,
    Text,
    prompt,
)

from .fixture_parts import PIXEL, SILENCE, Here, Tools

PAUSE: Final = 0.05
TOOLS: Final = Tools()

# Answers


@TOOLS.add("Answers with text")
def test_simple_text() -> Text:
    return Text("This is a simple text response for testing.")


@TOOLS.add("Answers with an image")
def test_image_content() -> Image:
    return Image(PIXEL, "image/png")


@TOOLS.add("Answers with a sound")
def test_audio_content() -> Audio:
    return Audio(SILENCE, "audio/wav")


@TOOLS.add("Answers with a resource inside")
def test_embedded_resource() -> Embedded:
    return Embedded("test://embedded-resource", "This is an embedded resource content.", "text/plain")


@TOOLS.add("Answers with text, an image and a resource")
def test_multiple_content_types() -> list[Text | Image | Embedded]:
    held = Embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return [Text("Multiple content types test:"), Image(PIXEL, "image/png"), held]


@TOOLS.add("Always answers with an error")
def test_error_handling() -> Text:
    cause = "this tool intentionally returns an error for testing"
    raise ActionError("X_CONFORMANCE_ERROR", cause, "call another tool")


# Reports


@TOOLS.add("Sends three log messages")
async def test_tool_with_logging(ctx: Here) -> Text:
    await ctx.client.log("info", "Tool execution started")
    await asyncio.sleep(PAUSE)
    await ctx.client.log("info", "Tool processing data")
    await asyncio.sleep(PAUSE)
    await ctx.client.log("info", "Tool execution completed")
    return Text("Tool with logging executed successfully")


@TOOLS.add("Sends one log message")
async def test_logging_tool(ctx: Here) -> Text:
    await ctx.client.log("info", "Logging evaluated")
    return Text("Logging evaluated")


@TOOLS.add("Reports its progress")
async def test_tool_with_progress(ctx: Here) -> Text:
    await ctx.client.progress(0, total=100)
    await asyncio.sleep(PAUSE)
    await ctx.client.progress(50, total=100)
    await asyncio.sleep(PAUSE)
    await ctx.client.progress(100, total=100)
    return Text("Tool with progress executed successfully")


# Questions


class Prompted(BaseModel):
    prompt: str


class Asking(BaseModel):
    message: str


class Person(BaseModel):
    username: Annotated[str, Field(description="User's response")]
    email: Annotated[str, Field(description="User's email address")]


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


def _titled(word: str) -> list[dict[str, str]]:
    ordinals = ["First", "Second", "Third"]
    return [{"const": f"value{i}", "title": f"{each} {word}"} for i, each in enumerate(ordinals, 1)]


OPTIONS: Final = ["option1", "option2", "option3"]
ENUMS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": _titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled("Choice")}},
    },
}


@TOOLS.add("Asks the client's model")
async def test_sampling(input: Prompted, ctx: Here) -> Text:
    asked = Sample([Message("user", input.prompt)], max_tokens=100)
    answer = (await ctx.client.ask({"sample": asked}))["sample"]
    assert isinstance(answer, Sampled)
    return Text(f"LLM response: {answer.content}")


async def _elicited(ctx: Here, message: str, schema: type[BaseModel] | dict[str, Any]) -> Elicited:
    answer = (await ctx.client.ask({"form": Elicit(message, schema)}))["form"]
    assert isinstance(answer, Elicited)
    return answer


@TOOLS.add("Asks the person for a name and an address")
async def test_elicitation(input: Asking, ctx: Here) -> Text:
    answer = await _elicited(ctx, input.message, Person)
    return Text(f"User response: action={answer.action}, content={answer.content}")


@TOOLS.add("Asks the person with defaults filled in")
async def test_elicitation_sep1034_defaults(ctx: Here) -> Text:
    answer = await _elicited(ctx, "Please review the form", Defaults)
    return Text(f"Elicitation completed: action={answer.action}, content={answer.content}")


@TOOLS.add("Asks the person to choose, in every way there is")
async def test_elicitation_sep1330_enums(ctx: Here) -> Text:
    answer = await _elicited(ctx, "Please choose", ENUMS)
    return Text(f"Elicitation completed: action={answer.action}, content={answer.content}")


@TOOLS.add("Needs a client that samples", needs=("sampling",))
def test_missing_capability() -> Text:
    return Text("the client samples")


# Input schemas


class Region(BaseModel):
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]


@TOOLS.add("Takes an argument that a header repeats")
def test_x_mcp_header(input: Region) -> Text:
    return Text(f"region: {input.region}")


class Rich(BaseModel):
    """Publishes a schema that no model derives: every keyword must reach the client as it is."""

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the document of the suite."""
        return RICH_SCHEMA


RICH_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@TOOLS.add("Tool with JSON Schema 2020-12 features")
def json_schema_2020_12_tool(input: Rich) -> Text:
    return Text("taken")


# Lists that change


class Switch:
    """Shows something or not."""

    def __init__(self) -> None:
        self.on = False

    def shows(self, caller: Principal) -> bool:
        """Whether the caller sees it now."""
        return self.on


class Changing:
    """Two tools that show and hide a tool and a prompt; ``notify`` says so to who listens."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.tools = Tools()
        self.notify: Callable[[], object] = lambda: None
        tool, asked = Switch(), Switch()
        self.tools.add("Comes and goes", visible_to=tool.shows)(test_dynamic_tool)
        self.prompt = prompt(test_dynamic_prompt, description="Comes and goes", visible_to=asked.shows)
        self._trigger("test_trigger_tool_change", tool)
        self._trigger("test_trigger_prompt_change", asked)

    def _trigger(self, name: str, switch: Switch) -> None:
        def trigger() -> Text:
            switch.on = not switch.on
            self.notify()
            return Text("Mutation triggered")

        trigger.__name__ = name
        self.tools.add("Changes a list")(trigger)


def test_dynamic_tool() -> Text:
    return Text("here now")


def test_dynamic_prompt() -> str:
    return "here now"
