"""`diff`: what two sets of policies decide differently, with the smallest request that shows it."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from nonsuch.adapters.cli.locate import one
from nonsuch.adapters.cli.policy.requests import Maker, pool
from nonsuch.adapters.cli.rules import rules_of
from nonsuch.kernel import cedar_text

from .desk import POLICIES, POSTLY, Desk


@pytest.fixture
def new(desk: Desk) -> Path:
    shutil.copytree(POLICIES, desk.at / "old")
    return Path(shutil.copytree(POLICIES, desk.at / "new"))


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_equal_policies_differ_in_nothing(desk: Desk, new: Path) -> None:
    edit(new / "orders.cedar", "// Who may", "// Another comment: who may")
    found = desk.json("diff", "old", "new")
    assert (found["matrix"], found["decisions"]) == ([], [])
    assert found["policies"] == {"added": [], "removed": [], "rewritten": []}
    assert found["requests"]["made"] > 1000


def test_a_moved_limit_is_found_at_its_boundary(desk: Desk, new: Path) -> None:
    edit(new / "orders.cedar", "> 10000", "> 10005")
    found = desk.json("diff", "old", "new", status=1)
    assert found["policies"]["rewritten"] == ["order.refund-limit"]
    assert [(each["before"]["tool"], each["before"]["role"]) for each in found["matrix"]] == [
        ("refundOrder", "editor"),
        ("refundOrder", "staff"),
    ]
    [change] = found["decisions"]
    assert (change["before"], change["after"]) == (
        {"outcome": "policy-denied", "code": "X_FORBIDDEN"},
        {"outcome": "ok", "code": None},
    )
    smallest = change["smallest"]
    assert smallest["input"]["amountMinor"] == 10001
    assert smallest["input"].keys() == {"orderId", "amountMinor"}
    assert smallest["facts"]["refundableMinor"] == 10001
    assert smallest["facts"]["org"] == smallest["org"]
    assert len(smallest["roles"]) == 1


def test_a_dropped_forbid_and_an_added_grant_are_found(desk: Desk, new: Path) -> None:
    edit(
        new / "payouts.cedar", 'unless { resource.status == "open" }', 'unless { resource.status != "gone" }'
    )
    (new / "more.cedar").write_text(
        '@id("more") permit (principal in Role::"staff", action in Action::"org:administer", resource);'
    )
    found = desk.json("diff", "old", "new", status=1)
    assert found["policies"] == {"added": ["more"], "removed": [], "rewritten": ["payout.open"]}
    assert {
        (each["tool"], each["before"]["outcome"], each["after"]["outcome"]) for each in found["decisions"]
    } == {
        ("previewPayoutBatch", "policy-denied", "ok"),
        ("seatReport", "policy-denied", "ok"),  # an admin and staff of no organisation
    }


def test_the_text_says_how_many_requests_and_how_to_ask_again(desk: Desk, new: Path) -> None:
    edit(new / "posts.cedar", "when { resource.published }", "when { !resource.published }")
    told = desk.run("diff", "old", "new", "--seed", "7").out
    assert "rewritten post.published-once\n" in told
    assert "made-up requests fit the declared types (seed 7)" in told
    smallest = next(line for line in told.splitlines() if "smallest: " in line)
    assert '--tool publishPost --input \'{"postId": "a"}\' --facts \'{"id": "a"' in smallest


def test_the_same_seed_makes_the_same_requests(desk: Desk, new: Path) -> None:
    edit(new / "orders.cedar", "> 10000", "> 10005")
    first, again = (desk.json("diff", "old", "new", "--seed", "3", status=1) for _ in range(2))
    assert first == again


def test_faults_of_either_directory_are_told(desk: Desk, new: Path) -> None:
    (new / "bad.cedar").write_text("permit (")
    found = desk.json("diff", "old", "new", status=1)
    assert [each["where"] for each in found["faults"]] == ["new/bad.cedar:1:8"]


def test_literals_come_with_their_neighbours() -> None:
    text = (
        '@id("x") permit (principal == Human::"root", action in Action::"any", resource)'
        ' when { context.args.n > 10 && principal.org == "acme" && principal in Role::"admin" };'
    )
    found = pool(cedar_text.parse(text, "f"))
    assert found.strings == ("a", "b", "acme", "person", "root")
    assert {9, 10, 11} <= set(found.integers)


def test_every_made_up_request_fits_the_declared_types(desk: Desk) -> None:
    app = one(POSTLY)
    literals = pool(rules_of(app).policies.policy)
    for entry in app.kernel.catalog.entries:
        maker = Maker(app.kernel.catalog, entry, literals, Random(0))  # noqa: S311  (no secret)
        made = list(maker.requests(100))
        assert len(made) >= 40, entry.name
        for each in made:
            assert each.facts is None or (entry.resource and isinstance(each.facts, entry.resource.model))
            assert each not in list(maker.smaller(each))
