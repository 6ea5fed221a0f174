"""`import`: what each name of a generated schema is here, and its policies: all are rewritten, or none."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from nonsuch.kernel.cedar_text import parse

from ..analysis.parcels import VECTORS, parcels
from .desk import Answer, Desk

SHIP = 'principal, action == Post::Action::"ship", resource'
GOOD = f"""
@id("light") permit ({SHIP}) when {{ context.input.weight < 10 }};
@id("clerks") forbid (principal, action in Post::Action::"call_tool", resource)
unless {{ principal in Post::Role::"clerk" }};
"""
BAD = f'@id("limit") forbid ({SHIP}) when {{ context.input has limit && context.input.limit > 9 }};'


@pytest.fixture
def post(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk with the app of the vectors, their schemas, and policies written for them."""
    (desk.at / "own").mkdir()
    module = ModuleType("post_app")
    module.__dict__["mcp"] = parcels(desk.at / "own")
    monkeypatch.setitem(sys.modules, "post_app", module)
    for each in VECTORS.glob("*.cedarschema*"):
        shutil.copy(each, desk.at)
    (desk.at / "good.cedar").write_text(GOOD)
    return desk


def asked(post: Desk, *arguments: str) -> Answer:
    return post.run("import", *arguments, "--app", "post_app")


def test_a_schema_alone_is_told_argument_by_argument(post: Desk) -> None:
    found = post.json("import", "default.cedarschema", "--app", "post_app")
    assert (found["types"], found["policies"], found["faults"]) == ({"Post::Role": "Role"}, [], [])
    tools = {each["tool"]: each for each in found["tools"]}
    assert {name: each["resource"] for name, each in tools.items()} == {
        "label": {"theirs": ["Post::McpServer"], "ours": "Server"},
        "parcel": {"theirs": ["Post::McpServer"], "ours": "Parcel"},
        "ship": {"theirs": ["Post::McpServer"], "ours": "Server"},
    }
    arguments = {each["name"]: each for each in tools["ship"]["arguments"]}
    assert arguments["weight"] == {
        "name": "weight",
        "theirs": "Long",
        "ours": "Long",
        "exact": True,
        "as": "same",
        "nullable": False,
        "cause": None,
    }
    assert (arguments["price"]["exact"], arguments["price"]["cause"]) == (
        False,
        "it is of a type here that no policy can read",
    )
    printed = asked(post, "default.cedarschema").out
    assert "ship" in printed
    assert "Post::Role is Role" in printed


def test_both_forms_of_the_schema_are_read(post: Desk) -> None:
    text, document = (
        post.json("import", name, "--app", "post_app")
        for name in ("default.cedarschema", "default.cedarschema.json")
    )
    assert text == document


def test_policies_are_rewritten_into_a_file_that_the_app_loads(post: Desk) -> None:
    arguments = ("import", "default.cedarschema", "good.cedar", "--types", "User=Human", "--app", "post_app")
    told = post.run(*arguments).out
    found = post.json(*arguments, "--out", "own/there.cedar")
    assert found["written"] == "own/there.cedar"
    assert [(each["id"], each["where"], each["effect"]) for each in found["policies"]] == [
        ("light", "good.cedar:2:1", "permit"),
        ("clerks", "good.cedar:3:1", "forbid"),
    ]
    written = (post.at / "own" / "there.cedar").read_text()
    assert written.startswith('// from good.cedar:2:1\n@id("light")\n')
    assert [each.id for each in parse(written, "f")] == ["light", "clerks"]
    assert post.json("check", "own", "--app", "post_app")["faults"] == []
    assert told.endswith("2 policies rewritten, 0 faults\n")
    assert "".join(each["text"] for each in found["policies"]).split() == [
        word
        for line in told[told.index("// from") :].splitlines()[:-2]
        for word in line.split()
        if "//" not in line
    ]


def test_nothing_is_written_when_one_is_refused(post: Desk) -> None:
    """A permit without its forbid would permit more."""
    (post.at / "there").mkdir()
    (post.at / "there" / "good.cedar").write_text(GOOD)
    (post.at / "there" / "bad.cedar").write_text(BAD)
    arguments = ("import", "default.cedarschema", "there", "--types", "User=Human", "--app", "post_app")
    found = post.json(*arguments, "--out", "own/there.cedar", status=1)
    assert [(each["id"], each["text"] is None) for each in found["policies"]] == [
        ("limit", True),
        ("light", False),
        ("clerks", False),
    ]
    [refused] = found["faults"]
    assert (refused["where"], refused["code"]) == ("there/bad.cedar:1:100", "X_POLICY_INVALID")
    assert (found["written"], list((post.at / "own").iterdir())) == (None, [])
    assert "there/bad.cedar:1:100: X_POLICY_INVALID: `limit`: " in post.run(*arguments).out


def test_what_the_app_has_already_is_refused(post: Desk) -> None:
    (post.at / "own" / "mine.cedar").write_text(
        '@id("light") permit (principal, action == Action::"ship", resource);'
    )
    found = post.json(
        *("import", "default.cedarschema", "good.cedar", "--types", "User=Human", "--app", "post_app"),
        status=1,
    )
    [refused] = found["faults"]
    assert (refused["where"], refused["code"]) == ("good.cedar:2:1", "X_POLICY_ID_DUPLICATE")


def test_an_import_takes_the_place_of_the_one_before(post: Desk) -> None:
    arguments = ("import", "default.cedarschema", "good.cedar", "--types", "User=Human", "--app", "post_app")
    first, again = (post.json(*arguments, "--out", "own/there.cedar") for _ in range(2))
    assert first == again
    assert post.json(*arguments, "--out", "own/other.cedar", status=1)["written"] is None


def test_what_the_app_would_find_wrong_elsewhere_is_told(post: Desk) -> None:
    """A link of the app has the id that a policy would take from it."""
    (post.at / "own" / "mine.cedar").write_text(
        '@id("t") permit (principal == ?principal, action == Action::"ship", resource);'
    )
    (post.at / "own" / "mine.links.json").write_text(
        '[{"template_id": "t", "link_id": "light", "args": {"?principal": "Human::\\"ann\\""}}]'
    )
    found = post.json(
        *("import", "default.cedarschema", "good.cedar", "--types", "User=Human", "--app", "post_app"),
        *("--out", "own/there.cedar"),
        status=1,
    )
    assert [(each["where"], each["code"]) for each in found["faults"]] == [
        ("mine.links.json:1:2", "X_POLICY_ID_DUPLICATE")
    ]
    assert not (post.at / "own" / "there.cedar").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("gone.cedarschema",), "X_POLICY_UNREADABLE: `gone.cedarschema`"),
        (("good.cedar",), "X_POLICY_SCHEMA_INVALID: `good.cedar` is no schema: "),
        (("broken.json",), "X_POLICY_SCHEMA_INVALID: `broken.json` is no schema: "),
        (("list.json",), "X_POLICY_SCHEMA_INVALID: `list.json` is no schema: "),
        (("binary.cedarschema",), "X_POLICY_SCHEMA_INVALID: `binary.cedarschema` is no schema: "),
        (("deep.cedarschema",), "X_POLICY_TOO_DEEP: `deep.cedarschema`: more than 32 levels"),
        (("stub.cedarschema",), "X_POLICY_SCHEMA_INVALID: no action of the schema has `context.input`"),
        (("default.cedarschema", "gone.cedar"), "X_POLICY_UNREADABLE: `gone.cedar`: FileNotFoundError"),
        (("default.cedarschema", "own"), "X_POLICY_UNREADABLE: `own` holds no `.cedar` file"),
        (("default.cedarschema", "--types", "User"), "X_CLI_USAGE: `User`: no type here is ``"),
        (("default.cedarschema", "--types", "Usr=Human"), "X_CLI_USAGE: `Usr=Human`: 0 types of the schema"),
        (
            ("default.cedarschema", "--types", "kind=Human"),
            "X_CLI_USAGE: `kind=Human`: 2 types of the schema",
        ),
        (
            ("default.cedarschema", "--types", "User=Robot"),
            "X_CLI_USAGE: `User=Robot`: no type here is `Robot`",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(post: Desk, arguments: tuple[str, ...], told: str) -> None:
    (post.at / "broken.json").write_text('{"": ')
    (post.at / "list.json").write_text("[]")
    (post.at / "binary.cedarschema").write_bytes(b"\xff")
    (post.at / "deep.cedarschema").write_text(f"type T = {'Set<' * 40}Long{'>' * 40};")
    found = asked(post, *arguments)
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith(told)


def test_the_place_of_the_app_is_named_in_the_whole(post: Desk) -> None:
    """A type with its namespace is the same as without one."""
    both = [
        post.json("import", "default.cedarschema", "--types", f"{name}=Human", "--app", "post_app")
        for name in ("User", "Post::User")
    ]
    assert both[0] == both[1]
    assert Path(post.at / "own").is_dir()
