"""The matrix of who can see and call what: it never promises what the kernel would decide otherwise."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from nonsuch import Agent, App, Human, Principal, Registry, audience, can, expose, grant
from nonsuch.adapters.analysis.attempts import attempt
from nonsuch.adapters.analysis.matrix import Matrix, changed, who
from nonsuch.adapters.cli.rules import rules_of
from nonsuch.kernel.model import Call
from nonsuch.kernel.strict_json import Json

from ...kernel.trial import boot, folder

ROLES: Final = ("admin", "editor", "viewer")
ORGS: Final = (None, "acme", "globex")


class Ask(BaseModel):
    postId: str
    size: int = 0


class Post(BaseModel):
    id: str
    org: str


def find(input: Ask) -> Post | None:
    return None


def publish(input: Ask) -> str:
    return "done"


def remove(input: Ask) -> str:
    return "done"


def report() -> str:
    return "done"


def ping() -> str:
    return "done"


def probe() -> str:
    return "done"


def vip(who: Principal) -> bool:
    return who.org == "acme"


POLICIES = """
@id("own") permit (principal, action in Action::"post:publish", resource is Post)
when {
  (principal in Role::"editor" || principal in Role::"admin") &&
  principal has org && principal.org == resource.org
};
@id("limit") forbid (principal, action in Action::"post:publish", resource)
when { context.args.size > 10 } unless { principal in Role::"admin" };
@id("one") permit (principal, action in Action::"post:remove", resource == Post::"p1");
@id("me") permit (principal == Human::"root", action in Action::"post:remove", resource);
@id("no") forbid (principal in Role::"viewer", action in Action::"org:report", resource);
@id("agents") permit (principal is Agent, action == Action::"ping", resource);
@id("both") permit (principal is Human in Role::"admin", action == Action::"ping", resource);
@id("hide") forbid (principal in Role::"viewer", action == Action::"see", resource == Audience::"everyone");
"""


def press(at: Path, policies: str = POLICIES, **given: Any) -> App:
    registry = Registry()
    registry.action(
        policy=can("post:publish", resource=find), mcp=expose("P", visible_to=["editor", "admin"])
    )(publish)
    registry.action(policy=can("post:remove", resource=find), mcp=expose("D"))(remove)
    registry.action(
        policy=can("org:report"),
        mcp=expose("R", visible_to=audience('principal has org && principal.org == "acme"')),
    )(report)
    registry.action(policy=can("net:ping"), mcp=expose("I", visible_to=vip))(ping)
    registry.action(policy=can("net:probe"), mcp=expose("B", visible_to=[]))(probe)
    return boot(
        registry,
        **{
            "policies_dir": folder(at, own=policies),
            "roles": ROLES,
            "grants": [grant("editor", "org:report"), grant("viewer", "org:report")],
            "scopes": {"write": ["publish", "remove"], "read": ["report", "ping", "probe"]},
            **given,
        },
    )


def matrix(app: App, at: Path, *, human: bool = False) -> Matrix:
    rules = rules_of(app, at)
    return who(rules.catalog, rules.base, rules.policies, human=human)


def words(found: Matrix, tool: str) -> dict[str, str]:
    return {role: found.cells[tool, role].word for role in found.roles}


def test_a_condition_on_roles_is_decided_and_the_rest_is_text(tmp_path: Path) -> None:
    found = matrix(press(tmp_path), tmp_path)
    assert words(found, "publish") == {
        "admin": "depends",
        "editor": "depends",
        "viewer": "hidden",
        "": "hidden",
    }
    own = "principal has org && principal.org == resource.org"
    told = {
        role: [(each.policy, str(each)) for each in found.cells["publish", role].calls.rules]
        for role in ("admin", "editor")
    }
    assert told == {
        "admin": [("own", own)],
        "editor": [("own", own), ("limit", "not if context.args.size > 10")],
    }


def test_a_head_that_names_one_entity_is_a_condition(tmp_path: Path) -> None:
    found = matrix(press(tmp_path), tmp_path, human=True)
    assert [(each.policy, str(each)) for each in found.cells["remove", "editor"].calls.rules] == [
        ("one", 'resource == Post::"p1"'),
        ("me", 'principal == Human::"root"'),
    ]


def test_a_grant_permits_always_and_a_bare_forbid_never(tmp_path: Path) -> None:
    found = matrix(press(tmp_path), tmp_path)
    report = {role: found.cells["report", role] for role in found.roles}
    assert {role: each.calls.answer for role, each in report.items()} == {
        "admin": "never",
        "editor": "always",
        "viewer": "never",
        "": "never",
    }
    assert [each.policy for each in report["viewer"].calls.rules] == ["no"]
    assert {each.sees.answer for each in report.values()} == {"depends"}


def test_an_agent_needs_what_its_human_needs(tmp_path: Path) -> None:
    app = press(tmp_path)
    agents, people = matrix(app, tmp_path), matrix(app, tmp_path, human=True)
    assert {role: agents.cells["ping", role].calls.answer for role in agents.roles} == {
        "admin": "always",
        "editor": "never",
        "viewer": "never",
        "": "never",
    }
    assert {role: people.cells["ping", role].calls.answer for role in people.roles} == {
        "admin": "always",
        "editor": "never",
        "viewer": "never",
        "": "never",
    }
    assert {each.word for key, each in agents.cells.items() if key[0] == "probe"} == {"hidden"}


def test_a_scope_is_needed_by_tokens_only(tmp_path: Path) -> None:
    app = press(tmp_path)
    assert {each.token for each in matrix(app, tmp_path).cells.values()} == {"needed"}
    head = 'principal in Role::"editor", action == Action::"present", resource == Scope::"write"'
    found = matrix(press(tmp_path, f'{POLICIES} @id("s") forbid ({head});'), tmp_path)
    assert found.cells["publish", "editor"].token == "never"
    assert found.cells["publish", "editor"].word == "never"


def test_a_cell_never_promises_what_the_kernel_decides_otherwise(tmp_path: Path) -> None:
    app = press(tmp_path)
    found = matrix(app, tmp_path)
    seen = dict[str, int]()
    for (tool, role), org, size, facts_org, ident in product(
        found.cells, ORGS, (0, 11), ("acme", "globex"), ("p1", "p2")
    ):
        cell = found.cells[tool, role]
        person = Human("somebody", roles=[role] if role else [], org=org)
        arguments: dict[str, Json] = (
            {} if tool in ("report", "ping", "probe") else {"postId": ident, "size": size}
        )
        facts = Post(id=ident, org=facts_org)
        got = attempt(
            app.kernel,
            person.delegate("agent", scopes=["write", "read"]),
            Call(tool, arguments, "mcp"),
            facts,
        ).outcome
        expected = {
            "hidden": {"hidden"},
            "always": {"ok"},
            "never": {"policy-denied"},
            "depends": {"ok", "policy-denied"},
        }
        hidden = {"hidden"} if cell.sees.answer == "depends" else set[str]()
        assert got in expected[cell.word] | hidden, (tool, role, org, size, facts_org, ident)
        seen[cell.word] = seen.get(cell.word, 0) + 1
    assert seen.keys() == {"hidden", "always", "never", "depends"}


def test_a_permit_that_may_err_takes_away_the_certainty(tmp_path: Path) -> None:
    """An error denies, whatever else permits."""
    text = '@id("sum") permit (principal, action in Action::"post:remove", resource) when'
    text += " { context.args.size + 1 > 0 };"
    app = press(tmp_path, text, grants=[grant("viewer", "post:remove")])
    cell = matrix(app, tmp_path).cells["remove", "viewer"]
    assert (cell.calls.answer, [each.policy for each in cell.calls.rules]) == (
        "depends",
        ["grant viewer post:remove", "sum"],
    )
    who = Human("somebody", roles=["viewer"]).delegate("agent", scopes=["write"])
    big: dict[str, Json] = {"postId": "p", "size": 2**63 - 1}
    assert (
        attempt(app.kernel, who, Call("remove", big, "mcp"), Post(id="p", org="a")).outcome == "policy-error"
    )


def test_only_what_a_cell_means_is_compared(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    app = press(old)
    folder(new, own=POLICIES.replace('@id("limit")', '@id("renamed")'))
    assert changed(matrix(app, old), matrix(app, new)) == []
    folder(new, own=POLICIES.replace("size > 10", "size > 11"))
    differing = changed(matrix(app, old), matrix(app, new))
    assert [(before.tool, before.role) for before, _ in differing] == [("publish", "editor")]


def test_the_matrix_of_some_tools_and_roles(tmp_path: Path) -> None:
    rules = rules_of(press(tmp_path), tmp_path)
    found = who(rules.catalog, rules.base, rules.policies, tools=["ping"], roles=["admin"])
    assert list(found.cells) == [("ping", "admin")]


@pytest.mark.parametrize("kind", [Human, Agent])
def test_no_role_is_asked_as_such(tmp_path: Path, kind: type[Principal]) -> None:
    found = matrix(press(tmp_path), tmp_path, human=kind is Human)
    assert found.roles == (*ROLES, "")
    assert found.cells["remove", "viewer"].word == "hidden"
