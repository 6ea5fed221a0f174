"""nonsuch: declare actions once, serve them to agents, people and services behind one Cedar-judged kernel."""

from .adapters.edge.app import App, define_app_mcp
from .adapters.edge.asgi import asgi
from .adapters.edge.facts import fact_resources
from .adapters.edge.limits import MemoryRateStore, RateStore
from .adapters.edge.postgres.grants import postgres_grants
from .adapters.edge.postgres.limits import postgres_rate_limit_store
from .adapters.edge.postgres.tasks import Cipher, PostgresTaskStore
from .adapters.edge.reload import Reloaded, reload_policies
from .adapters.edge.run import Open, OpenSync
from .adapters.edge.stdio import serve_stdio, serve_stdio_async
from .adapters.edge.task_store import MemoryTaskStore, TaskStore
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
from .kernel.steps import RequestFacts
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
    "Human",
    "Icon",
    "Image",
    "Limits",
    "Link",
    "ListParams",
    "ListRoots",
    "McpSurface",
    "MemoryRateStore",
    "MemoryTaskStore",
    "Message",
    "MetaAction",
    "MetaResource",
    "Money",
    "OAuth",
    "Open",
    "OpenSync",
    "PostgresTaskStore",
    "Principal",
    "Rate",
    "RateStore",
    "Ref",
    "Registry",
    "Reloaded",
    "RequestFacts",
    "Roots",
    "Sample",
    "Sampled",
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
    "measure_mcp_surface",
    "oauth",
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
