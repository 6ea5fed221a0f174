"""Every error code: what it means, what to do, and whose mistake it is. A table, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Culprit = Literal["caller", "developer", "operator"]


@dataclass(frozen=True, slots=True)
class Code:
    """One stable code. ``fix`` speaks to whoever runs the app, ``caller_fix`` to who called it."""

    code: str
    culprit: Culprit
    cause: str
    fix: str
    caller_fix: str = ""

    @property
    def docs(self) -> str:
        """Where the code is explained."""
        return f"nonsuch://errors/{self.code}"


_TABLE: Final = (
    # what a caller meets
    Code(
        "X_MCP_TOOL_UNKNOWN", "caller", "no visible tool has that name", "call tools/list to read the catalog"
    ),
    Code(
        "X_MCP_SCOPE_DENIED",
        "caller",
        "the connection's token does not carry the scope that this tool needs",
        "let `resolve_token` return the scope for this token, or take the tool out of that `scopes` entry",
        "ask for a token with the scope",
    ),
    Code(
        "X_INPUT_INVALID",
        "caller",
        "the arguments do not satisfy the published input schema",
        "correct the named fields and send the call again",
        "correct the named fields and send the call again",
    ),
    Code(
        "X_FORBIDDEN",
        "caller",
        "no policy permits this call",
        "grant the permission to one of the principal's roles, or change the policy that refused",
        "ask the account owner for the permission",
    ),
    Code(
        "X_NOT_FOUND",
        "caller",
        "nothing answers to that input",
        "check the id that was sent",
        "check the id that was sent",
    ),
    Code(
        "X_UNAUTHENTICATED",
        "caller",
        "the request carries no token that is known here",
        "send `Authorization: Bearer <token>` with a token that `resolve_token` accepts",
        "connect with a valid token",
    ),
    Code(
        "X_MCP_AGENTS_ONLY",
        "caller",
        "this token is a person's, and MCP is for agents",
        "let `resolve_token` return `human.delegate(...)` for this token",
        "connect with a token of an agent",
    ),
    Code(
        "X_ROUTE_NOT_FOUND",
        "caller",
        "no action answers at that path",
        "check the path: `/api/` and the action's name, or its `path=`",
        "check the path",
    ),
    Code(
        "X_METHOD_NOT_ALLOWED",
        "caller",
        "the path answers other methods than this one",
        "send one of the methods that `Allow` names, or declare this one with `methods=`",
        "send one of the methods that `Allow` names",
    ),
    Code(
        "X_MEDIA_TYPE_UNSUPPORTED",
        "caller",
        "the body is of a media type that is not read here",
        "send uncompressed application/json",
        "send uncompressed application/json",
    ),
    Code(
        "X_IDEMPOTENCY_CONFLICT",
        "caller",
        "the idempotency key belongs to a call with other input",
        "send a key again with the very input it was first sent with; for other input choose another key",
        "send a key again with the very input it was first sent with; for other input choose another key",
    ),
    Code(
        "X_IDEMPOTENCY_IN_PROGRESS",
        "caller",
        "a call with this idempotency key has begun, and how it ended is not known yet",
        "send it again in a moment; if that never ends, read the state before calling with another key",
        "send it again in a moment; if that never ends, read the state before calling with another key",
    ),
    Code(
        "X_IDEMPOTENCY_KEY_REQUIRED",
        "caller",
        "this action runs only under an idempotency key",
        "send `idempotencyKey` among the arguments, over HTTP the header `Idempotency-Key`",
        "send `idempotencyKey` among the arguments, over HTTP the header `Idempotency-Key`",
    ),
    Code(
        "X_IDEMPOTENCY_STORE_FAILED",
        "operator",
        "calls with idempotency keys cannot be recorded at the moment, and none runs unrecorded",
        "look at the idempotency store: it must answer before a keyed call may run",
        "send the call again in a moment, with the same key",
    ),
    Code(
        "X_MCP_PROTOCOL",
        "caller",
        "the message is not a request this server can read",
        "send one JSON-RPC 2.0 object in each POST",
        "send one JSON-RPC 2.0 object in each POST",
    ),
    Code(
        "X_MCP_BODY_TOO_LARGE",
        "caller",
        "the message is larger than this endpoint reads",
        "send less in one message, or raise `body_limit_bytes` in `define_app_mcp`",
        "send less in one message",
    ),
    Code(
        "X_MCP_RATE_LIMITED",
        "caller",
        "the allowance for requests of this kind is spent",
        "raise `rate_limits` of `define_app_mcp`, or let the caller wait",
        "wait as long as `Retry-After` says, then send the request again",
    ),
    Code(
        "X_RATE_STORE_FAILED",
        "operator",
        "requests cannot be counted at the moment, and none passes uncounted",
        "look at the rate store: it must answer before a request may pass",
        "send the request again in a moment",
    ),
    Code(
        "X_MCP_CAPABILITY_MISSING",
        "caller",
        "this tool asks its client for something that the client did not declare it can do",
        "use a client that declares the capability, or drop it from the tool's `needs`",
        "use a client that declares the capability",
    ),
    Code(
        "X_MCP_CLIENT_SILENT",
        "caller",
        "the work needs an answer from the client, which cannot be asked or did not answer in time",
        "call over a connection that carries questions, with a client that declares what it can be asked",
        "call with a client that can be asked, and answer it",
    ),
    Code(
        "X_MCP_TASK_UNKNOWN",
        "caller",
        "no task of yours has that id, or it is gone",
        "raise `ttl_seconds` of `TaskLimits`, or let the processes of the app share a store of tasks",
        "call the tool again; a task and its result are kept for its `ttlMs`",
    ),
    Code(
        "X_MCP_TASKS_FULL",
        "caller",
        "no task was begun: as many are kept as there may be, yours or all",
        "raise `per_principal` or `in_all` of `TaskLimits`, or lower `ttl_seconds`",
        "wait until one of your tasks is gone, or call without the tasks extension where the tool allows it",
    ),
    Code(
        "X_MCP_RESOURCE_UNKNOWN",
        "caller",
        "no visible resource has that URI",
        "call resources/list and resources/templates/list to read what there is",
    ),
    Code(
        "X_MCP_PROMPT_UNKNOWN",
        "caller",
        "no visible prompt has that name",
        "call prompts/list to read what there is",
    ),
    Code(
        "X_PROMPT_CHANGED",
        "developer",
        "the prompt's file no longer fits what was declared when the app started",
        "give the changed prompt a version of its own, or start the app again",
        "ask the app's developer",
    ),
    Code(
        "X_MCP_QUERY_REJECTED",
        "caller",
        "`db.query` was not given one statement that only reads",
        "send exactly one SELECT, WITH, EXPLAIN, SHOW, TABLE or VALUES; a CTE that writes is no read",
        "send exactly one SELECT, WITH, EXPLAIN, SHOW, TABLE or VALUES; a CTE that writes is no read",
    ),
    Code(
        "X_JSON_INVALID",
        "caller",
        "the body is not one JSON object this server can read",
        "send one JSON object in UTF-8, without duplicate keys",
        "send one JSON object in UTF-8, without duplicate keys",
    ),
    # what a developer's code met while it ran
    Code(
        "X_INTERNAL",
        "developer",
        "the action did not succeed",
        "read the server's log at the time of the call",
        "try again later, or tell the app's developer",
    ),
    Code(
        "X_INTERRUPTED",
        "caller",
        "the call was interrupted, and what it began may still take effect",
        "read the state before calling again",
        "read the state before calling again",
    ),
    Code(
        "X_OUTPUT_INVALID",
        "developer",
        "the handler's answer does not satisfy its declared output",
        "return a value of the declared output type",
        "tell the app's developer",
    ),
    # what boot refuses
    Code(
        "X_MCP_TOOL_UNDECLARED",
        "developer",
        "a listed action or query never declared that it is a tool",
        "add `mcp=expose(...)` to its declaration, or take it off the list",
    ),
    Code(
        "X_MCP_CLIENT_TROUBLE",
        "developer",
        "clients in the field do not take this as it is declared",
        "change it if those clients are to use it; the server serves it all the same",
    ),
    Code(
        "X_TOKENS_INVALID",
        "operator",
        "the file of tokens cannot be used",
        "write each token as `[[token]]` with `sha256`, `id`, `roles` and `scopes`",
    ),
    Code(
        "X_MCP_OAUTH_INVALID",
        "developer",
        "the declared protected resource is not one that RFC 9728 knows",
        "name https issuers (http on this machine only) and the endpoint's address as its users type it",
    ),
    Code(
        "X_MCP_GROUP_UNKNOWN",
        "developer",
        "`groups` names a tool that is not served",
        "spell the name as one of the tools that this server serves, or drop it from the group",
    ),
    Code(
        "X_MCP_GROUP_CONFLICT",
        "developer",
        "`groups` lists one tool twice",
        "leave the tool in the one group where it is looked for",
    ),
    Code(
        "X_MCP_SURFACE_INVALID",
        "developer",
        "`surface` and `groups` do not fit together",
        "give `groups` with a surface that serves them, or neither",
    ),
    Code(
        "X_MCP_LIST_PARAMS_INVALID",
        "developer",
        "`list_params` whitelists a key that the query's input does not declare",
        "declare the key as a field of the input model, or take it off the whitelist",
    ),
    Code(
        "X_MCP_SURFACE_OVER_BUDGET",
        "developer",
        "what a caller is told first is longer than its declared ceiling",
        "shorten descriptions, group tools, or raise the ceiling with the reason beside it",
    ),
    Code(
        "X_MCP_IDEMPOTENCY_KEY_SHADOWED",
        "developer",
        "an idempotent action's input declares `idempotencyKey`, which is the argument of the retry key",
        "give the field another name or alias",
    ),
    Code("X_MCP_TOOL_DUPLICATE", "developer", "two entries reach one tool name", "rename one of the two"),
    Code(
        "X_MCP_TOOL_UNSAFE",
        "developer",
        "a tool declares no policy",
        "give it `policy=` with an existing permission",
    ),
    Code(
        "X_MCP_TOOL_NAME_INVALID",
        "developer",
        "a tool's name cannot be sent to every client",
        "use 1 to 64 of the characters A-Z a-z 0-9 _ . / -",
    ),
    Code(
        "X_MCP_SCOPE_UNKNOWN",
        "developer",
        "`scopes` names a tool that this server does not serve",
        "spell the name as one of the tools that are served, or take it out of `scopes`",
    ),
    Code(
        "X_MCP_SCOPE_CONFLICT",
        "developer",
        "two scopes claim one tool",
        "keep the tool under the one scope that a token must hold for it",
    ),
    Code(
        "X_MCP_SCOPE_UNCOVERED",
        "developer",
        "`scopes` is given and a tool is under none of them",
        "add the tool to the scope that a token must hold for it",
    ),
    Code(
        "X_MCP_RESOURCE_DUPLICATE",
        "developer",
        "two resources claim one URI",
        "give one of the two another URI",
    ),
    Code(
        "X_ACTION_UNREGISTERED",
        "developer",
        "a listed action belongs to no registry of this app",
        "declare it with `@registry.action` or `@registry.query` of the registry you pass",
    ),
    Code(
        "X_DECLARATION_INVALID",
        "developer",
        "a declaration cannot be served as it stands",
        "correct the declaration as the cause says",
    ),
    Code(
        "X_ROUTE_DUPLICATE",
        "developer",
        "two actions claim one HTTP path",
        "give one of the two another `path=`",
    ),
    Code(
        "X_NAME_INVALID",
        "developer",
        "a role, scope or permission has a name that policies cannot carry",
        "use 1 to 128 of the characters A-Z a-z 0-9 _ . : / -",
    ),
    Code(
        "X_ROLE_UNKNOWN",
        "developer",
        "a declaration or a policy names a role that the app does not declare",
        "correct the spelling, or add the role to `roles=`",
    ),
    Code(
        "X_POLICY_UNREADABLE",
        "operator",
        "a policy file cannot be read",
        "give the path of a directory of `.cedar` files that this process may read",
    ),
    Code(
        "X_POLICY_SYNTAX",
        "operator",
        "a policy file does not parse",
        "correct the syntax at the place the cause names",
    ),
    Code(
        "X_POLICY_TOO_DEEP",
        "operator",
        "a policy nests deeper than the engine can evaluate safely",
        "split the condition into several policies",
    ),
    Code(
        "X_POLICY_INVALID",
        "operator",
        "a policy does not fit the schema of this app",
        "correct the names and types that the cause points at",
    ),
    Code(
        "X_POLICY_HEAD_UNCONFINED",
        "operator",
        "a policy's action head is not confined to one gate",
        'name the tools or permissions it is about: `action in Action::"post:publish"`, or `Action::"any"`',
    ),
    Code(
        "X_POLICY_ACTION_UNKNOWN",
        "operator",
        "a policy names an action that this app does not declare",
        "correct the spelling, or declare the action",
    ),
    Code(
        "X_POLICY_ID_DUPLICATE", "operator", "two policies carry one @id", "give one of the two another @id"
    ),
    Code(
        "X_MCP_APP_UNMOUNTED",
        "developer",
        "the app has no `resolve_token`, so nobody could ever be let in",
        "give `define_app_mcp` a `resolve_token`",
    ),
    Code(
        "X_MCP_PATH_DUPLICATE",
        "developer",
        "two endpoints have one path",
        "give each `define_app_mcp(...)` of the list a `path=` of its own",
    ),
    Code(
        "X_EXTRA_MISSING",
        "operator",
        "an optional part is not installed",
        "install the extra that the cause names",
    ),
    Code(
        "X_POLICY_SCHEMA_INVALID",
        "operator",
        "the entity types of this app do not make a Cedar schema",
        "correct the schema file or the model at the place the cause names",
    ),
    Code(
        "X_POLICY_LINK_INVALID",
        "operator",
        "a template link cannot be applied",
        "give `template_id`, `link_id` and an entity for each slot of the template",
    ),
    Code(
        "X_POLICY_NEVER_APPLIES",
        "operator",
        "a policy can never decide anything",
        "correct the policy or delete it",
    ),
    Code(
        "X_POLICY_SOURCE_FAILED",
        "operator",
        "a source of grants cannot be read",
        "make the source readable, then start or reload again",
    ),
    Code(
        "X_EMBEDDED_POSTGRES_FAILED",
        "operator",
        "the embedded PostgreSQL does not start",
        "read the cause; give another data directory, or set DATABASE_URL to a server of yours",
    ),
    # what the command line refuses
    Code(
        "X_CLI_USAGE",
        "operator",
        "the command line cannot be carried out as it was given",
        "read `nonsuch policy --help`, or `--help` of the command",
    ),
    Code(
        "X_SERVE_ADDRESS",
        "operator",
        "nothing can be served at that address",
        "stop what listens there, or give another `--host` or `--port`",
    ),
    Code(
        "X_SERVE_FAILED",
        "operator",
        "the server did not start",
        "read what was logged: most often the app's `lifespan` raised",
    ),
    Code(
        "X_APP_NOT_FOUND",
        "operator",
        "the command line finds no app",
        'name its module in pyproject.toml: `app = "package.module"` under `[tool.nonsuch]`, or use `--app`',
    ),
    Code(
        "X_POLICY_TEST_INVALID",
        "operator",
        "a decision table cannot be read",
        "correct the row as the cause says",
    ),
)
CODES: Final = {entry.code: entry for entry in _TABLE}
