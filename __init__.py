"""nonsuch: declare actions once, serve them to agents, people and services behind one Cedar-judged kernel."""

from .adapters.edge.app import App, define_app_mcp
from .adapters.edge.asgi import asgi
from .adapters.edge.audit_chain import file_audit_chain
from .adapters.edge.audit_keys import audit_keys
from .adapters.edge.confirmations import (
    ConfirmationStore,
    MemoryConfirmationStore,
    memory_confirmation_store,
)
from .adapters.edge.confirming import DEFAULT_MCP_CONFIRMATION_TTL, mcp_confirmations
from .adapters.edge.confirming_lists import confirmations_for, waited
from .adapters.edge.facts import fact_resources
from .adapters.edge.frameworks import django_guard, fastapi_guard, flask_guard, refusal_handler
from .adapters.edge.guards import Allowed, Guard, Refused, guard
from .adapters.edge.idempotency import IdempotencyStore, MemoryIdempotencyStore
from .adapters.edge.limits import MemoryRateStore, RateStore
from .adapters.edge.openapi import openapi
from .adapters.edge.opening import Open, OpenSync
from .adapters.edge.postgres.audit import SQL_AUDIT_TABLE, postgres_audit_chain
from .adapters.edge.postgres.confirmations import (
    SQL_MCP_CONFIRMATIONS_TABLE,
    PostgresConfirmationStore,
    postgres_confirmation_store,
)
from .adapters.edge.postgres.grants import SQL_GRANTS_TABLE, postgres_grants
from .adapters.edge.postgres.idempotency import SQL_IDEMPOTENCY_TABLE, PostgresIdempotencyStore
from .adapters.edge.postgres.limits import SQL_LIMITS_TABLE, postgres_rate_limit_store
from .adapters.edge.postgres.migrate_tool import db_migrate
from .adapters.edge.postgres.tasks import SQL_TASKS_TABLE, Cipher, PostgresTaskStore
from .adapters.edge.reload import Reloaded, reload_policies
from .adapters.edge.runtime import Runtime
from .adapters.edge.seal_keys import new_seal_key, seal_keys
from .adapters.edge.sql_query import Queries, db_query
from .adapters.edge.stdio import serve_stdio, serve_stdio_async
from .adapters.edge.streams import StreamLimits
from .adapters.edge.task_store import MemoryTaskStore, TaskStore
from .adapters.edge.telemetry import otel
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
from .kernel.confirm_seal import KeysRefused, SealKey, SealKeys
from .kernel.confirmation import Confirmation
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
from .kernel.model import (
    Agent,
    Begun,
    Failed,
    Hidden,
    Human,
    InputRequired,
    InvalidArguments,
    Ok,
    Outcome,
    PolicyDenied,
    PolicyError,
    Principal,
    ScopeDenied,
    Unconfirmed,
    Unfit,
)
from .kernel.money import Money
from .kernel.refs import Ref
from .kernel.sql_catalog import Own
from .kernel.steps import RequestFacts, SessionFacts
from .kernel.tasks import TaskLimits

__all__ = [
    "DEFAULT_MCP_CONFIRMATION_TTL",
    "SQL_AUDIT_TABLE",
    "SQL_GRANTS_TABLE",
    "SQL_IDEMPOTENCY_TABLE",
    "SQL_LIMITS_TABLE",
    "SQL_MCP_CONFIRMATIONS_TABLE",
    "SQL_TASKS_TABLE",
    "ActionError",
    "Agent",
    "Allowed",
    "App",
    "Audio",
    "Begun",
    "BootError",
    "Cipher",
    "Completing",
    "Confirmation",
    "ConfirmationStore",
    "Content",
    "Context",
    "Elicit",
    "ElicitUrl",
    "Elicited",
    "Embedded",
    "Failed",
    "Guard",
    "Hidden",
    "Human",
    "Icon",
    "IdempotencyStore",
    "Image",
    "InputRequired",
    "IntrospectedTokens",
    "InvalidArguments",
    "KeysRefused",
    "Limits",
    "Link",
    "ListParams",
    "ListRoots",
    "McpSurface",
    "MemoryConfirmationStore",
    "MemoryIdempotencyStore",
    "MemoryRateStore",
    "MemoryTaskStore",
    "Message",
    "MetaAction",
    "MetaResource",
    "Money",
    "OAuth",
    "Ok",
    "Open",
    "OpenSync",
    "Outcome",
    "Own",
    "PolicyDenied",
    "PolicyError",
    "PostgresConfirmationStore",
    "PostgresIdempotencyStore",
    "PostgresTaskStore",
    "Principal",
    "Queries",
    "Rate",
    "RateStore",
    "Ref",
    "Refused",
    "Registry",
    "Reloaded",
    "RequestFacts",
    "Roots",
    "Runtime",
    "Sample",
    "Sampled",
    "ScopeDenied",
    "SealKey",
    "SealKeys",
    "SessionFacts",
    "SignedTokens",
    "StaticTokens",
    "StreamLimits",
    "SurfaceOverBudget",
    "TaskLimits",
    "TaskStore",
    "Text",
    "Unconfirmed",
    "Unfit",
    "Verdict",
    "asgi",
    "assert_mcp_surface_budget",
    "audience",
    "audit_keys",
    "can",
    "confirmations_for",
    "db_migrate",
    "db_query",
    "define_app_mcp",
    "django_guard",
    "expose",
    "fact_resources",
    "fastapi_guard",
    "file_audit_chain",
    "flask_guard",
    "grant",
    "group",
    "guard",
    "mcp_confirmations",
    "measure_mcp_surface",
    "memory_confirmation_store",
    "new_seal_key",
    "oauth",
    "openapi",
    "otel",
    "postgres_audit_chain",
    "postgres_confirmation_store",
    "postgres_grants",
    "postgres_rate_limit_store",
    "prompt",
    "refusal_handler",
    "reload_policies",
    "render_catalog",
    "resource",
    "seal_keys",
    "serve_stdio",
    "serve_stdio_async",
    "tool",
    "tool_from",
    "tool_list_entry",
    "waited",
    "wsgi",
]
