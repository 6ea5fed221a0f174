"""The fixture's tools and its prompt that ask in rounds: the client answers by calling again."""

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel

from nonsuch import Elicit, Elicited, ListRoots, Message, Roots, Sample, Sampled, Text

from .fixture_parts import Here, Tools

ROUNDS: Final = Tools()


class Named(BaseModel):
    name: str


class Coloured(BaseModel):
    color: str


class Confirmed(BaseModel):
    ok: bool


class Contextual(BaseModel):
    context: str


NAME: Final = Elicit("What is your name?", Named)
CONFIRM: Final = Elicit("Please confirm", Confirmed)
GREETING: Final = Sample([Message("user", "Generate a greeting")], max_tokens=50)


def said(answers: Mapping[str, Elicited | Sampled | Roots], key: str, field: str) -> str:
    """Return a field of a form that was answered, or what was done with the form instead."""
    answer = answers[key]
    assert isinstance(answer, Elicited)
    return str(answer.content.get(field, answer.action))


@ROUNDS.add("Asks for a name")
async def test_input_required_result_elicitation(ctx: Here) -> Text:
    answers = await ctx.client.ask({"user_name": NAME})
    return Text(f"Hello, {said(answers, 'user_name', 'name')}!")


@ROUNDS.add("Asks for a name while it streams", needs=("elicitation",))
async def test_streaming_elicitation(ctx: Here) -> Text:
    await ctx.client.progress(1, total=2)
    answers = await ctx.client.ask({"user_name": NAME})
    return Text(f"Hello, {said(answers, 'user_name', 'name')}!")


@ROUNDS.add("Asks the client's model")
async def test_input_required_result_sampling(ctx: Here) -> Text:
    asked = Sample([Message("user", "What is the capital of France?")], max_tokens=100)
    answer = (await ctx.client.ask({"capital_question": asked}))["capital_question"]
    assert isinstance(answer, Sampled)
    return Text(f"The model says: {answer.content}")


@ROUNDS.add("Asks for the client's directories")
async def test_input_required_result_list_roots(ctx: Here) -> Text:
    answer = (await ctx.client.ask({"client_roots": ListRoots()}))["client_roots"]
    assert isinstance(answer, Roots)
    return Text(", ".join(root.uri for root in answer.roots))


@ROUNDS.add("Remembers something between the rounds")
async def test_input_required_result_request_state(ctx: Here) -> Text:
    await ctx.client.ask({"confirm": CONFIRM}, state={"asked": "confirm"})
    return Text("state-ok" if ctx.client.state == {"asked": "confirm"} else "state lost")


@ROUNDS.add("Asks for three things at once")
async def test_input_required_result_multiple_inputs(ctx: Here) -> Text:
    asks: dict[str, Elicit | Sample | ListRoots] = {
        "user_name": NAME,
        "greeting": GREETING,
        "client_roots": ListRoots(),
    }
    answers = await ctx.client.ask(asks, state={"asked": "three"})
    return Text(f"Hello, {said(answers, 'user_name', 'name')}!")


@ROUNDS.add("Asks twice")
async def test_input_required_result_multi_round(ctx: Here) -> Text:
    state = ctx.client.state
    if isinstance(state, dict) and "name" in state:
        name = state["name"]
    else:
        name = said(await ctx.client.ask({"step1": NAME}, state={"step": 1}), "step1", "name")
    second = Elicit("What is your favorite color?", Coloured)
    answers = await ctx.client.ask({"step2": second}, state={"step": 2, "name": name})
    return Text(f"{name} likes {said(answers, 'step2', 'color')}")


@ROUNDS.add("Refuses a state that is not its own")
async def test_input_required_result_tampered_state(ctx: Here) -> Text:
    await ctx.client.ask({"confirm": CONFIRM}, state={"asked": "confirm"})
    return Text("integrity-ok")


@ROUNDS.add("Asks for what the client can do")
async def test_input_required_result_capabilities(ctx: Here) -> Text:
    asks: dict[str, Elicit | Sample | ListRoots] = {}
    if ctx.client.can("elicitation"):
        asks["user_name"] = NAME
    if ctx.client.can("sampling"):
        asks["greeting"] = GREETING
    answers = await ctx.client.ask(asks)
    return Text(f"answered: {', '.join(answers)}")


async def test_input_required_result_prompt(ctx: Here) -> list[Message]:
    """Asks what to speak of."""
    asked = Elicit("What context should the prompt use?", Contextual)
    answers = await ctx.client.ask({"user_context": asked})
    return [Message("user", f"Use this: {said(answers, 'user_context', 'context')}")]
