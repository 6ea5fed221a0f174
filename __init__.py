"""nonsuch: declare actions once, serve them to agents, people and services behind one Cedar-judged kernel."""

from .adapters.edge.app import App, define_app_mcp
from .adapters.edge.asgi import asgi
from .adapters.edge.postgres.grants import postgres_grants
from .adapters.edge.reload import Reloaded, reload_policies
from .adapters.edge.run import Open, OpenSync
from .kernel.declare import (
    Context,
    Registry,
    audience,
    can,
    expose,
    grant,
    prompt,
    resource,
    tool,
)
from .kernel.errors import ActionError, BootError
from .kernel.model import Agent, Human, Principal
from .kernel.steps import RequestFacts

__all__ = [
    "ActionError",
    "Agent",
    "App",
    "BootError",
    "Context",
    "Human",
    "Open",
    "OpenSync",
    "Principal",
    "Registry",
    "Reloaded",
    "RequestFacts",
    "asgi",
    "audience",
    "can",
    "define_app_mcp",
    "expose",
    "grant",
    "postgres_grants",
    "prompt",
    "reload_policies",
    "resource",
    "tool",
]
