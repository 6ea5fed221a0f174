"""Every reason why an app cannot boot, each with code, cause and fix, and all of a run at once.

The causes are written out: they are what a developer reads.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, List, cast  # noqa: UP035  (bare `List` is test material)

import pytest
from pydantic import BaseModel, Field

from nonsuch import (
    Agent,
    BootError,
    Context,
    Registry,
    asgi,
    audience,
    can,
    define_app_mcp,
    expose,
    grant,
    group,
    resource,
    tool,
)
from nonsuch.kernel.catalog import Entry
from nonsuch.kernel.codes import CODES
from nonsuch.kernel.declare import Action
from nonsuch.kernel.errors import Fault, fault

from .trial import boot, faults, folder

if typing.TYPE_CHECKING:
    from decimal import Decimal as Unimported


class Word(BaseModel):
    word: str


class Post(BaseModel):
    id: str
    org: str


class Numbered(BaseModel):
    id: int


class Nameless(BaseModel):
    name: str


class Role(BaseModel):
    id: str


class Opaque:
    """No type that pydantic knows."""


class HasOpaque(BaseModel):
    model_config = {"arbitrary_types_allowed": True}
    held: Opaque


class LooksAhead(BaseModel):
    word: Annotated[str, Field(json_schema_extra={"pattern": "(?=a)a"})]


class Bare(BaseModel):
    words: List  # type: ignore[type-arg]  # noqa: UP006  # pyright: ignore[reportMissingTypeArgument, reportUnknownVariableType]


def _other_post() -> type[BaseModel]:
    class Post(BaseModel):
        id: str
        title: str

    return Post


OtherPost = _other_post()


def say() -> str:
    return "said"


def tell() -> str:
    return "told"


def find_post(input: Word) -> Post | None:
    return Post(id=input.word, org="acme")


def find_other(input: Word) -> Any:
    return OtherPost(id=input.word, title="")


find_other.__annotations__["return"] = OtherPost


def one(handler: Callable[..., Any] = say, **declared: Any) -> Registry:
    """A registry of one exposed action."""
    registry = Registry()
    registry.action(policy=declared.pop("policy", can("word:say")), mcp=expose("Say", **declared))(handler)
    return registry


def two(**given: Any) -> Registry:
    registry = one(**given)
    registry.action(policy=can("word:tell"), mcp=expose("Tell"))(tell)
    return registry


# tools


def test_a_listed_action_that_never_said_it_is_a_tool() -> None:
    registry = Registry()
    quiet = registry.action(policy=can("word:say"))(say)
    assert faults(registry, include=None, actions=[quiet]) == [
        Fault(
            "X_MCP_TOOL_UNDECLARED",
            "`say` is listed and never declared `mcp=expose(...)`",
            "add `mcp=expose(...)` to its declaration, or take it off the list",
        )
    ]
    assert faults(registry, include=None, queries=[quiet])[0].code == "X_MCP_TOOL_UNDECLARED"


def test_a_listed_action_of_no_registry_of_this_app() -> None:
    elsewhere = one().actions[0]
    function = cast("Action", tell)
    unnamed = cast("Action", object())
    assert faults(Registry(), actions=[elsewhere, function, unnamed]) == [
        Fault(
            "X_ACTION_UNREGISTERED",
            f"{name} is listed and belongs to no registry of this app",
            "declare it with `@registry.action` or `@registry.query` of the registry you pass",
        )
        for name in ("`say`", "`tell`", "`<class 'object'>`")
    ]


def test_a_hand_written_tool_of_the_same_name() -> None:
    assert faults(one(), tools={"say": tool("Say", say, policy="word:say")}) == [
        Fault("X_MCP_TOOL_DUPLICATE", "two entries reach the tool name `say`", "rename one of the two")
    ]


@pytest.mark.parametrize("exposed", [True, False])
def test_two_functions_of_one_name_are_one_fault(exposed: bool) -> None:
    registry = one()
    face = expose("Say") if exposed else None
    registry.action(policy=can("word:say"), mcp=face, path="other")(say)
    assert faults(registry) == [fault("X_MCP_TOOL_DUPLICATE", "two entries reach the tool name `say`")]


def test_one_action_listed_three_times_is_one_tool() -> None:
    registry = one()
    again = registry.actions[0]
    app = boot(registry, actions=[again, again], queries=[again])
    assert [entry.name for entry in app.kernel.catalog.entries] == ["say"]


def test_a_tool_without_a_policy() -> None:
    assert faults(Registry(), tools={"say": tool("Say", say)}) == [
        Fault(
            "X_MCP_TOOL_UNSAFE", "`say` declares no policy", "give it `policy=` with an existing permission"
        )
    ]


BAD_NAMES = ["", "a b", "naïve", "x" * 65, "a:b", "say\n", "see", "present", "any", 'a"b', "a\\b", "\ud800"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_cannot_be_sent(name: str) -> None:
    shown = name.encode("ascii", "backslashreplace").decode()
    assert faults(Registry(), tools={name: tool("Say", say, policy="word:say")}) == [
        Fault(
            "X_MCP_TOOL_NAME_INVALID",
            f"`{shown}` is no tool name",
            "use 1 to 64 of the characters A-Z a-z 0-9 _ . / -",
        )
    ]


def test_a_bad_name_is_told_once_and_short() -> None:
    def ü() -> str:
        return "said"

    assert faults(one(ü)) == [fault("X_MCP_TOOL_NAME_INVALID", "`\\xfc` is no tool name")]
    long = faults(Registry(), tools={"y" * 500: tool("Say", say, policy="word:say")})
    assert long == [fault("X_MCP_TOOL_NAME_INVALID", f"`{'y' * 80}` is no tool name")]


@pytest.mark.parametrize("name", ["a", "x" * 64, "notes.read", "a/b", "a-b_C9"])
def test_a_name_is_served_verbatim(name: str) -> None:
    app = boot(Registry(), tools={name: tool("Say", say, policy="word:say")})
    assert [entry.name for entry in app.kernel.catalog.entries] == [name]


# scopes


def test_a_scope_that_names_what_is_not_served() -> None:
    registry = one()
    registry.action(policy=can("word:tell"))(tell)
    assert faults(registry, scopes={"s": ["say", "sya", "tell"]}) == [
        Fault(
            "X_MCP_SCOPE_UNKNOWN",
            f"scope `s` names `{name}`, which is not served",
            "spell the name as one of the tools that are served, or take it out of `scopes`",
        )
        for name in ("sya",)
    ]


def test_two_scopes_that_claim_one_tool() -> None:
    assert faults(two(), scopes={"s": ["say", "tell"], "t": ["tell"]}) == [
        Fault(
            "X_MCP_SCOPE_CONFLICT",
            "`tell` is claimed by `s` and by `t`",
            "keep the tool under the one scope that a token must hold for it",
        )
    ]


def test_a_tool_under_no_scope() -> None:
    assert faults(two(), scopes={"s": ["say"]}) == [
        Fault(
            "X_MCP_SCOPE_UNCOVERED",
            "`tell` is under no scope",
            "add the tool to the scope that a token must hold for it",
        )
    ]


def test_scopes_given_and_empty_cover_nothing() -> None:
    told = faults(two(), scopes={})
    assert told == [
        fault("X_MCP_SCOPE_UNCOVERED", "`say` is under no scope"),
        fault("X_MCP_SCOPE_UNCOVERED", "`tell` is under no scope"),
    ]


def test_one_tool_twice_under_one_scope_is_no_conflict() -> None:
    app = boot(two(), scopes={"s": ["say", "say", "tell"]})
    assert {entry.name: entry.scope for entry in app.kernel.catalog.entries} == {"say": "s", "tell": "s"}


def test_no_scopes_is_no_scope_gate() -> None:
    assert [entry.scope for entry in boot(two()).kernel.catalog.entries] == [None, None]


# names of roles, scopes and permissions

NAME_FIX = "use 1 to 128 of the characters A-Z a-z 0-9 _ . : / -"
NO_NAMES = ["", "a b", "x" * 129, 'a"', "a|b", "é", "a\n"]


def shown(name: str) -> str:
    return name.encode("ascii", "backslashreplace").decode()[:80]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_scope_of_a_name_that_policies_cannot_carry(name: str) -> None:
    told = faults(one(), scopes={name: ["say"]})
    assert told == [Fault("X_NAME_INVALID", f"`{shown(name)}` is no scope name", NAME_FIX)]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_role_of_a_name_that_policies_cannot_carry(name: str) -> None:
    expected = [Fault("X_NAME_INVALID", f"`{shown(name)}` is no role name", NAME_FIX)]
    assert faults(one(visible_to=[name])) == expected
    assert faults(one(), grants=[grant(name, "word:say")]) == expected
    assert faults(one(), roles=[name]) == expected


@pytest.mark.parametrize(
    "name", ["", "say", "word:", ":say", "a b:c", "word:say\n", 'w"o:r', "x" * 129 + ":y"]
)
def test_a_permission_of_a_name_that_policies_cannot_carry(name: str) -> None:
    assert faults(one(policy=can(name))) == [
        Fault(
            "X_NAME_INVALID",
            f"`say` asks for `{shown(name)}`, which is no permission name",
            "name a permission `group:verb`, for example `post:publish`",
        )
    ]
    told = faults(one(), grants=[grant("editor", name)])
    assert told[0] == Fault(
        "X_NAME_INVALID", f"a grant names `{shown(name)}`, which is no permission", NAME_FIX
    )
    assert len(told) == 1


def test_a_role_that_is_misspelt() -> None:
    registry = one(visible_to=["edtor", "editor"])
    assert faults(registry, roles=["editor"], grants=[grant("admn", "word:say")]) == [
        Fault(
            "X_ROLE_UNKNOWN",
            f"{where} names the role `{role}`, which `roles=` does not list",
            "correct the spelling, or add the role to `roles=`",
        )
        for where, role in (("`visible_to` of `say`", "edtor"), ("a grant", "admn"))
    ]


def test_without_a_list_of_roles_the_declarations_are_the_list() -> None:
    app = boot(one(visible_to=["editor"]), grants=[grant("admin", "word:say")])
    assert app.kernel.catalog.roles == {"editor", "admin"}
    listed = boot(one(visible_to=["editor"]), roles=["editor", "admin", "unused"])
    assert listed.kernel.catalog.roles == {"editor", "admin", "unused"}


def test_a_grant_of_a_permission_that_nothing_asks_for() -> None:
    assert faults(one(), grants=[grant("editor", "word:sya")]) == [
        Fault(
            "X_POLICY_ACTION_UNKNOWN",
            "`grant editor word:sya` names `word:sya`, which is no tool and no permission",
            "write `word:say`, or declare the action",
            "<grant editor word:sya>",
        )
    ]


# audiences


def test_visible_to_as_one_string() -> None:
    assert faults(one(visible_to="editor")) == [
        Fault(
            "X_DECLARATION_INVALID",
            "`say` gives `visible_to` one string, not a list of roles",
            "correct the declaration as the cause says",
        )
    ]


def test_audiences_are_shared_by_what_they_say() -> None:
    def ask(_principal: object) -> bool:
        return True

    def never(_principal: object) -> bool:
        return False

    def served(name: str, seen: Any) -> dict[str, Action]:
        return {name: tool("Say", say, policy="word:say", visible_to=seen)}

    tools = {
        **served("a", ["x", "y"]),
        **served("b", ("y", "x", "x")),
        **served("c", audience("true")),
        **served("d", audience("true")),
        **served("e", ask),
        **served("f", ask),
        **served("g", None),
        **served("h", []),
        **served("i", never),
    }
    catalog = boot(Registry(), tools=tools).kernel.catalog
    of = {entry.name: entry.audience for entry in catalog.entries}
    assert of["a"] == of["b"] == "roles:x|y"
    assert of["c"] == of["d"] != of["e"] == of["f"] != of["i"]
    assert (of["g"], of["h"]) == ("everyone", "roles:")
    assert catalog.audiences == set(of.values())
    assert catalog.conditions == {of["c"]: "true"}
    assert set(catalog.predicates) == {of["e"], of["i"]}
    assert catalog.role_audiences == {"roles:x|y": ("x", "y"), "roles:": ()}


INJECTIONS = [
    "true }; permit(principal, action, resource) when { true",
    'true }; permit(principal, action == Action::"see", resource) when { true',
    'true }; @id("x") forbid(principal, action == Action::"see", resource) when { true',
    "true };\n//",
    "true }; when { true",
    "true /*",
]


@pytest.mark.parametrize("condition", INJECTIONS)
def test_a_condition_that_tries_to_be_more_than_a_condition(condition: str) -> None:
    (told,) = faults(one(visible_to=audience(condition)))
    assert told.code == "X_POLICY_SYNTAX"
    assert told.where.startswith("<audience when:")
    assert told.fix == "correct the syntax at the place the cause names"


def test_a_condition_that_is_empty() -> None:
    (told,) = faults(one(visible_to=audience("")))
    assert (told.code, told.fix) == ("X_POLICY_SYNTAX", "write a condition, or leave the clause out")


def test_a_condition_with_a_comment_stays_a_condition() -> None:
    """The generated text closes on a line of its own, so that a comment cannot swallow what closes it."""
    app = boot(one(visible_to=audience("true // of everyone")))
    assert app.kernel.view_for(Agent("a")).find("say", "mcp") is not None


@pytest.mark.parametrize(
    "condition",
    ["resource.name == 1", "context.args.word == 1", "principal.nothing", "1"],
)
def test_a_condition_that_does_not_fit(condition: str) -> None:
    """The gate's context is empty and its resource has no attributes: an audience cannot read arguments."""
    told = faults(one(visible_to=audience(condition)), roles=["admin"])
    assert {each.code for each in told} == {"X_POLICY_INVALID"}


def test_a_condition_that_names_an_unknown_role() -> None:
    told = faults(one(visible_to=audience('principal in Role::"amdin"')), roles=["admin"])
    assert {each.code for each in told} == {"X_ROLE_UNKNOWN"}


# signatures


def no_return():  # type: ignore[no-untyped-def]  # noqa: ANN201  (what is refused)
    return "said"


def loose(word: str) -> str:
    return word


def untyped(word: Any) -> str:
    return "said"


del untyped.__annotations__["word"]


def twice(one: Word, other: Word) -> str:
    return one.word + other.word


def contexts(ctx: Context[None], other: Context[None]) -> str:
    return "said"


def keyword(*, input: Word) -> str:
    return "said"


def unimported(input: Unimported) -> str:
    return "said"


def broken(input: Word) -> str:
    return "said"


broken.__annotations__["input"] = "a b"


def elsewhere(input: Word) -> str:
    return "said"


elsewhere.__annotations__["input"] = "typing.NoSuchName"


class Object:
    def __call__(self, input: Word) -> str:
        return "said"


UNREADABLE: dict[str, tuple[Callable[..., Any], str]] = {
    "no return annotation": (no_return, "it has no return annotation"),
    "neither": (loose, "parameter `word` is neither a pydantic model nor a `Context`, or comes twice"),
    "untyped": (untyped, "parameter `word` is neither a pydantic model nor a `Context`, or comes twice"),
    "two inputs": (twice, "parameter `other` is neither a pydantic model nor a `Context`, or comes twice"),
    "two contexts": (
        contexts,
        "parameter `other` is neither a pydantic model nor a `Context`, or comes twice",
    ),
    "not imported": (unimported, "its annotations cannot be read: name 'Unimported' is not defined"),
    "an object": (
        Object(),
        "its annotations cannot be read: <Object> is not a module, class, method, or function.",
    ),
    "a lambda": (lambda: "said", "it has no return annotation"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_handler_whose_signature_says_too_little(name: str) -> None:
    handler, why = UNREADABLE[name]
    (told,) = faults(Registry(), tools={"say": tool("Say", handler, policy="word:say")})
    assert told == fault("X_DECLARATION_INVALID", f"`say`: {_without_address(told.cause, why)}")


def _without_address(cause: str, why: str) -> str:
    """The text of an object's `repr` holds its address; the rest of the sentence is compared."""
    return cause.removeprefix("`say`: ") if "<Object>" in why and "Object object at" in cause else why


@pytest.mark.parametrize("handler", [broken, elsewhere])
def test_annotations_that_do_not_evaluate_are_a_fault_and_no_crash(handler: Callable[..., Any]) -> None:
    (told,) = faults(Registry(), tools={"say": tool("Say", handler, policy="word:say")})
    assert (told.code, told.fix) == ("X_DECLARATION_INVALID", CODES["X_DECLARATION_INVALID"].fix)


def test_a_parameter_that_only_a_keyword_could_fill() -> None:
    """Handlers are called by position: such a one would fail on every call."""
    (told,) = faults(Registry(), tools={"say": tool("Say", keyword, policy="word:say")})
    assert told.code == "X_DECLARATION_INVALID"


def test_a_handler_may_be_async_a_method_or_take_anything_in_any_order() -> None:
    class Service:
        async def say(self, ctx: Context[int], input: Word) -> str:
            return input.word

    app = boot(Registry(), tools={"say": tool("Say", Service().say, policy="word:say")})
    handler = app.kernel.catalog.entries[0].handler
    assert (handler.takes, handler.is_async) == (("context", "input"), True)
    plain = boot(one()).kernel.catalog.entries[0]
    assert (plain.handler.takes, plain.handler.is_async, plain.arguments) == ((), False, ())


@pytest.mark.parametrize("annotation", [Opaque, HasOpaque])
def test_an_answer_without_a_schema(annotation: Any) -> None:
    def handler() -> Any:
        return None

    handler.__annotations__["return"] = annotation
    (told,) = faults(one(handler))
    assert told.code == "X_DECLARATION_INVALID"
    assert told.cause.startswith("`handler` has a type without a schema: ")
    assert "\n" not in told.cause


@pytest.mark.parametrize("model", [HasOpaque, LooksAhead])
def test_an_input_without_a_schema_or_with_a_pattern_no_linear_engine_takes(model: type[BaseModel]) -> None:
    def handler(input: Any) -> str:
        return "said"

    handler.__annotations__.update({"input": model, "return": str})
    (told,) = faults(one(handler))
    assert told.code == "X_DECLARATION_INVALID"
    assert told.cause.startswith("`handler` has a type without a schema: ")


def test_a_field_of_a_bare_generic_type_boots() -> None:
    """No policy can read it, and that is all."""

    def handler(input: Any) -> str:
        return "said"

    handler.__annotations__.update({"input": Bare, "return": str})
    assert boot(one(handler)).kernel.catalog.entries[0].arguments == ()


# resource loaders


def loads_nothing(input: Word) -> None:
    return None


def loads_word(input: Word) -> str:
    return input.word


def loads_one_of_two(input: Word) -> Post | Nameless:
    return Post(id="1", org="acme")


def loads_numbered(input: Word) -> Numbered:
    return Numbered(id=1)


def loads_nameless(input: Word) -> Nameless | None:
    return None


def loads_role(input: Word) -> Role:
    return Role(id="admin")


def loads_unsaid(input: Word):  # type: ignore[no-untyped-def]  # noqa: ANN201  (what is refused)
    return None


NO_MODEL = "needs a return annotation that names a pydantic model (`Post` or `Post | None`)"
LOADERS: dict[str, tuple[Callable[..., Any], str]] = {
    "none": (loads_nothing, NO_MODEL),
    "a string": (loads_word, NO_MODEL),
    "one of two": (loads_one_of_two, NO_MODEL),
    "unsaid": (loads_unsaid, "cannot be called: it has no return annotation"),
    "an integer id": (loads_numbered, "returns `Numbered`, which has no field `id: str`"),
    "no id": (loads_nameless, "returns `Nameless`, which has no field `id: str`"),
    "a reserved name": (loads_role, "returns `Role`, a name that policies reserve"),
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_that_does_not_say_what_it_loads(name: str) -> None:
    loader, why = LOADERS[name]
    assert faults(one(policy=can("word:say", resource=loader))) == [
        fault("X_DECLARATION_INVALID", f"`say`: the resource loader {why}")
    ]


def test_a_loader_whose_parameters_cannot_be_filled() -> None:
    """It would fail on every call: better at boot."""

    def loader(word: str) -> Post | None:
        return None

    (told,) = faults(one(policy=can("word:say", resource=loader)))
    assert told.code == "X_DECLARATION_INVALID"
    assert "`word`" in told.cause


def test_a_model_with_a_name_that_is_no_identifier() -> None:
    made = type("Pöst", (Post,), {})

    def loader(input: Word) -> Any:
        return None

    loader.__annotations__["return"] = made
    assert faults(one(policy=can("word:say", resource=loader))) == [
        fault(
            "X_DECLARATION_INVALID",
            "`say`: the resource loader returns `P\\xf6st`, a name that policies reserve",
        )
    ]


def test_two_models_of_one_name() -> None:
    registry = one(policy=can("word:say", resource=find_post))
    registry.action(policy=can("word:tell", resource=find_other))(tell)
    assert faults(registry) == [
        fault("X_DECLARATION_INVALID", "two models are named `Post` and policies read both")
    ]


def test_one_model_of_two_loaders() -> None:
    registry = one(policy=can("word:say", resource=find_post))
    registry.action(policy=can("word:tell", resource=find_post))(tell)
    kinds = [entry.resource for entry in boot(registry).kernel.catalog.entries]
    assert [kind.name for kind in kinds if kind is not None] == ["Post", "Post"]


# annotations, paths, resources, what is served


@pytest.mark.parametrize(
    ("annotations", "kind"),
    [
        ({"readOnlyHint": "true"}, "str"),
        ({"destructiveHint": 1}, "int"),
        ({"title": True}, "bool"),
        ({"more": None}, "NoneType"),
    ],
)
def test_an_annotation_of_another_type(annotations: dict[str, Any], kind: str) -> None:
    (name,) = annotations
    assert faults(one(annotations=annotations)) == [
        Fault(
            "X_DECLARATION_INVALID",
            f"`say` gives the annotation `{name}` a {kind}",
            "hints are true or false, `title` is a string",
        )
    ]


def test_annotations_of_the_right_types_are_served() -> None:
    given: dict[str, bool | str] = {"readOnlyHint": True, "openWorldHint": False, "title": "Say", "more": "x"}
    (entry,) = boot(one(annotations=given)).kernel.catalog.entries
    assert entry.annotations == given


PATHS = ["a b", "a//b", "a/../b", "./a", "..", "a?b", "a#b", "a%2fb", "é", "a\n", "a/{id}", "\ud800", "a\\b"]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_a_client_or_a_proxy_could_read_as_another(path: str) -> None:
    registry = Registry()
    registry.action(policy=can("word:say"), path=path)(say)
    assert faults(registry) == [
        Fault(
            "X_DECLARATION_INVALID",
            f"`say` has the path `{shown(path)}`",
            "give it segments of A-Z a-z 0-9 _ . ~ - with one slash between them, as in `posts/publish`",
        )
    ]


@pytest.mark.parametrize("path", ["words", "/words", "words/", "/words/say~1.0_x-y/"])
def test_a_path_has_no_slash_at_its_ends(path: str) -> None:
    registry = Registry()
    registry.action(policy=can("word:say"), path=path)(say)
    assert boot(registry).kernel.catalog.paths == {path.strip("/")}


def test_two_actions_of_one_path() -> None:
    registry = Registry()
    registry.action(policy=can("word:say"), path="words")(say)
    registry.action(policy=can("word:tell"), path="words")(tell)
    assert faults(registry) == [
        Fault("X_ROUTE_DUPLICATE", "`say` and `tell` claim `words`", "give one of the two another `path=`")
    ]


def test_two_resources_of_one_uri() -> None:
    given = [resource("app://x", "x", "An x", say), resource("app://y", "y", "A y", say)]
    again = resource("app://x", "z", "Another x", say)
    assert faults(one(), resources=[*given, again]) == [
        Fault("X_MCP_RESOURCE_DUPLICATE", "two resources claim `app://x`", "give one of the two another URI")
    ]
    named = resource("app://z", "x", "Another x", say)
    assert faults(one(), resources=[*given, named]) == [
        Fault("X_MCP_RESOURCE_DUPLICATE", "two resources are named `x`", "give one of the two another URI")
    ]
    places = [each.place for each in boot(one(), resources=given).kernel.catalog.entries]
    assert [place.uri for place in places if place is not None] == ["app://x", "app://y"]


GROUPS: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "a tool that is not served": (
        {"groups": {"g": group("G", ["say", "gone"])}, "surface": "meta"},
        [("X_MCP_GROUP_UNKNOWN", "the group `g` names `gone`, which is not served")],
    ),
    "a tool in two groups": (
        {"groups": {"g": group("G", ["say"]), "h": group("H", ["say"])}, "surface": "meta"},
        [("X_MCP_GROUP_CONFLICT", "`say` is listed twice in `groups`")],
    ),
    "a tool twice in one": (
        {"groups": {"g": group("G", ["say", "say"])}, "surface": "meta"},
        [("X_MCP_GROUP_CONFLICT", "`say` is listed twice in `groups`")] * 2,
    ),
    "a name that policies cannot carry": (
        {"groups": {"a b": group("G", ["say"])}, "surface": "meta"},
        [("X_NAME_INVALID", "`a b` is no group name")],
    ),
    "groups that nothing serves": (
        {"groups": {"g": group("G", ["say"])}},
        [("X_MCP_SURFACE_INVALID", "`groups` are given, and the flat surface serves none")],
    ),
    "a surface without groups": (
        {"surface": "meta"},
        [("X_MCP_SURFACE_INVALID", "the constant surface is asked for without `groups`")],
    ),
    "a tool of the surface's own name": (
        {
            "groups": {"g": group("G", ["say"])},
            "surface": ["editor"],
            "tools": {"list_resources": tool("L", say, policy="word:say")},
        },
        [("X_MCP_TOOL_DUPLICATE", "`list_resources` is a tool of the constant surface")],
    ),
    "a surface for one string of roles": (
        {"groups": {"g": group("G", ["say"])}, "surface": "editor"},
        [("X_DECLARATION_INVALID", "`surface` gives `visible_to` one string, not a list of roles")],
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_and_the_surface_that_serves_them(name: str) -> None:
    given, told = GROUPS[name]
    assert [(each.code, each.cause) for each in faults(one(), **given)] == told


def for_everyone(_who: object) -> bool:
    return True


SURFACES: tuple[Any, ...] = ("meta", ["editor"], audience("principal has org"), for_everyone)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_surface_that_is_served(surface: Any) -> None:
    catalog = boot(one(), groups={"g": group("G", ["say"])}, surface=surface).kernel.catalog
    assert catalog.groups == {"g": "G"}
    assert catalog.meta in catalog.audiences
    assert [entry.group for entry in catalog.entries] == ["g"]


def test_an_app_that_lets_nobody_in_cannot_be_mounted() -> None:
    app = boot(one())
    with pytest.raises(BootError) as caught:
        asgi(app)
    assert caught.value == BootError(
        [
            Fault(
                "X_MCP_APP_UNMOUNTED",
                "`trial` has no `resolve_token`",
                "give `define_app_mcp` a `resolve_token`",
            )
        ]
    )


def test_silence_exposes_nothing_and_still_answers_its_path() -> None:
    registry = one()
    registry.action(policy=can("word:tell"))(tell)
    catalog = boot(registry, include=None).kernel.catalog
    assert [(each.name, each.exposed, each.path) for each in catalog.entries] == [
        ("say", False, "say"),
        ("tell", False, "tell"),
    ]
    assert (catalog.tools, catalog.paths) == (frozenset(), frozenset({"say", "tell"}))
    assert catalog.permissions == {"word:say", "word:tell"}


def test_a_hand_written_tool_answers_no_path() -> None:
    catalog = boot(Registry(), tools={"say": tool("Say", say, policy="word:say")}).kernel.catalog
    assert (catalog.tools, catalog.paths) == (frozenset({"say"}), frozenset())
    assert catalog.declares("say", "mcp")
    assert catalog.declares("say", "agent")
    assert not catalog.declares("say", "http")
    assert not catalog.declares("", "http")


def test_an_entry_is_what_was_declared() -> None:
    registry = Registry()
    rule = can("post:read", resource=find_post)
    face = expose("Read", visible_to=["editor"], title="Read a post", annotations={"openWorldHint": True})

    def read_post(input: Word) -> Post | None:
        return None

    read_post.__annotations__.update({"input": Word, "return": Post | None})
    registry.query(policy=rule, mcp=face, path="posts/read", single=True)(read_post)
    (entry,) = boot(registry, scopes={"s": ["read_post"]}).kernel.catalog.entries
    assert entry.resource is not None
    assert _plain(entry) == {
        "name": "read_post",
        "kind": "query",
        "path": "posts/read",
        "exposed": True,
        "description": "Read",
        "title": "Read a post",
        "annotations": {"openWorldHint": True},
        "audience": "roles:editor",
        "scope": "s",
        "permission": "post:read",
        "idempotent": True,
        "destructive": False,
        "single": True,
    }
    assert (entry.resource.name, entry.resource.model, entry.resource.loader.function) == (
        "Post",
        Post,
        find_post,
    )
    assert [each.text for each in entry.arguments] == ['"word": String']
    assert [each.text for each in entry.resource.fields] == ['"id": String', '"org": String']


def _plain(entry: Entry) -> dict[str, object]:
    names = """name kind path exposed description title annotations audience scope permission idempotent
    destructive single"""
    return {name: getattr(entry, name) for name in names.split()}


# everything at once


def test_all_faults_of_a_run_are_told_at_once(tmp_path: Path) -> None:
    registry = Registry()
    registry.action(policy=can("nope"), mcp=expose("Say", visible_to="editor"))(say)
    quiet = registry.action(policy=can("word:tell", resource=loads_word), path="say")(tell)
    stranger = one().actions[0]
    told = faults(
        registry,
        actions=[quiet, stranger],
        tools={
            "say": tool("Say", say, policy="word:say"),
            "a b": tool("Say", say, policy="word:say"),
            "unsafe": tool("Say", untyped),
        },
        scopes={"s": ["say", "gone"], "t t": ["say"]},
        roles=["editor"],
        grants=[grant("admin", "word")],
        resources=[resource("app://x", "x", "An x", say)] * 2,
        policies_dir=folder(
            tmp_path,
            broken="permit(",
            deep=f'permit(principal, action in Action::"any", resource) when {{ {"(" * 40}true{")" * 40} }};',
            everywhere="permit(principal, action, resource);",
        ),
    )
    assert [(each.code, each.cause) for each in told[:-3]] == [
        ("X_MCP_TOOL_UNDECLARED", "`tell` is listed and never declared `mcp=expose(...)`"),
        ("X_ACTION_UNREGISTERED", "`say` is listed and belongs to no registry of this app"),
        ("X_MCP_TOOL_DUPLICATE", "two entries reach the tool name `say`"),
        ("X_MCP_TOOL_NAME_INVALID", "`a b` is no tool name"),
        ("X_MCP_SCOPE_UNKNOWN", "scope `s` names `gone`, which is not served"),
        ("X_NAME_INVALID", "`t t` is no scope name"),
        ("X_MCP_SCOPE_CONFLICT", "`say` is claimed by `s` and by `t t`"),
        ("X_MCP_SCOPE_UNCOVERED", "`unsafe` is under no scope"),
        ("X_NAME_INVALID", "`say` asks for `nope`, which is no permission name"),
        ("X_DECLARATION_INVALID", "`say` gives `visible_to` one string, not a list of roles"),
        ("X_MCP_TOOL_UNSAFE", "`unsafe` declares no policy"),
        (
            "X_DECLARATION_INVALID",
            "`unsafe`: parameter `word` is neither a pydantic model nor a `Context`, or comes twice",
        ),
        ("X_DECLARATION_INVALID", f"`tell`: the resource loader {NO_MODEL}"),
        ("X_MCP_RESOURCE_DUPLICATE", "two resources claim `app://x`"),
        ("X_MCP_RESOURCE_DUPLICATE", "two resources are named `x`"),
        ("X_ROLE_UNKNOWN", "a grant names the role `admin`, which `roles=` does not list"),
        ("X_NAME_INVALID", "a grant names `word`, which is no permission"),
    ]
    assert all(each.fix for each in told)
    assert [(each.code, each.where.rpartition(":")[0]) for each in told[-3:]] == [
        ("X_POLICY_SYNTAX", "broken.cedar:1"),
        ("X_POLICY_TOO_DEEP", "deep.cedar:1"),
        ("X_POLICY_HEAD_UNCONFINED", "everywhere.cedar:1"),
    ]


def test_a_fault_that_drops_no_entry_hides_no_fault_of_a_policy(tmp_path: Path) -> None:
    """Names are whole when only a scope is wrong, so a misspelt action is told in the same run."""
    wrong = 'permit(principal, action in Action::"word:sya", resource);'
    told = faults(two(), scopes={"s": ["say"]}, policies_dir=folder(tmp_path, wrong=wrong))
    assert [each.code for each in told] == ["X_MCP_SCOPE_UNCOVERED", "X_POLICY_ACTION_UNKNOWN"]


def test_names_of_dropped_entries_are_not_told_twice(tmp_path: Path) -> None:
    """A policy about an action that boot already refused is not called unknown as well."""
    about = 'permit(principal, action in Action::"word:say", resource);'
    told = faults(one(untyped), policies_dir=folder(tmp_path, about=about))
    assert [each.code for each in told] == ["X_DECLARATION_INVALID"]


def test_a_healthy_app_has_no_faults() -> None:
    catalog = boot(two(), grants=[grant("editor", "word:say")]).kernel.catalog
    assert (catalog.server, len(catalog.entries)) == ("trial", 2)


def test_the_path_of_an_app_has_one_slash_in_front_and_none_behind() -> None:
    paths = ["mcp", "/mcp", "/mcp/", "a/b/"]
    apps = [define_app_mcp(one(), name="trial", include="exposed", path=each) for each in paths]
    assert [app.path for app in apps] == ["/mcp", "/mcp", "/mcp", "/a/b"]
