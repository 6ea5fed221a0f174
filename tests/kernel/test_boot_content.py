"""Every reason why a resource or prompt cannot be served, and what one becomes that can.

The causes are written out: they are what a developer reads.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from nonsuch import Completing, Context, Icon, Message, Registry, can, grant, prompt, resource, tool
from nonsuch.kernel.boot_content import ContentFault, prompt_action
from nonsuch.kernel.catalog import GET_PROMPT, READ_RESOURCE, Completer, Entry
from nonsuch.kernel.declare import Prompt, Resource
from nonsuch.kernel.errors import Fault

from .trial import NOBODY, boot, faults


class Id(BaseModel):
    id: str


class Two(BaseModel):
    id: str
    path: str


class Numbered(BaseModel):
    id: int


class Tone(Enum):
    KIND = "kind"
    HARSH = "harsh"


class Grade(IntEnum):
    ONE = 1


class Spoken(BaseModel):
    tone: Tone
    size: Literal["s", "m"] = "s"
    note: str | None = None
    other: Tone | None = None


class Counted(BaseModel):
    count: int


class Graded(BaseModel):
    grade: Grade


class Many(BaseModel):
    names: list[str]


def read() -> str:
    return "read"


def read_id(input: Id) -> str:
    return input.id


def read_two(input: Two) -> str:
    return input.path


def read_number(input: Numbered) -> str:
    return str(input.id)


def untyped(word: Any) -> Any:
    return word


def say(input: Spoken) -> list[Message]:
    return [Message("user", input.tone.value)]


def count(input: Counted) -> str:
    return str(input.count)


def grade(input: Graded) -> str:
    return str(input.grade)


def many(input: Many) -> str:
    return str(input.names)


def complete(given: Completing) -> list[str]:
    return [given.value]


def complete_nothing() -> list[str]:
    return []


def complete_with(ctx: Context[None], given: Completing) -> list[str]:
    return [ctx.principal.id, given.value]


def complete_words() -> str:
    return "x"


def complete_other(input: Id) -> list[str]:
    return [input.id]


def complete_untyped(given: Any) -> Any:
    return given


def rs(uri: str = "a:b", read: Callable[..., Any] = read, **given: Any) -> Resource:
    return resource(uri, given.pop("name", "b"), given.pop("description", "The b"), read, **given)


def entry_of(declared: Resource | Prompt) -> Entry:
    content: dict[str, Any] = {"resources" if isinstance(declared, Resource) else "prompts": [declared]}
    (entry,) = boot(Registry(), **content).kernel.catalog.entries
    return entry


# what is refused

URI = "write it as in `app://exports/org`"
TEMPLATE = "write it as in `app://posts/{id}`"
FIELDS = "let `read` take a model with one field for each variable of the template"
STRINGS = "a prompt's arguments are strings: declare `str`, a `Literal` or an enumeration of strings"
COMPLETE = "let it take a `Completing`, a `Context`, both or neither, and return `list[str]`"
DECLARED = "complete the arguments that are declared"
CORRECT = "correct the declaration as the cause says"
ASCII_ONLY = "takes `{name}` and `{+name}` in an absolute URI, and nothing else"

REFUSED: dict[str, tuple[Resource | Prompt, str, str]] = {
    "no absolute URI": (rs("b"), "`b` is no absolute URI", URI),
    "a URI with a blank": (rs("a:b c"), "`a:b c` is no absolute URI", URI),
    "a URI beyond ASCII": (rs("a:\u00fc"), r"`a:\xfc` is no absolute URI", URI),
    "a template that is none": (rs("a:{b"), f"the template `a:{{b` {ASCII_ONLY}", TEMPLATE),
    "a template with a name twice": (
        rs("a:{b}/{b}", read_id),
        "the template `a:{b}/{b}` names a variable twice, or more than 8",
        TEMPLATE,
    ),
    "a variable that nothing takes": (
        rs("a:{id}"),
        "`a:{id}` has other variables than its `read` takes (none)",
        FIELDS,
    ),
    "a field that is no variable": (
        rs("a:{id}", read_two),
        "`a:{id}` has other variables than its `read` takes (`id`, `path`)",
        FIELDS,
    ),
    "fields and no template": (
        rs("a:b", read_id),
        "`a:b` has other variables than its `read` takes (`id`)",
        FIELDS,
    ),
    "another field": (
        rs("a:{ident}", read_id),
        "`a:{ident}` has other variables than its `read` takes (`id`)",
        FIELDS,
    ),
    "a completion of no variable": (
        rs("a:{id}", read_id, complete={"ident": ["x"]}),
        "`complete` of `a:{id}` names `ident`, which is no argument",
        DECLARED,
    ),
    "completions that are one string": (
        rs("a:{id}", read_id, complete={"id": "xyz"}),
        "`complete` of `a:{id}` gives `id` no list of strings",
        CORRECT,
    ),
    "completions that are numbers": (
        rs("a:{id}", read_id, complete={"id": [1]}),
        "`complete` of `a:{id}` gives `id` no list of strings",
        CORRECT,
    ),
    "a completion that returns no list": (
        rs("a:{id}", read_id, complete={"id": complete_words}),
        "`complete` of `a:{id}` gives `id` a function that completes nothing",
        COMPLETE,
    ),
    "a completion that takes another model": (
        rs("a:{id}", read_id, complete={"id": complete_other}),
        "`complete` of `a:{id}` gives `id` a function that completes nothing",
        COMPLETE,
    ),
    "a completion that says nothing of itself": (
        rs("a:{id}", read_id, complete={"id": complete_untyped}),
        "`complete` of `a:{id}` gives `id` a function that completes nothing",
        COMPLETE,
    ),
    "a prompt's number": (
        prompt(count, description="d"),
        "the argument `count` of the prompt `count` is no string",
        STRINGS,
    ),
    "a prompt's list": (
        prompt(many, description="d"),
        "the argument `names` of the prompt `many` is no string",
        STRINGS,
    ),
    "a prompt's completion of no argument": (
        prompt(say, description="d", complete={"nope": ["x"]}),
        "`complete` of `say` names `nope`, which is no argument",
        DECLARED,
    ),
    "a handler that says nothing of itself": (
        rs("a:b", untyped),
        "`resources/b`: parameter `word` is neither a pydantic model nor a `Context`, or comes twice",
        CORRECT,
    ),
    "one string of roles": (
        rs(visible_to="editor"),
        "`resources/b` gives `visible_to` one string, not a list of roles",
        "write `visible_to=[...]`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_resource_or_prompt_is_refused_with_its_cause_and_its_fix(name: str) -> None:
    declared, cause, fix = REFUSED[name]
    content: dict[str, Any] = {"resources" if isinstance(declared, Resource) else "prompts": [declared]}
    (told,) = faults(Registry(), **content)
    assert (told.code, told.cause) == ("X_DECLARATION_INVALID", cause)
    assert told.fix == fix or name == "one string of roles"


def test_a_prompt_of_numbers_is_refused_even_as_an_enumeration() -> None:
    """A schema does not tell an enumeration of numbers by its reference: its values do."""
    told = faults(Registry(), prompts=[prompt(grade, description="d")])
    assert [each.code for each in told] == ["X_DECLARATION_INVALID"]


@pytest.mark.parametrize("name", ["a b", "", "x" * 65, "\u00fc", "a\n"])
def test_a_name_that_cannot_be_sent_is_refused(name: str) -> None:
    shown = name.encode("ascii", "backslashreplace").decode()[:80]
    cause = f"`{shown}` is no name of a resource or prompt"
    fix = "use 1 to 64 of the characters A-Z a-z 0-9 _ . / -"
    told = [Fault("X_MCP_TOOL_NAME_INVALID", cause, fix)]
    assert faults(Registry(), resources=[rs(name=name)]) == told
    assert faults(Registry(), prompts=[prompt(read, description="d", name=name)]) == told


@pytest.mark.parametrize("scope", ["-", "", "a b", "\u00fc"])
def test_a_scope_that_no_token_carries_is_refused(scope: str) -> None:
    told = faults(Registry(), resources=[rs(scope=scope)])
    assert [each.code for each in told] == ["X_NAME_INVALID"]
    assert [
        each.code for each in faults(Registry(), prompts=[prompt(read, description="d", scope=scope)])
    ] == ["X_NAME_INVALID"]


def test_two_prompts_of_one_name() -> None:
    told = faults(
        Registry(), prompts=[prompt(read, description="d"), prompt(read_id, description="d", name="read")]
    )
    assert told == [Fault("X_MCP_TOOL_DUPLICATE", "two prompts are named `read`", "rename one of the two")]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("prompts/read", {"prompts": [prompt(read, description="d", name="read")]}),
        ("resources/read", {"resources": [rs(name="read")]}),
    ],
)
def test_a_tool_called_as_policies_call_a_prompt_or_a_resource_is_refused(name: str, more: Any) -> None:
    """One action would be declared twice: no tool beside it could be called."""
    told = faults(
        Registry(), tools={name: tool("Read", read, policy="a:b")}, grants=[grant("r", "any")], **more
    )
    kind = name.partition("s/")[0]
    assert (
        Fault(
            "X_MCP_TOOL_DUPLICATE", f"`{name}` is the name of a tool and of a {kind}", "rename one of the two"
        )
        in told
    )


def test_a_tool_may_not_ask_for_a_permission_of_ours() -> None:
    told = faults(Registry(), tools={"t": tool("T", read, policy=READ_RESOURCE)})
    assert [(each.code, each.cause) for each in told] == [
        ("X_NAME_INVALID", "`t` asks for `nonsuch:read-resource`, a permission of ours")
    ]


def test_a_file_that_nobody_read_is_no_prompt() -> None:
    with pytest.raises(ContentFault) as told:
        prompt_action(prompt(Path("x.md"), description="d"))
    assert (told.value.cause, told.value.fix) == ("the prompt `x` is a file that nobody read", None)


# two that answer for one URI


def test_a_uri_and_a_template_of_another_audience_do_not_overlap() -> None:
    """Who may not see the URI would be answered by the template."""
    secret = rs("a:posts/1", visible_to=["editor"])
    open_one = rs("a:posts/{id}", read_id, name="post")
    assert faults(Registry(), resources=[secret, open_one]) == [
        Fault(
            "X_DECLARATION_INVALID",
            "`a:posts/1` is also one of `a:posts/{id}`, which another audience sees",
            "let one audience see both, or take the URI out of the template",
        )
    ]
    boot(Registry(), resources=[rs("a:posts/1"), open_one])
    boot(Registry(), resources=[rs("a:drafts/1", visible_to=["editor"]), open_one])


def test_two_templates_of_different_audiences_do_not_overlap() -> None:
    """A caller who sees one of the two gets another answer from it than one who sees both."""
    one = rs("a:{+path}", read_path, name="any")
    other = rs("a:posts/{id}", read_id, name="post", visible_to=["editor"])
    kernel = boot(Registry(), resources=[one, other]).kernel
    found = kernel.view_for(NOBODY).resource("a:posts/1")
    assert found is not None
    assert found[0].shown == "any"


def read_path(input: Path_) -> str:
    return input.path


class Path_(BaseModel):
    path: str


# what one becomes


def test_a_resource_is_an_entry_that_asks_for_a_permission_of_ours() -> None:
    icon = Icon("https://x.example/i.png")
    declared = rs(
        "a:b",
        mime_type="text/plain",
        title="B",
        scope="s",
        icons=[icon],
        annotations={"priority": 1},
        visible_to=["r"],
    )
    entry = entry_of(declared)
    assert (entry.name, entry.shown, entry.kind, entry.path, entry.exposed) == (
        "resources/b",
        "b",
        "resource",
        "",
        False,
    )
    assert (entry.description, entry.title, entry.audience, entry.scope) == ("The b", "B", "roles:r", "s")
    assert (entry.permission, entry.idempotent, entry.destructive) == (READ_RESOURCE, True, False)
    assert entry.place is not None
    assert (entry.place.uri, entry.place.template, entry.place.mime_type) == ("a:b", None, "text/plain")
    assert (entry.place.annotations, entry.icons, entry.completers) == ({"priority": 1}, (icon,), {})


@pytest.mark.parametrize("policy", ["x:y", can("x:y")])
def test_a_resource_or_prompt_may_ask_for_a_permission_of_the_apps(policy: Any) -> None:
    assert entry_of(rs(policy=policy)).permission == "x:y"
    assert entry_of(prompt(read, description="d", policy=policy)).permission == "x:y"


def test_a_prompt_is_an_entry_that_asks_for_a_permission_of_ours() -> None:
    entry = entry_of(prompt(say, description="Say it", title="Say"))
    assert (entry.name, entry.shown, entry.kind, entry.path, entry.exposed) == (
        "prompts/say",
        "say",
        "prompt",
        "",
        False,
    )
    assert (entry.description, entry.title, entry.audience, entry.permission) == (
        "Say it",
        "Say",
        "everyone",
        GET_PROMPT,
    )
    assert entry.place is None


def test_a_template_is_held_with_its_variables() -> None:
    place = entry_of(rs("a:{id}/{+path}", read_two)).place
    assert place is not None
    assert place.template is not None
    assert place.template.names == ("id", "path")


def told(completers: Any) -> dict[str, object]:
    held: dict[str, Completer] = dict(completers)
    return {
        name: each.values if each.handler is None else each.handler.function for name, each in held.items()
    }


def test_what_completes_an_argument() -> None:
    """A list, a function, and by itself an argument that is one of several strings."""
    spoken = entry_of(prompt(say, description="d", complete={"note": ["a", "b"]}))
    assert told(spoken.completers) == {
        "tone": ("kind", "harsh"),
        "size": ("s", "m"),
        "note": ("a", "b"),
        "other": ("kind", "harsh"),
    }
    for function in (complete, complete_nothing, complete_with):
        assert told(entry_of(rs("a:{id}", read_id, complete={"id": function})).completers) == {"id": function}
    own = entry_of(prompt(say, description="d", complete={"size": complete}))
    assert told(own.completers)["size"] is complete


class Described(BaseModel):
    word: str = Field(title="Word", description="A word")


def described(input: Described) -> str:
    return input.word


def test_what_an_argument_says_of_itself_is_kept() -> None:
    document = entry_of(prompt(described, description="d")).input.document
    assert document["properties"] == {"word": {"type": "string", "description": "A word"}}
