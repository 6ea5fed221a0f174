"""What branches are called, what proves them, and the key of that: no server."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsuch.adapters.edge.postgres.branch_key import branch_key
from nonsuch.adapters.edge.postgres.branch_marker import Marker, Place, claims, found, sealed
from nonsuch.adapters.edge.postgres.branch_names import database_of, preview_of
from nonsuch.adapters.edge.postgres.refused import DatabaseRefused

KEY = b"a key of thirty-two bytes, or so."
PLACE = Place("7000000000000000001", 16_400, "shop_branch_x")
MARKER = Marker("x", "shop", 16_384, "2026-01-01T00:00:00+00:00", "ab" * 16)
LINE = sealed(MARKER, PLACE, KEY)
ALIKE = st.text("a_-. é", min_size=1, max_size=4)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


def database(name: str) -> str | None:
    """The database of a branch; nothing, where the name is refused."""
    try:
        return database_of("shop", name)
    except DatabaseRefused:
        return None


# Names.


def test_a_plain_name_is_seen_in_its_database() -> None:
    assert database("billing_2") == "shop_branch_billing_2"
    assert database("Billing") == "shop_branch_Billing"


def test_what_an_identifier_does_not_hold_becomes_an_underscore_and_a_digest() -> None:
    assert database("feat-new-billing") == "shop_branch_feat_new_billing_cdc4799e"
    assert database("feat_new-billing") == "shop_branch_feat_new_billing_0614978c"
    assert database("feat_new_billing") == "shop_branch_feat_new_billing"


def test_a_name_that_looks_like_ours_is_told_apart_from_ours() -> None:
    assert database("feat_new_billing_cdc4799e") != database("feat-new-billing")


def told_apart(one: str, other: str) -> bool:
    return one == other or database(one) is None or database(one) != database(other)


@given(NAMES, NAMES)
def test_two_names_have_two_databases(one: str, other: str) -> None:
    assert told_apart(one, other)


@given(ALIKE, ALIKE)
def test_two_names_that_are_alike_have_two_databases(one: str, other: str) -> None:
    assert told_apart(one, other)


@given(NAMES)
def test_the_name_of_a_database_is_whole_and_plain(name: str) -> None:
    made = database(name)
    if made is not None:
        assert len(made.encode()) <= 63
        assert made.removeprefix("shop_branch_").replace("_", "a").isalnum()
        assert made.isascii()


def test_a_name_that_postgresql_would_cut_is_refused() -> None:
    assert database("a" * 51) == "shop_branch_" + "a" * 51
    with pytest.raises(DatabaseRefused) as refused:
        database_of("shop", "a" * 52)
    assert refused.value.cause == f"`shop_branch_{'a' * 52}` has 64 bytes, and PostgreSQL holds 63"
    assert refused.value.fix == "choose a name of at most 51 characters"


def test_the_bytes_of_the_source_count_and_not_its_characters() -> None:
    assert database_of("é" * 20, "a" * 15) == "é" * 20 + "_branch_" + "a" * 15
    with pytest.raises(DatabaseRefused):
        database_of("é" * 20, "a" * 16)


@pytest.mark.parametrize("name", ["", " ", "a ", " a", "a\nb", "a\0b", "a\x1b[2J", "\ud800", "a\u202eb"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    assert database(name) is None


def test_the_preview_has_the_name_where_a_host_can_have_it() -> None:
    assert preview_of("feat-new-billing", 8000) == "http://feat-new-billing.localhost:8000"


@given(NAMES)
def test_the_preview_is_one_label_of_a_host(name: str) -> None:
    label = preview_of(name, 80).removeprefix("http://").removesuffix(".localhost:80")
    assert 1 <= len(label) <= 63
    assert label == label.strip("-")
    assert label.isascii()
    assert label == label.lower()
    assert label.replace("-", "a").isalnum()


@pytest.mark.parametrize(
    "other", ["Feat", "FEAT", "feat-", "-feat", "feat.", "feat_", "föat", "a" * 63 + "b"]
)
def test_names_that_hosts_do_not_tell_apart_have_two_previews(other: str) -> None:
    assert len({preview_of(each, 80) for each in (other, "feat", "a" * 63)}) == 3


# Markers.


def line() -> str:
    """The line of a branch, made now."""
    return sealed(MARKER, PLACE, KEY)


def read(text: str) -> Marker:
    """What a line says where it was made."""
    marker = found(text, PLACE, KEY)
    assert marker is not None
    return marker


def test_the_line_of_a_branch_is_read_where_it_was_made() -> None:
    assert replace(read(line()), seal="") == MARKER
    assert read(f"{line()}\nthe comment of the source") == read(line())
    assert claims(line())


@pytest.mark.parametrize(
    "elsewhere",
    [
        Place("7000000000000000002", 16_400, "shop_branch_x"),
        Place("7000000000000000001", 16_401, "shop_branch_x"),
        Place("7000000000000000001", 16_400, "shop"),
        Place("7000000000000000001", 16_400, "shop_branch_X"),
    ],
)
def test_the_line_is_worth_nothing_on_another_server_database_or_name(elsewhere: Place) -> None:
    assert found(line(), elsewhere, KEY) is None
    assert claims(line())


def test_the_line_is_worth_nothing_under_another_key() -> None:
    assert found(line(), PLACE, KEY + b"!") is None


@pytest.mark.parametrize("field", [each.name for each in fields(Marker)])
def test_nothing_that_the_line_says_can_be_changed(field: str) -> None:
    held = json.loads(line().removeprefix("nonsuch branch v1 "))
    held[field] += 1 if isinstance(held[field], int) else "0"
    assert found(f"nonsuch branch v1 {json.dumps(held)}", PLACE, KEY) is None


def test_no_two_branches_share_a_seal_by_moving_text_between_fields() -> None:
    one = sealed(replace(MARKER, name="a", source="bc"), PLACE, KEY)
    moved = one.replace('"name": "a", "source": "bc"', '"name": "ab", "source": "c"')
    assert moved != one
    assert found(moved, PLACE, KEY) is None


ODD = [
    "",
    "a comment",
    "nonsuch branch v1 ",
    "nonsuch branch v1 {}",
    "nonsuch branch v1 []",
    "nonsuch branch v1 " + "[" * 100_000,
    LINE.replace("v1", "v2"),
    " " + LINE,
    LINE[:-1],
    LINE.replace('"seal"', '"Seal"'),
    LINE.replace("16384", "true"),
    LINE.replace("16384", '"16384"'),
    LINE.replace("16384", "16384.0"),
    LINE.replace("{", '{"more": 1, '),
    LINE.replace('"x"', "null"),
    LINE.replace('"seal": "', '"seal": "\\ud800'),
]


@pytest.mark.parametrize("comment", [None, *ODD])
def test_any_other_comment_makes_no_branch(comment: str | None) -> None:
    assert found(comment, PLACE, KEY) is None


@given(st.text())
def test_no_text_of_somebody_elses_makes_a_branch(text: str) -> None:
    assert found(text, PLACE, KEY) is None
    assert found(f"nonsuch branch v1 {text}", PLACE, KEY) is None


# The key.


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NONSUCH_BRANCH_KEY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "nonsuch" / "branch.key"


def test_a_key_is_made_once_and_for_its_owner_alone(state: Path) -> None:
    made = branch_key(make=True)
    assert branch_key() == branch_key(make=True) == made
    assert len(made) >= 32
    assert state.stat().st_mode & 0o777 == 0o600
    assert state.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in state.parent.iterdir()] == ["branch.key"]


def test_makers_at_once_have_one_key(state: Path) -> None:
    keys, start = list[bytes](), threading.Barrier(8)

    def make() -> None:
        start.wait()
        keys.append(branch_key(make=True))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(keys) == 8
    assert set(keys) == {state.read_bytes().strip()}


def test_the_environment_goes_first(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NONSUCH_BRANCH_KEY", f" {'k' * 32}\n")
    assert branch_key(make=True) == b"k" * 32
    assert not state.exists()


def refusal() -> str:
    with pytest.raises(DatabaseRefused) as refused:
        branch_key()
    assert refused.value.code == "X_DB_BRANCH_KEY"
    return refused.value.cause


def test_without_a_key_there_is_none(state: Path) -> None:
    assert refusal() == f"there is no key of branches: neither `NONSUCH_BRANCH_KEY` nor `{state}`"


@pytest.mark.parametrize("short", ["", "k" * 31, " " * 64])
def test_a_short_key_is_refused(short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NONSUCH_BRANCH_KEY", short)
    assert "too short" in refusal()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_key_that_others_may_touch_is_refused(mode: int, state: Path) -> None:
    branch_key(make=True)
    state.chmod(mode)
    assert refusal() == f"`{state}` can be read by others than its owner"


def test_a_key_that_cannot_be_read_is_told(state: Path) -> None:
    state.mkdir(parents=True)
    assert refusal() == f"`{state}` cannot be used: {os.strerror(21)}"
