"""The bench's service on nonsuch: an audience, a scope and a Cedar policy on every tool, audit and rates on.

The audit goes to the null device: formatting and the write are paid, the disk is not measured.
"""

import logging
import os
import random
import tempfile
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

from pydantic import BaseModel

from nonsuch import Agent, App, Context, Limits, Rate, Registry, asgi, can, define_app_mcp, expose, otel
from nonsuch.adapters.edge.telemetry import Telemetry
from nonsuch.kernel.model import Call
from nonsuch.kernel.steps import Permit
from nonsuch.kernel.strict_json import Json

from . import service
from .wire import POOL, Asgi

CALLERS = 256
NEVER_SPENT = Rate(1_000_000_000)  # every request is counted, and none is refused

READS_AN_ARGUMENT = f"""
@id("within-limit")
permit (principal in Role::"{service.ROLE}", action in Action::"{service.PERMISSION}", resource)
when {{ context.args.amount <= {service.LIMIT} }};
"""
READS_NONE = f"""
@id("editors")
permit (principal in Role::"{service.ROLE}", action in Action::"{service.PERMISSION}", resource);
"""


class Touch(BaseModel):
    itemId: str
    amount: int
    note: str = ""


class Touched(BaseModel):
    id: str
    amount: int
    state: str


def build(tools: int) -> Asgi:
    return asgi(application(tools, READS_AN_ARGUMENT))


def build_plain(tools: int) -> Asgi:
    return asgi(application(tools, READS_NONE))


def build_recorded(tools: int) -> Asgi:
    from . import recording

    recording.switch_on()
    return asgi(application(tools, READS_AN_ARGUMENT, otel()))


def application(tools: int, policy: str, telemetry: Telemetry | None = None) -> App:
    """The service, its audit switched on."""
    _audit_to_null()
    registry = Registry()
    names = [service.tool_name(index) for index in range(tools)]
    for name in names:
        _declare(registry, name)
    callers = principals()
    with tempfile.TemporaryDirectory() as policies:
        Path(policies, "bench.cedar").write_text(policy)
        return define_app_mcp(
            registry,
            name=service.NAME,
            version="1",
            include="exposed",
            scopes={service.SCOPE: names},
            roles=[service.ROLE, service.OTHER_ROLE, *service.TEAMS],
            resolve_token=lambda token: callers.get(token),
            rate_limits=Limits(read=NEVER_SPENT, write=NEVER_SPENT),
            policies_dir=Path(policies),
            telemetry=telemetry,
        )


def principals() -> dict[str, Agent]:
    """Token -> caller."""
    roles = service.callers()
    return {token: Agent(token, roles=roles[token], scopes=service.scopes(token)) for token in roles}


def decisions(tools: int, pattern: str) -> Callable[[int], None]:
    """Decide so many calls: view, scope, arguments and policy, up to the permit and without the handler."""
    kernel = application(tools, READS_AN_ARGUMENT).kernel
    asked = _asked(tools, pattern)
    turns = cycle(asked)

    def decide(count: int) -> None:
        for principal, call in islice(turns, count):
            step = next(kernel.invoke(kernel.view_for(principal), call))
            if not isinstance(step, Permit):
                raise RuntimeError(f"no permit for `{call.name}`")

    decide(len(asked))  # warm: what is built when a tool is first called is not what is asked here
    return decide


def _asked(tools: int, pattern: str) -> list[tuple[Agent, Call]]:
    """`hot`: one caller, few tools. `callers`: many callers, few tools. `uniform`: one caller, every tool."""
    known = principals()
    if pattern == "callers":
        callers = [known[service.fresh_token(index)] for index in range(CALLERS)]
    else:
        callers = [known[service.TOKEN]]
    calls = _calls(tools, pattern)
    return [(callers[(turn + turn // CALLERS) % len(callers)], call) for turn, call in enumerate(calls)]


def _calls(tools: int, pattern: str) -> list[Call]:
    """Every tool or the hot ones in turn, shuffled; no two calls alike."""
    order = list(range(tools)) if pattern == "uniform" else service.hot(tools)
    random.Random(0).shuffle(order)  # noqa: S311  (an order, not a secret)
    turns = range(max(POOL, len(order)))
    return [_call(order[turn % len(order)], 1 + turn // len(order) % service.LIMIT) for turn in turns]


def _call(index: int, amount: int) -> Call:
    arguments: dict[str, Json] = {**service.arguments(index, amount)}
    return Call(service.tool_name(index), arguments, "mcp")


def _declare(registry: Registry, name: str) -> None:
    async def handler(input: Touch, ctx: Context[None]) -> Touched:
        return Touched.model_validate(service.touch(input.itemId, input.amount))

    handler.__name__ = handler.__qualname__ = name
    registry.action(
        policy=can(service.PERMISSION),
        mcp=expose(service.DESCRIPTION, visible_to=[service.ROLE, service.OTHER_ROLE]),
        path=f"items/{name}",
    )(handler)


def _audit_to_null() -> None:
    handler = logging.FileHandler(os.devnull)
    logger = logging.getLogger("nonsuch.audit")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
