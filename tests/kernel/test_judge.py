"""The three questions, asked of small apps: no memo outlives a right, nobody exceeds a party, errors deny."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, create_model

from nonsuch import Agent, App, Human, Principal, Registry, audience, can, expose, grant, tool
from nonsuch.kernel import cedar
from nonsuch.kernel import judge as judging
from nonsuch.kernel.catalog import Entry
from nonsuch.kernel.cedar import Decision
from nonsuch.kernel.judge import MAX_CONTEXT_BYTES, PACK, Judge, resource_kind
from nonsuch.kernel.shapes import Unencodable

from .trial import EDITOR, NOBODY, boot, folder, unchecked


class Ask(BaseModel):
    postId: str
    note: str = ""
    size: int = 0


class Post(BaseModel):
    id: str
    org: str
    size: int = 0


def find(input: Ask) -> Post | None:
    return None


def publish(input: Ask) -> str:
    return "done"


def report() -> str:
    return "done"


def press(at: Path, policies: str = "", **given: Any) -> App:
    registry = Registry()
    registry.action(policy=can("post:publish", resource=find), mcp=expose("Publish"))(publish)
    registry.action(policy=can("org:administer"), mcp=expose("Report"))(report)
    return boot(registry, policies_dir=folder(at, own=policies), **given)


def seen_by(app: App, who: Principal) -> list[str]:
    return sorted(app.kernel.view_for(who).table.tools)


def shown(visible_to: Any, **given: Any) -> App:
    """An app of one tool that is shown to some."""
    return boot(Registry(), tools={"t": tool("T", report, policy="a:b", visible_to=visible_to)}, **given)


def sees(app: App, who: Principal) -> bool:
    return "t" in app.kernel.view_for(who).table.tools


# visibility


def test_nothing_said_is_everyone() -> None:
    assert [sees(shown(None), who) for who in (NOBODY, Human("h"), Human("h").delegate("a"))] == [True] * 3


def test_an_empty_list_is_nobody() -> None:
    assert [
        sees(shown([], roles=["editor"]), who) for who in (NOBODY, EDITOR, Human("h", roles={"editor"}))
    ] == [False] * 3


def test_a_list_of_roles_is_any_of_them() -> None:
    app = shown(["editor", "admin"])
    assert [
        sees(app, Agent("a", roles=roles)) for roles in ([], ["editor"], ["admin", "x"], ["x"], ["edit"])
    ] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_a_condition_is_asked_of_the_principal() -> None:
    app = shown(audience('principal has org && principal.org == "acme"'))
    who: list[Principal] = [
        Agent("a"),
        Agent("a", org="acme"),
        Human("h", org="acme"),
        Human("h", org="acme "),
    ]
    assert [sees(app, each) for each in who] == [False, True, True, False]


def test_a_condition_that_errs_hides() -> None:
    app = shown(audience("9223372036854775807 + 1 > 0 || true"))
    assert not sees(app, NOBODY)


PARTIES: list[tuple[Principal, bool]] = [
    (Human("h", roles={"r"}).delegate("a"), True),
    (Agent("a", roles={"r"}, acts_for=Human("h")), False),
    (Agent("a", acts_for=Human("h", roles={"r"})), False),
    (Agent("a", acts_for=Human("h")), False),
    (Agent("a", roles={"r"}), True),
    (Human("h", roles={"r"}), True),
]


@pytest.mark.parametrize(("who", "allowed"), PARTIES)
def test_an_agent_sees_what_it_and_its_human_see(who: Principal, allowed: bool) -> None:
    assert sees(shown(["r"]), who) is allowed


def test_a_role_that_no_declaration_names_matters_to_nobody() -> None:
    odd = Agent("a", roles={"r", "\ud800", 'x"]', "y" * 10_000}, scopes={"\ud800"})
    assert sees(shown(["r"]), odd)
    assert not sees(shown(["s"]), odd)


# predicates


ANSWERS: list[tuple[Any, bool]] = [
    (True, True),
    (False, False),
    (None, False),
    (1, False),
    ("true", False),
    ([True], False),
    (1.0, False),
    (object(), False),
]


@pytest.mark.parametrize(("answer", "admitted"), ANSWERS)
def test_only_the_literal_true_admits(answer: Any, admitted: bool) -> None:
    def ask(_principal: Principal) -> Any:
        return answer

    assert sees(shown(ask), NOBODY) is admitted


def test_a_predicate_that_raises_hides() -> None:
    def ask(_principal: Principal) -> bool:
        raise KeyError("s3ntinel")

    assert not sees(shown(ask), NOBODY)


@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_predicate_that_answers_later_hides() -> None:
    async def ask(_principal: Principal) -> bool:
        await asyncio.sleep(0)
        return True

    assert not sees(shown(ask), NOBODY)


def test_a_predicate_is_asked_again_on_each_view() -> None:
    """Its world can change: a memo may hold what Cedar said of a fact, never the fact."""
    answers = [True, False, True, True, False]
    asked: list[Principal] = []

    def ask(principal: Principal) -> bool:
        asked.append(principal)
        return answers[len(asked) - 1]

    app = shown(ask)
    assert [sees(app, NOBODY) for _ in range(5)] == answers
    assert asked == [NOBODY] * 5


def test_a_predicate_is_asked_of_each_party_and_both_must_hold() -> None:
    person = Human("h")
    agent = person.delegate("a")
    for admitted, allowed in ((set[str](), False), ({"a"}, False), ({"h"}, False), ({"a", "h"}, True)):
        asked: list[Principal] = []

        def ask(principal: Principal, admitted: set[str] = admitted, asked: list[Principal] = asked) -> bool:
            asked.append(principal)
            return principal.id in admitted

        assert sees(shown(ask), agent) is allowed
        assert asked == [agent, person]


def test_predicates_do_not_mix() -> None:
    def yes(_principal: Principal) -> bool:
        return True

    def no(_principal: Principal) -> bool:
        return False

    tools = {
        "yes": tool("T", report, policy="a:b", visible_to=yes),
        "no": tool("T", report, policy="a:b", visible_to=no),
        "roles": tool("T", report, policy="a:b", visible_to=["r"]),
    }
    app = boot(Registry(), tools=tools)
    assert seen_by(app, NOBODY) == ["yes"]
    assert seen_by(app, Agent("a", roles={"r"})) == ["roles", "yes"]
    caller = app.kernel.judge.caller(NOBODY)
    assert (caller.principal, caller.facts) == (NOBODY, (frozenset({"predicate:0"}),))


def test_a_caller_without_predicates_has_no_facts() -> None:
    agent = Human("h").delegate("a")
    caller = shown(None).kernel.judge.caller(agent)
    assert (caller.principal, caller.facts) == (agent, (frozenset(), frozenset()))


# scopes


SCOPES: list[tuple[Principal, bool]] = [
    (Agent("a", scopes={"posts:write"}), True),
    (Agent("a", scopes={"posts:write", "x"}), True),
    (Agent("a"), False),
    (Agent("a", scopes={"posts"}), False),
    (Agent("a", scopes={"posts:*"}), False),
    (Agent("a", scopes={"Posts:write"}), False),
    (Agent("a", scopes={"posts:write "}), False),
    (Agent("a", scopes={"posts:read"}), False),
    (Human("h"), True),
    (Human("h", scopes={"posts:write"}), True),
    (Human("h", scopes={"posts:read"}), False),
    (Human("h", scopes=()), False),
    (Agent("a", scopes={"posts:write"}, acts_for=Human("h")), True),
    (Agent("a", scopes={"posts:write"}, acts_for=Human("h", scopes={"posts:write"})), True),
    (Agent("a", scopes={"posts:write"}, acts_for=Human("h", scopes=())), False),
    (Agent("a", acts_for=Human("h")), False),
    (Agent("a", acts_for=Human("h", scopes={"posts:write"})), False),
]


@pytest.mark.parametrize(("who", "allowed"), SCOPES)
def test_a_scope_is_presented_exactly_and_by_every_party(
    who: Principal, allowed: bool, tmp_path: Path
) -> None:
    app = press(tmp_path, scopes={"posts:write": ["publish"], "posts:read": ["report"]})
    judge = app.kernel.judge
    assert judge.presents(judge.caller(who), "posts:write").allow is allowed


def test_what_says_yes_to_a_scope(tmp_path: Path) -> None:
    judge = press(tmp_path, scopes={"s": ["publish", "report"]}).kernel.judge
    person = Human("h")
    told = [
        judge.presents(judge.caller(who), "s")
        for who in (person, Agent("a", scopes={"s"}), person.delegate("a"))
    ]
    assert told == [
        Decision(True, ("nonsuch.scope.session",)),
        Decision(True, ("nonsuch.scope.token",)),
        Decision(False),
    ]


def test_a_scope_that_no_declaration_names_is_an_error_and_denies(tmp_path: Path) -> None:
    judge = press(tmp_path, scopes={"s": ["publish", "report"]}).kernel.judge
    assert judge.presents(judge.caller(Human("h")), "gone") == Decision(False, (), ("<request>",))


# the policy gate


def entry_of(app: App, name: str) -> Entry:
    return next(each for each in app.kernel.catalog.entries if each.name == name)


def permitted(
    app: App, who: Principal, post: Post | None, name: str = "publish", ident: str | None = None, **sent: Any
) -> Decision:
    judge, entry = app.kernel.judge, entry_of(app, name)
    given = entry.input.model.model_validate({"postId": "1", **sent} if name == "publish" else {})
    context = judge.context(entry, given)
    named = ident if ident is not None else post.id if post is not None else judge.server
    return judge.permits(judge.caller(who), entry, post, named, context)


OWN_ORG = """
@id("own") permit(principal, action in Action::"post:publish", resource)
when { principal has org && principal.org == resource.org };
"""
MINE = Post(id="1", org="acme")
MEMBER = Agent("a", org="acme")


def test_nothing_granted_is_a_denial(tmp_path: Path) -> None:
    app = press(tmp_path)
    assert permitted(app, EDITOR, MINE) == Decision(False)
    assert permitted(app, EDITOR, None, "report") == Decision(False)


def test_a_grant_permits_its_permission_to_its_role(tmp_path: Path) -> None:
    app = press(tmp_path, grants=[grant("editor", "post:publish")])
    yes = Decision(True, ("grant editor post:publish",))
    assert permitted(app, EDITOR, MINE) == yes
    assert permitted(app, Human("h", roles={"editor"}), MINE) == yes
    assert permitted(app, NOBODY, MINE) == Decision(False)
    assert permitted(app, EDITOR, None, "report") == Decision(False)


def test_a_grant_of_any_is_a_grant_of_each(tmp_path: Path) -> None:
    app = press(tmp_path, grants=[grant("editor", "any")])
    yes = Decision(True, ("grant editor any",))
    assert [permitted(app, EDITOR, MINE), permitted(app, EDITOR, None, "report")] == [yes, yes]


def test_a_policy_reads_the_facts_of_the_caller_and_of_the_resource(tmp_path: Path) -> None:
    app = press(tmp_path, OWN_ORG)
    assert permitted(app, MEMBER, MINE) == Decision(True, ("own",))
    assert permitted(app, MEMBER, Post(id="1", org="other")) == Decision(False)
    assert permitted(app, NOBODY, MINE) == Decision(False)


def test_each_call_is_judged_by_its_own_facts(tmp_path: Path) -> None:
    """The same id with other facts is another question."""
    app = press(tmp_path, OWN_ORG)
    posts = [Post(id="1", org=org) for org in ("acme", "other", "acme", "other")]
    assert [permitted(app, MEMBER, post).allow for post in posts] == [True, False, True, False]


def test_a_resource_may_have_the_id_of_its_caller(tmp_path: Path) -> None:
    app = press(tmp_path, OWN_ORG)
    who = Agent("same", org="acme", acts_for=Human("same", org="acme"))
    assert permitted(app, who, Post(id="same", org="acme")) == Decision(True, ("own",))
    assert permitted(app, who, Post(id="same", org="other")) == Decision(False)


def test_a_resource_without_facts_denies_where_they_are_read(tmp_path: Path) -> None:
    told = permitted(press(tmp_path, OWN_ORG), MEMBER, None, ident="1")
    assert told == Decision(False, (), ("<missing>",))


@pytest.mark.parametrize(
    "post",
    [
        unchecked(Post, id="1", org=5),
        unchecked(Post, id="1", org=None),
        unchecked(Post, id="1", org="acme", size=2**63),
        unchecked(Post, id="1", org="\ud800"),
        unchecked(Post, id="1"),
    ],
)
def test_facts_that_do_not_fit_deny_even_under_a_grant(post: Post, tmp_path: Path) -> None:
    app = press(tmp_path, grants=[grant("editor", "any")])
    assert permitted(app, EDITOR, post) == Decision(False, (), ("<resource>",))


def test_an_agent_may_what_it_and_its_human_may(tmp_path: Path) -> None:
    app = press(tmp_path, grants=[grant("r", "post:publish")])
    assert [permitted(app, who, MINE).allow for who, _ in PARTIES] == [allowed for _, allowed in PARTIES]


def test_a_forbid_on_the_human_binds_the_agent(tmp_path: Path) -> None:
    policies = '@id("yes") permit(principal, action in Action::"any", resource);'
    policies += '@id("no") forbid(principal == Human::"h", action in Action::"any", resource);'
    app = press(tmp_path, policies)
    assert permitted(app, Human("h").delegate("a"), MINE) == Decision(False, ("no",))
    assert permitted(app, Human("i").delegate("a"), MINE) == Decision(True, ("yes",))
    assert permitted(app, Agent("h"), MINE) == Decision(True, ("yes",))


def test_a_policy_can_name_one_agent_one_human_one_resource(tmp_path: Path) -> None:
    policies = '@id("a") permit(principal == Agent::"a", action in Action::"any", resource);'
    policies += (
        '@id("r") permit(principal in Role::"editor", action in Action::"any", resource == Post::"2");'
    )
    policies += '@id("s") permit(principal, action == Action::"report", resource == Server::"trial");'
    app = press(tmp_path, policies, roles=["editor"])
    assert permitted(app, Agent("a"), MINE) == Decision(True, ("a",))
    assert permitted(app, Human("a"), MINE) == Decision(False)
    assert permitted(app, EDITOR, MINE) == Decision(False)
    assert permitted(app, EDITOR, Post(id="2", org="acme")) == Decision(True, ("r",))
    assert permitted(app, Agent("a"), Post(id="2", org="acme")) == Decision(True, ("a",))
    assert permitted(app, NOBODY, None, "report") == Decision(True, ("s",))


def test_a_policy_knows_the_person_behind_the_call(tmp_path: Path) -> None:
    policies = """
@id("user") permit(principal, action in Action::"post:publish", resource)
when { principal has user && principal.user == "h" };
@id("acts") forbid(principal is Agent, action in Action::"post:publish", resource)
unless { principal has actsFor && principal.actsFor == Human::"h" };
"""
    app = press(tmp_path, policies)
    assert permitted(app, Human("h"), MINE) == Decision(True, ("user",))
    assert permitted(app, Human("h").delegate("a"), MINE) == Decision(True, ("user",))
    assert permitted(app, Human("i").delegate("h"), MINE) == Decision(False, ("acts",))
    assert permitted(app, Agent("h"), MINE) == Decision(False, ("acts",))


# arguments


def test_only_the_arguments_that_a_policy_reads_are_sent(tmp_path: Path) -> None:
    policy = (
        '@id("p") forbid(principal, action == Action::"publish", resource) when { context.args.size > 1 };'
    )
    app = press(tmp_path, policy)
    entry = entry_of(app, "publish")
    assert app.kernel.judge.context(entry, Ask(postId="1", note="s3ntinel", size=2)) == '{"args":{"size":2}}'


def count(input: Ask) -> int:
    return input.size


def test_arguments_are_judged_anew_where_nothing_is_acted_on() -> None:
    """Of such an action only the arguments can change the answer: no memo may hold it."""
    registry = Registry()
    registry.action(policy=can("org:administer"), mcp=expose("Count"))(count)
    with TemporaryDirectory() as at:
        text = (
            '@id("p") forbid(principal, action == Action::"count", resource) when { context.args.size > 1 };'
        )
        app = boot(registry, grants=[grant("editor", "any")], policies_dir=folder(Path(at), own=text))
    (entry,), judge = app.kernel.catalog.entries, app.kernel.judge
    contexts = [judge.context(entry, Ask(postId="1", size=size)) for size in (1, 2, 1, 2)]
    told = [judge.permits(judge.caller(EDITOR), entry, None, judge.server, each) for each in contexts]
    yes, no = Decision(True, ("grant editor any",)), Decision(False, ("p",))
    assert told == [yes, no, yes, no]


def tools_that_read(number: int) -> tuple[Registry, str]:
    """So many tools of models of their own, and for each a policy that reads the argument only it has."""
    registry, policies = Registry(), list[str]()
    for at in range(number):
        fields: dict[str, Any] = {f"size{at}": (int, ...)}
        model: Any = create_model(f"Asks{at}", **fields)

        def handler(input: Any) -> str:
            return "done"

        handler.__annotations__["input"], handler.__name__ = model, f"tool_{at}"
        registry.action(policy=can("org:administer"), mcp=expose("Count"))(handler)
        head = f'@id("p{at}") permit(principal, action == Action::"tool_{at}", resource)'
        policies.append(f"{head} when {{ context.args.size{at} <= 1 }};")
    return registry, "\n".join(policies)


def test_tools_whose_policies_read_different_arguments_share_schemas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schema holds half a megabyte: one for each tool, of all tools, would be a gigabyte at 2,000."""
    registry, policies = tools_that_read(2 * PACK)
    app = boot(registry, policies_dir=folder(tmp_path, own=policies))
    judge, made = app.kernel.judge, list[str]()
    parse = cedar.schema

    def counted(text: str) -> cedar.Schema:
        made.append(text)
        return parse(text)

    monkeypatch.setattr(cedar, "schema", counted)
    for at, entry in enumerate(app.kernel.catalog.entries):
        for size, allow in ((1, True), (2, False)):
            context = judge.context(entry, entry.input.model(**{f"size{at}": size}))
            assert context == f'{{"args":{{"size{at}":{size}}}}}'
            assert judge.permits(judge.caller(EDITOR), entry, None, judge.server, context).allow is allow
    assert len(made) == 2


def test_only_the_memo_of_handles_holds_handles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its bound bounds nothing: whoever comes with callers of ever new roles takes all memory."""
    monkeypatch.setattr(judging, "HANDLES", 4)
    alive: weakref.WeakSet[cedar.Entities] = weakref.WeakSet()
    made = cedar.entities

    def noted(document: str, of: cedar.Schema) -> cedar.Entities:
        held = made(document, of)
        alive.add(held)
        return held

    monkeypatch.setattr(cedar, "entities", noted)
    app = press(tmp_path, grants=[grant("editor", "any")])
    for number in range(40):
        assert permitted(app, Agent(f"a{number}", roles={"editor"}), MINE).allow
    gc.collect()
    assert 0 < len(alive) <= 4


def test_a_judge_that_others_follow_remembers_nothing(tmp_path: Path) -> None:
    app = press(tmp_path, grants=[grant("editor", "any")])
    old = app.kernel.judge
    assert permitted(app, EDITOR, MINE).allow
    caller, entry = old.caller(EDITOR), entry_of(app, "publish")
    assert old.visible.cache_info().currsize == 0
    old.visible(caller)
    app.kernel.swap(press(tmp_path).kernel.judge)
    assert old.visible.cache_info().currsize == 0
    assert old.permits(caller, entry, MINE, "1", '{"args":{}}').allow  # who asks it still is answered


def test_all_arguments_are_sent_where_one_policy_uses_the_whole(tmp_path: Path) -> None:
    head = 'forbid(principal, action == Action::"publish", resource)'
    policy = f'@id("p") {head} when {{ context.args == {{postId: "1", note: "", size: 0}} }};'
    app = press(tmp_path, policy, grants=[grant("editor", "any")])
    assert app.kernel.judge.context(entry_of(app, "publish"), Ask(postId="1")) == json.dumps(
        {"args": {"postId": "1", "note": "", "size": 0}},
        separators=(",", ":"),
    )
    assert permitted(app, EDITOR, MINE) == Decision(False, ("p",))
    assert permitted(app, EDITOR, MINE, size=1) == Decision(True, ("grant editor any",))


def test_no_argument_is_sent_where_none_is_read(tmp_path: Path) -> None:
    app = press(tmp_path, grants=[grant("editor", "any")])
    assert app.kernel.judge.context(entry_of(app, "publish"), Ask(postId="1", size=2**70)) == '{"args":{}}'


READS_NOTE = (
    '@id("p") forbid(principal, action == Action::"publish", resource) when { context.args.note == "x" };'
)


def test_a_context_beyond_64_kib_is_no_argument(tmp_path: Path) -> None:
    app = press(tmp_path, READS_NOTE)
    judge, entry = app.kernel.judge, entry_of(app, "publish")
    frame = len('{"args":{"note":""}}')
    fits = "x" * (MAX_CONTEXT_BYTES - frame)
    assert MAX_CONTEXT_BYTES == 65_536
    assert len(judge.context(entry, Ask(postId="1", note=fits))) == 65_536
    with pytest.raises(Unencodable) as caught:
        judge.context(entry, Ask(postId="1", note=fits + "x"))
    assert (caught.value.path, caught.value.problem) == (
        "",
        "what policies read of it exceeds 65536 bytes",
    )


def test_a_large_argument_that_no_policy_reads_is_not_counted(tmp_path: Path) -> None:
    app = press(tmp_path, grants=[grant("editor", "any")])
    assert permitted(app, EDITOR, MINE, note="x" * 1_000_000).allow


def test_an_argument_that_cedar_cannot_hold_is_refused_where_it_is_read(tmp_path: Path) -> None:
    policy = READS_NOTE.replace('context.args.note == "x"', "context.args.size > 1")
    app = press(tmp_path, policy)
    with pytest.raises(Unencodable) as caught:
        app.kernel.judge.context(entry_of(app, "publish"), Ask(postId="1", size=2**63))
    told = "must be an integer of 64 bits, because a policy reads it"
    assert (caught.value.path, caught.value.problem) == ("size", told)


# memos


ROLES = st.frozensets(st.sampled_from(["r", "s"]))
SCOPE_SETS = st.frozensets(st.sampled_from(["posts:write", "x"]))
ORGS = st.none() | st.sampled_from(["acme", "other"])
HUMANS = st.builds(Human, st.sampled_from("ab"), roles=ROLES, org=ORGS, scopes=st.none() | SCOPE_SETS)
AGENTS = st.builds(
    Agent, st.sampled_from("ab"), roles=ROLES, org=ORGS, scopes=SCOPE_SETS, acts_for=st.none() | HUMANS
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> App:
    """One app whose memos live through all examples."""
    registry = Registry()
    registry.action(policy=can("post:publish", resource=find), mcp=expose("Publish", visible_to=["r"]))(
        publish
    )
    return boot(
        registry,
        scopes={"posts:write": ["publish"]},
        grants=[grant("s", "post:publish")],
        policies_dir=folder(
            tmp_path_factory.mktemp("policies"),
            own='@id("org") forbid(principal, action in Action::"any", resource)'
            ' when { context.args.note == "x" } unless { principal has org && principal.org == "acme" };',
        ),
    )


@given(who=HUMANS | AGENTS, note=st.sampled_from(["", "x"]))
def test_no_memo_answers_for_another_principal(shared: App, who: Principal, note: str) -> None:
    """Roles, scopes, organisation or human of one id change between examples; the rule is naive."""
    every: list[Principal] = [who]
    if isinstance(who, Agent) and who.acts_for is not None:
        every.append(who.acts_for)
    judge = shared.kernel.judge
    caller = judge.caller(who)
    assert (seen_by(shared, who) == ["publish"]) is all("r" in party.roles for party in every)
    presents = all(party.scopes is None or "posts:write" in party.scopes for party in every)
    assert judge.presents(caller, "posts:write").allow is presents
    may = all("s" in party.roles and (note != "x" or party.org == "acme") for party in every)
    assert permitted(shared, who, MINE, note=note).allow is may


def test_a_revoked_role_is_another_principal(tmp_path: Path) -> None:
    app = press(tmp_path, grants=[grant("editor", "post:publish")])
    before, after = Agent("a", roles={"editor"}), Agent("a")
    assert [permitted(app, who, MINE).allow for who in (before, after, before, after)] == [
        True,
        False,
        True,
        False,
    ]


def test_the_kind_of_a_resource_is_its_model_or_the_server(tmp_path: Path) -> None:
    app = press(tmp_path)
    assert [resource_kind(entry_of(app, name)) for name in ("publish", "report")] == ["Post", "Server"]


def test_the_annotations_of_policies_are_kept_by_id(tmp_path: Path) -> None:
    judge: Judge = press(
        tmp_path, '@id("p") @reason("why") permit(principal, action in Action::"any", resource);'
    ).kernel.judge
    assert judge.annotations == {"p": {"id": "p", "reason": "why"}}
