"""nonsuch: declare actions once, serve them to agents, people and services behind one Cedar-judged kernel."""

from .adapters.edge.app import App, define_app_mcp
from .adapters.edge.asgi import asgi
from .adapters.edge.facts import fact_resources
from .adapters.edge.postgres.grants import postgres_grants
from .adapters.edge.reload import Reloaded, reload_policies
from .adapters.edge.run import Open, OpenSync
from .kernel.asks import Elicit, Elicited, ElicitUrl, ListRoots, Roots, Sample, Sampled
from .kernel.content import Audio, Content, Embedded, Image, Link, Message, Text
from .kernel.declare import (
    Completing,
    Context,
    Icon,
    ListParams,
    Registry,
    audience,
    can,
    expose,
    grant,
    group,
    prompt,
    resource,
    tool,
)
from .kernel.errors import ActionError, BootError
from .kernel.model import Agent, Human, Principal
from .kernel.money import Money
from .kernel.refs import Ref
from .kernel.steps import RequestFacts

__all__ = [
    "ActionError",
    "Agent",
    "App",
    "Audio",
    "BootError",
    "Completing",
    "Content",
    "Context",
    "Elicit",
    "ElicitUrl",
    "Elicited",
    "Embedded",
    "Human",
    "Icon",
    "Image",
    "Link",
    "ListParams",
    "ListRoots",
    "Message",
    "Money",
    "Open",
    "OpenSync",
    "Principal",
    "Ref",
    "Registry",
    "Reloaded",
    "RequestFacts",
    "Roots",
    "Sample",
    "Sampled",
    "Text",
    "asgi",
    "audience",
    "can",
    "define_app_mcp",
    "expose",
    "fact_resources",
    "grant",
    "group",
    "postgres_grants",
    "prompt",
    "reload_policies",
    "resource",
    "tool",
]
