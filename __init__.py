"""nonsuch: declare actions once, serve them to agents, people and services behind one Cedar-judged kernel."""

from .adapters.edge.app import App, define_app_mcp
from .adapters.edge.asgi import asgi
from .adapters.edge.facts import fact_resources
from .adapters.edge.guards import Guard, Refused, guard
from .adapters.edge.idempotency import IdempotencyStore, MemoryIdempotencyStore
from .adapters.edge.limits import MemoryRateStore, RateStore
from .adapters.edge.openapi import openapi
from .adapters.edge.postgres.grants import postgres_grants
from .adapters.edge.postgres.idempotency import PostgresIdempotencyStore
from .adapters.edge.postgres.limits import postgres_rate_limit_store
from .adapters.edge.postgres.tasks import Cipher, PostgresTaskStore
from .adapters.edge.reload import Reloaded, reload_policies
from .adapters.edge.run import Open, OpenSync
from .adapters.edge.stdio import serve_stdio, serve_stdio_async
from .adapters.edge.task_store import MemoryTaskStore, TaskStore
from .adapters.edge.tokens.introspected import IntrospectedTokens
from .adapters.edge.tokens.signed import SignedTokens
from .adapters.edge.tokens.static import StaticTokens
from .adapters.edge.wsgi import wsgi
from .adapters.mcp.budget import (
    McpSurface,
    SurfaceOverBudget,
    assert_mcp_surface_budget,
    measure_mcp_surface,
)
from .adapters.mcp.describe import tool_from, tool_list_entry
from .adapters.mcp.oauth import OAuth, oauth
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
from .kernel.meta_text import MetaAction, MetaResource, render_catalog
from .kernel.meter import Limits, Rate, Verdict
from .kernel.model import Agent, Human, Principal
from .kernel.money import Money
from .kernel.refs import Ref
from .kernel.steps import RequestFacts, SessionFacts
from .kernel.tasks import TaskLimits

__all__ = [
    "ActionError",
    "Agent",
    "App",
    "Audio",
    "BootError",
    "Cipher",
    "Completing",
    "Content",
    "Context",
    "Elicit",
    "ElicitUrl",
    "Elicited",
    "Embedded",
    "Guard",
    "Human",
    "Icon",
    "IdempotencyStore",
    "Image",
    "IntrospectedTokens",
    "Limits",
    "Link",
    "ListParams",
    "ListRoots",
    "McpSurface",
    "MemoryIdempotencyStore",
    "MemoryRateStore",
    "MemoryTaskStore",
    "Message",
    "MetaAction",
    "MetaResource",
    "Money",
    "OAuth",
    "Open",
    "OpenSync",
    "PostgresIdempotencyStore",
    "PostgresTaskStore",
    "Principal",
    "Rate",
    "RateStore",
    "Ref",
    "Refused",
    "Registry",
    "Reloaded",
    "RequestFacts",
    "Roots",
    "Sample",
    "Sampled",
    "SessionFacts",
    "SignedTokens",
    "StaticTokens",
    "SurfaceOverBudget",
    "TaskLimits",
    "TaskStore",
    "Text",
    "Verdict",
    "asgi",
    "assert_mcp_surface_budget",
    "audience",
    "can",
    "define_app_mcp",
    "expose",
    "fact_resources",
    "grant",
    "group",
    "guard",
    "measure_mcp_surface",
    "oauth",
    "openapi",
    "postgres_grants",
    "postgres_rate_limit_store",
    "prompt",
    "reload_policies",
    "render_catalog",
    "resource",
    "serve_stdio",
    "serve_stdio_async",
    "tool",
    "tool_from",
    "tool_list_entry",
    "wsgi",
]
