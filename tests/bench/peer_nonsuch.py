"""The bench's service on nonsuch: an audience, a scope and a Cedar policy on every tool, audit on.

The audit goes to the null device: formatting and the write are paid, the disk is not measured.
"""

import logging
import os
import tempfile
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from nonsuch import Agent, App, Context, Registry, asgi, can, define_app_mcp, expose

from . import service
from .wire import Asgi

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
    return cast(Asgi, asgi(application(tools, READS_AN_ARGUMENT)))


def build_plain(tools: int) -> Asgi:
    return cast(Asgi, asgi(application(tools, READS_NONE)))


def application(tools: int, policy: str) -> App[None]:
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
            scopes={service.SCOPE: names},
            roles=[service.ROLE, service.OTHER_ROLE, *service.TEAMS],
            resolve_token=lambda token: callers.get(token),
            policies_dir=Path(policies),
        )


def principals() -> dict[str, Agent]:
    """Token -> caller."""
    roles = service.callers()
    return {token: Agent(token, roles=roles[token], scopes=service.scopes(token)) for token in roles}


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
