"""A call that waits for a person: every answer, every code, who may do what, and that nothing runs else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final, Literal, TypeVar

import pytest
from pydantic import BaseModel, create_model

from nonsuch import (
    BootError,
    Human,
    Principal,
    confirmations_for,
    define_app_mcp,
    guard,
    mcp_confirmations,
    memory_confirmation_store,
    new_seal_key,
    postgres_confirmation_store,
    seal_keys,
    waited,
)
from nonsuch.adapters.edge.confirmations import Listing, MemoryConfirmationStore, StoreFull
from nonsuch.adapters.edge.run import Running
from nonsuch.kernel.confirmation import Confirmation
from nonsuch.kernel.model import Failed, Ok, Outcome, PolicyDenied, Unconfirmed
from nonsuch.kernel.strict_json import Json

from .shop import (
    AGENT,
    ALONE,
    ANN,
    BOSS,
    CALL,
    FOREIGN,
    LONE_BOSS,
    LONER,
    MS,
    NEWER,
    NOBODY,
    NOON,
    OTHER,
    PATH,
    TTL,
    Refund,
    Shop,
    approve,
    asked,
    began,
    call,
    code_of,
    decide,
)

T = TypeVar("T")
PENDING: Final = "X_MCP_CONFIRMATION_PENDING"
UNKNOWN: Final = "an-id-that-nobody-has-0001"


def within(shop: Shop, using: Callable[[Running], Awaitable[T]]) -> T:
    """Use the shop while it is open."""

    async def whole() -> T:
        async with shop.open() as running:
            return await using(running)

    return asyncio.run(whole())


# from the call to its run


def test_a_call_waits_is_viewed_approved_and_runs_once() -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        ident = await asked(running)
        assert shop.ran == []
        viewed = await decide(running, ident, "view")
        assert isinstance(viewed, Ok)
        assert viewed.value == {
            "id": ident,
            "tool": "refund",
            "status": "pending",
            "askedBy": "ag",
            "actsFor": "ann",
            "org": "acme",
            "askedAt": "2026-07-28T12:00:00Z",
            "expiresAt": "2026-07-28T12:10:00Z",
            "decidedBy": None,
            "decidedAt": None,
            "arguments": CALL,
        }
        shop.now = NOON + MS
        approved = await decide(running, ident, "approve", arguments=dict(CALL))
        assert isinstance(approved, Ok)
        told = approved.value
        assert isinstance(told, dict)
        assert (told["status"], told["decidedBy"], told["arguments"]) == ("approved", "bob", None)
        assert told["decidedAt"] == "2026-07-28T12:00:00.001000Z"
        assert shop.ran == []
        assert await call(running) == Ok(b'"refunded"')
        assert shop.ran == ["ag o1 5"]
        again = await asked(running)
        assert again != ident
        assert shop.ran == ["ag o1 5"]

    within(shop, using)


def test_what_is_viewed_is_what_was_sent_to_the_letter() -> None:
    sent: dict[str, Json] = {"note": "a\u202eb\u200b", "order": "o1", "amount": 5.0}

    async def using(running: Running) -> None:
        outcome = await call(running, sent=sent)
        assert isinstance(outcome, Unconfirmed)
        viewed = await decide(running, outcome.ident, "view")
        assert isinstance(viewed, Ok)
        assert b'"arguments":{"note":"a\xe2\x80\xaeb\xe2\x80\x8b","order":"o1","amount":5.0}' in viewed.json

    within(Shop(), using)


def test_viewing_changes_nothing() -> None:
    async def using(running: Running) -> None:
        ident = await asked(running)
        first = await decide(running, ident, "view")
        assert [await decide(running, ident, "view") for _ in range(3)] == [first] * 3
        assert await asked(running) == ident

    within(Shop(), using)


def test_the_same_call_has_the_same_id_whatever_its_spelling_and_its_surface() -> None:
    async def using(running: Running) -> None:
        ident = await asked(running)
        assert await asked(running) == ident
        spelt = await call(running, sent={"amount": 5.0, "order": "o1"})
        assert isinstance(spelt, Unconfirmed)
        over_http = await running.invoke(AGENT, "orders/refund", CALL, "http")
        assert isinstance(over_http, Unconfirmed)
        assert spelt.ident == over_http.ident == ident

    within(Shop(), using)


@pytest.mark.parametrize(
    ("who", "tool", "sent"),
    [
        (OTHER, "refund", CALL),
        (ANN, "refund", CALL),
        (Human("ann", roles={"clerk"}, org="beta").delegate("ag", scopes={"orders"}), "refund", CALL),
        (Human("ann", roles={"clerk"}, org="acme").delegate("ag3", scopes={"orders"}), "refund", CALL),
        (LONER, "refund", CALL),
        (AGENT, "fails", CALL),
        (AGENT, "refund", {**CALL, "amount": 6}),
        (AGENT, "refund", {**CALL, "note": None}),
    ],
)
def test_nobody_rides_on_an_approval_and_no_other_call(
    who: Principal, tool: str, sent: Mapping[str, Json]
) -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        await approve(running, await asked(running))
        assert code_of(await call(running, who, tool, sent)) == PENDING
        assert shop.ran == []
        assert await call(running) == Ok(b'"refunded"')

    within(shop, using)


def test_an_approval_survives_another_role_and_another_token() -> None:
    """Bound to who asked, not to the bytes of a token or to what it may do today."""
    shop = Shop()

    async def using(running: Running) -> None:
        await approve(running, await asked(running))
        richer = Human("ann", roles={"clerk", "boss"}, org="acme").delegate("ag", scopes={"orders", "x"})
        assert await call(running, richer) == Ok(b'"refunded"')

    within(shop, using)


def test_a_rejected_call_is_told_so_once_and_audited_as_a_denial() -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        ident = await asked(running)
        assert isinstance(await decide(running, ident, "reject"), Ok)
        outcome = await call(running)
        assert isinstance(outcome, Unconfirmed)
        assert (outcome.code, outcome.ident) == ("X_MCP_CONFIRMATION_REJECTED", ident)
        assert (shop.last.outcome, shop.last.code) == ("policy-denied", "X_MCP_CONFIRMATION_REJECTED")
        assert await asked(running) != ident
        assert shop.ran == []

    within(shop, using)


@pytest.mark.parametrize(("late", "code"), [(-MS, "ok"), (timedelta(0), "X"), (MS, "X")])
def test_a_person_decides_before_it_lapses_and_not_from_then_on(late: timedelta, code: str) -> None:
    for decision in ("approve", "reject"):
        shop = Shop()

        async def using(running: Running, shop: Shop = shop, decision: str = decision) -> str:
            ident = await asked(running)
            shop.now = NOON + TTL + late
            return code_of(await decide(running, ident, decision, arguments=dict(CALL)))

        assert within(shop, using) == ("ok" if code == "ok" else "X_MCP_CONFIRMATION_EXPIRED")


@pytest.mark.parametrize(("late", "runs"), [(-MS, True), (timedelta(0), False), (MS, False)])
def test_an_approval_is_used_before_it_lapses_and_not_from_then_on(late: timedelta, runs: bool) -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        ident = await asked(running)
        await approve(running, ident)
        shop.now = NOON + TTL + late
        outcome = await call(running)
        assert code_of(outcome) == ("ok" if runs else "X_MCP_CONFIRMATION_EXPIRED")
        assert len(shop.ran) == runs
        if not runs:
            assert shop.last.outcome == "unconfirmed"
            assert await asked(running) != ident

    within(shop, using)


@pytest.mark.parametrize(("late", "told"), [(-MS, PENDING), (timedelta(0), "X"), (MS, "X")])
def test_what_nobody_decided_is_told_once_to_have_lapsed(late: timedelta, told: str) -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        ident = await asked(running)
        shop.now = NOON + TTL + late
        code = code_of(await call(running))
        assert code == (PENDING if told == PENDING else "X_MCP_CONFIRMATION_EXPIRED")
        assert (await asked(running) == ident) is (told == PENDING)

    within(shop, using)


def test_it_is_decided_once() -> None:
    async def using(running: Running) -> None:
        for first in ("approve", "reject"):
            ident = await asked(running, tool="refund" if first == "approve" else "fails")
            assert code_of(await decide(running, ident, first, arguments=dict(CALL))) == "ok"
            for second in ("approve", "reject"):
                code = code_of(await decide(running, ident, second, arguments=dict(CALL)))
                assert code == "X_MCP_CONFIRMATION_DECIDED"

    within(Shop(), using)


def test_a_decision_stays_after_the_run() -> None:
    async def using(running: Running) -> None:
        ident = await asked(running)
        await approve(running, ident)
        await call(running)
        assert code_of(await decide(running, ident, "reject")) == "X_MCP_CONFIRMATION_DECIDED"
        viewed = await decide(running, ident, "view")
        assert isinstance(viewed, Ok)
        assert isinstance(viewed.value, dict)
        assert (viewed.value["status"], viewed.value["decidedBy"]) == ("ran", "bob")

    within(Shop(), using)


# an approval carries what was viewed


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (None, "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"),
        ({}, "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"),
        ({**CALL, "amount": 6}, "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"),
        ({**CALL, "extra": 1}, "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"),
        ({**CALL, "note": None}, "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"),
        ({**CALL, "amount": "5"}, "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"),
        ({**CALL, "order": "o\u200b1"}, "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"),
        ({"amount": 5.0, "order": "o1"}, "ok"),
        (dict(CALL), "ok"),
    ],
)
def test_an_approval_carries_the_arguments_of_the_call(sent: Json, code: str) -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        ident = await asked(running)
        assert code_of(await decide(running, ident, "approve", arguments=sent)) == code
        expected = "ok" if code == "ok" else PENDING
        assert code_of(await call(running)) == expected

    within(shop, using)


def test_a_rejection_carries_nothing() -> None:
    async def using(running: Running) -> None:
        assert code_of(await decide(running, await asked(running), "reject")) == "ok"

    within(Shop(), using)


# who may


def test_no_agent_views_or_decides_whatever_it_holds() -> None:
    """Under a policy that permits everything to everybody, and its own request."""
    shop = Shop(settings={"scopes": None})
    everything = Human("ann", roles={"clerk", "boss"}, org="acme").delegate("ag", scopes={"orders"})

    async def using(running: Running) -> None:
        ident = await asked(running, everything)
        for decision in ("view", "approve", "reject"):
            for id_ in (ident, UNKNOWN):
                outcome = await decide(running, id_, decision, everything, dict(CALL))
                assert isinstance(outcome, PolicyDenied)
                assert (outcome.code, outcome.policies) == ("X_FORBIDDEN", ())
        assert code_of(await approve(running, ident)) == "ok"

    within(shop, using)


def test_no_policy_of_an_app_admits_an_agent(tmp_path: Any) -> None:
    (tmp_path / "open.cedar").write_text('permit (principal, action in Action::"any", resource);')
    shop = Shop(settings={"policies_dir": tmp_path})

    async def using(running: Running) -> list[str]:
        ident = await asked(running)
        return [code_of(await decide(running, ident, "view", who)) for who in (AGENT, NOBODY, OTHER)]

    assert within(shop, using) == ["X_FORBIDDEN"] * 3


def test_a_policy_that_admits_agents_alone_is_refused_at_boot(tmp_path: Any) -> None:
    text = f'permit (principal is Agent, action == Action::"{PATH}", resource);'
    (tmp_path / "agents.cedar").write_text(text)
    with pytest.raises(BootError) as caught:
        Shop(settings={"policies_dir": tmp_path}).app()
    assert {each.code for each in caught.value.faults} == {"X_POLICY_INVALID"}


def test_a_foreign_an_unknown_and_a_misspelt_id_are_one_answer() -> None:
    for audience in ("caller", "developer"):
        shop = Shop(settings={"error_audience": audience})

        async def using(running: Running) -> None:
            ident = await asked(running)
            for who, ids in (
                (FOREIGN, (ident, UNKNOWN, "", "x", "a b", "\u202e", "x" * 128)),
                (BOSS, (UNKNOWN, "", "'")),
                (LONE_BOSS, (ident, UNKNOWN)),
            ):
                for decision in ("view", "approve", "reject"):
                    answers = [await decide(running, each, decision, who, dict(CALL)) for each in ids]
                    assert code_of(answers[0]) == "X_FORBIDDEN"
                    assert answers == [answers[0]] * len(ids)
            assert await asked(running) == ident

        within(shop, using)


def test_what_nobodys_organisation_asked_for_people_of_none_decide() -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        ident = await asked(running, LONER)
        assert code_of(await decide(running, ident, "view", BOSS)) == "X_FORBIDDEN"
        assert code_of(await approve(running, ident, LONE_BOSS)) == "ok"
        assert await call(running, LONER) == Ok(b'"refunded"')

    within(shop, using)


def test_a_person_without_the_permission_decides_nothing() -> None:
    async def using(running: Running) -> None:
        assert code_of(await decide(running, await asked(running), "view", ANN)) == "X_FORBIDDEN"

    within(Shop(), using)


def test_a_check_of_the_apps_own_crosses_organisations_and_then_an_unknown_id_is_unknown() -> None:
    shop = Shop(confirming={"check": 'principal in Role::"boss"'})

    async def using(running: Running) -> None:
        ident = await asked(running)
        assert code_of(await decide(running, UNKNOWN, "view", FOREIGN)) == "X_MCP_CONFIRMATION_UNKNOWN"
        assert code_of(await approve(running, ident, FOREIGN)) == "ok"

    within(shop, using)


def test_four_eyes_are_one_policy(tmp_path: Any) -> None:
    text = (
        f'forbid (principal, action == Action::"{PATH}", resource)\n'
        "when { resource.user == principal.user };"
    )
    (tmp_path / "eyes.cedar").write_text(text)
    shop = Shop(settings={"policies_dir": tmp_path})
    self_made = Human("bob", roles={"boss", "clerk"}, org="acme").delegate("ag", scopes={"orders"})

    async def using(running: Running) -> None:
        ident = await asked(running, self_made)
        assert code_of(await decide(running, ident, "view", BOSS)) == "X_FORBIDDEN"
        by_hand = await asked(running, BOSS)
        assert code_of(await decide(running, by_hand, "view", BOSS)) == "X_FORBIDDEN"
        assert code_of(await decide(running, await asked(running), "view", BOSS)) == "ok"

    within(shop, using)


# the order of the gates


@pytest.mark.parametrize(
    ("who", "sent", "code"),
    [
        (AGENT, {"order": "o1"}, "InvalidArguments"),
        (Human("ann", roles={"clerk"}, org="acme").delegate("ag"), CALL, "ScopeDenied"),
        (NOBODY, CALL, "X_FORBIDDEN"),
        (Human("x", org="acme").delegate("ag", scopes={"orders"}), CALL, "X_FORBIDDEN"),
    ],
)
def test_nothing_opens_for_a_call_that_another_gate_refuses(
    who: Principal, sent: Mapping[str, Json], code: str
) -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        assert code_of(await call(running, who, sent=sent)) == code
        assert await confirmations_for(running, BOSS) == []

    within(shop, using)


def test_nothing_opens_for_a_hidden_tool() -> None:
    async def using(running: Running) -> None:
        for tool in ("secret", "absent"):
            assert code_of(await call(running, AGENT, tool)) == "Hidden"
        assert await confirmations_for(running, BOSS) == []

    within(Shop(), using)


def test_no_policy_reads_a_resource_before_a_person_approved() -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        outcome = await call(running, sent={"order": "of nobody", "amount": 1})
        assert code_of(outcome) == PENDING
        assert shop.loads == []
        assert isinstance(outcome, Unconfirmed)
        assert await decide(running, outcome.ident, "approve", arguments={"order": "of nobody", "amount": 1})
        assert code_of(await call(running, sent={"order": "of nobody", "amount": 1})) == "X_NOT_FOUND"
        assert shop.ran == []

    within(shop, using)


def test_the_whole_policy_decides_an_approved_call_and_a_denial_spends_no_approval(tmp_path: Any) -> None:
    text = 'forbid (principal, action == Action::"refund", resource) when { context.args.amount > 4 };'
    (tmp_path / "limit.cedar").write_text(text)
    shop = Shop(settings={"policies_dir": tmp_path})

    async def using(running: Running) -> None:
        ident = await asked(running)
        await approve(running, ident)
        for _ in range(2):
            assert code_of(await call(running)) == "X_FORBIDDEN"
        assert shop.ran == []

    within(shop, using)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('ACTION, resource) when { principal.id == "ag" };', "X_FORBIDDEN"),
        ("ACTION, resource is Order);", "X_FORBIDDEN"),
        ('principal is Agent, action in Action::"any", resource);', "X_FORBIDDEN"),
        ('principal, action in Action::"any", resource is Server);', PENDING),
        ('ACTION, resource == Order::"o1");', PENDING),
        ('ACTION, resource) when { resource.org == "x" };', PENDING),
        ("ACTION, resource) when { context.args.amount > 9 };", PENDING),
        ('ACTION, resource) when { principal.id == "ag" && resource.org == "acme" };', PENDING),
        ('ACTION, resource) unless { principal has org && principal.org == "acme" };', PENDING),
    ],
)
def test_a_caller_whom_nothing_permits_asks_nobody(tmp_path: Any, text: str, code: str) -> None:
    """What the caller alone decides is decided before a person is asked; the rest when the call runs."""
    rule = text.replace("ACTION", 'principal, action == Action::"refund"')
    (tmp_path / "rule.cedar").write_text(f"forbid ({rule}")

    async def using(running: Running) -> str:
        return code_of(await call(running))

    assert within(Shop(settings={"policies_dir": tmp_path}), using) == code


def test_a_permit_with_a_condition_on_the_resource_lets_its_caller_ask(tmp_path: Any) -> None:
    text = (
        'permit (principal, action == Action::"refund", resource)\n'
        'when { principal.id == "ag" && resource.org == "acme" };\n'
        'permit (principal is Human, action == Action::"refund", resource == Order::"o7");'
    )
    (tmp_path / "rule.cedar").write_text(text)
    no_role = Human("zoe", org="acme")

    async def using(running: Running) -> None:
        assert code_of(await call(running, no_role.delegate("ag", scopes={"orders"}))) == PENDING
        assert code_of(await call(running, no_role.delegate("ax", scopes={"orders"}))) == "X_FORBIDDEN"

    within(Shop(settings={"policies_dir": tmp_path}), using)


# how a run ends


def test_a_run_that_failed_is_spent() -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        ident = await asked(running, tool="fails")
        await approve(running, ident)
        assert code_of(await call(running, tool="fails")) == "X_LATE"
        assert await asked(running, tool="fails") != ident
        assert shop.ran == ["fails"]

    within(shop, using)


def test_the_same_call_while_it_runs_is_told_to_come_back() -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        shop.gate = asyncio.Event()
        ident = await asked(running)
        await approve(running, ident)
        first = asyncio.ensure_future(call(running))
        await began(running, ident)
        outcome = await call(running)
        assert isinstance(outcome, Unconfirmed)
        assert (outcome.code, outcome.ident) == ("X_MCP_CONFIRMATION_CONTESTED", ident)
        shop.gate.set()
        assert await first == Ok(b'"refunded"')

    within(shop, using)


def test_a_run_that_was_stopped_is_told_once_when_it_has_lapsed() -> None:
    shop = Shop()

    async def using(running: Running) -> None:
        shop.gate = asyncio.Event()
        ident = await asked(running)
        await approve(running, ident)
        first = asyncio.ensure_future(call(running))
        await began(running, ident)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        for late, code in ((-MS, "X_MCP_CONFIRMATION_CONTESTED"), (timedelta(0), "X_INTERRUPTED")):
            shop.now = NOON + TTL + late
            assert code_of(await call(running)) == code
        assert await asked(running) != ident
        assert shop.ran == []

    within(shop, using)


def test_a_handler_that_asks_its_client_needs_no_other_approval_for_the_next_round() -> None:
    """In process nobody can be asked, and the run is not spent."""
    shop = Shop()

    async def using(running: Running) -> None:
        ident = await asked(running, tool="asks")
        await approve(running, ident)
        code = code_of(await call(running, tool="asks"))
        assert code == "X_MCP_CLIENT_SILENT"
        assert shop.ran == ["asks"]

    within(shop, using)


# keyed calls


def test_a_keyed_call_waits_runs_and_is_replayed_without_a_second_confirmation() -> None:
    shop = Shop()
    keyed: dict[str, Json] = {**CALL, "idempotencyKey": "k"}

    async def using(running: Running) -> None:
        outcome = await call(running, tool="fails", sent=keyed)
        assert isinstance(outcome, Unconfirmed)
        viewed = await decide(running, outcome.ident, "view")
        assert isinstance(viewed, Ok)
        assert isinstance(viewed.value, dict)
        assert viewed.value["arguments"] == CALL
        await approve(running, outcome.ident)
        first, again = [await call(running, tool="fails", sent=keyed) for _ in range(2)]
        assert isinstance(first, Failed)
        assert isinstance(again, Failed)
        assert (first.replayed, again.replayed, again.code) == (False, True, "X_LATE")
        assert shop.ran == ["fails"]

    within(shop, using)


# rotation, schema, limits, outages


def test_after_a_new_key_the_call_is_asked_anew_and_the_old_approval_never_applies() -> None:
    store = memory_confirmation_store()
    old = within(Shop(store), lambda running: asked(running))
    shop = Shop(store, NEWER)

    async def using(running: Running) -> None:
        assert await asked(running) != old
        viewed = await decide(running, old, "view")
        assert isinstance(viewed, Ok)
        assert isinstance(viewed.value, dict)
        assert viewed.value["arguments"] == CALL
        assert code_of(await approve(running, old)) == "X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH"
        assert code_of(await decide(running, old, "reject")) == "ok"
        assert code_of(await call(running)) == PENDING
        assert shop.ran == []

    within(shop, using)


def test_an_approval_from_before_a_new_key_lets_nothing_run() -> None:
    store = memory_confirmation_store()

    async def before(running: Running) -> str:
        ident = await asked(running)
        await approve(running, ident)
        return ident

    old = within(Shop(store), before)
    shop = Shop(store, NEWER)
    assert within(shop, lambda running: asked(running)) != old
    assert shop.ran == []


def test_what_a_key_sealed_that_is_not_kept_can_be_rejected_and_not_read() -> None:
    store = memory_confirmation_store()
    old = within(Shop(store), lambda running: asked(running))

    async def using(running: Running) -> list[str]:
        return [code_of(await decide(running, old, each)) for each in ("view", "reject")]

    assert within(Shop(store, ALONE), using) == ["X_MCP_CONFIRMATION_UNREADABLE", "ok"]


# By the same name in the same module, so that nothing but the schema tells them apart.
NARROWER: Final = create_model(
    "Refund", __module__=Refund.__module__, order=(str, ...), amount=(int, ...), note=(str | None, "none")
)
WIDER: Final = create_model("Refund", __module__=Refund.__module__, __base__=Refund, reason=(str, ""))


@pytest.mark.parametrize("model", [NARROWER, WIDER], ids=["another default", "another field"])
def test_after_a_change_of_the_schema_an_approval_is_refused_and_an_older_one_runs_nothing(
    model: type[BaseModel],
) -> None:
    for approved in (False, True):
        store = memory_confirmation_store()

        async def before(running: Running, approved: bool = approved) -> str:
            ident = await asked(running)
            if approved:
                await approve(running, ident)
            return ident

        old = within(Shop(store), before)
        shop = Shop(store, model=model)

        async def using(running: Running, old: str = old, approved: bool = approved) -> None:
            code = code_of(await approve(running, old))
            expected = "DECIDED" if approved else "ARGUMENTS_MISMATCH"
            assert code == f"X_MCP_CONFIRMATION_{expected}"
            assert await asked(running) != old

        within(shop, using)
        assert shop.ran == []


def test_a_tool_that_is_not_gated_any_more_cannot_be_approved() -> None:
    store = memory_confirmation_store()
    old = within(Shop(store), lambda running: asked(running))

    async def using(running: Running) -> list[str]:
        return [
            code_of(await decide(running, old, "approve", arguments=dict(CALL))),
            code_of(await decide(running, old, "view")),
        ]

    later = Shop(store, confirming={"tools": ["fails"]})
    assert within(later, using) == ["X_MCP_CONFIRMATION_ARGUMENTS_MISMATCH", "ok"]


def test_another_apps_confirmation_is_none_here() -> None:
    store = memory_confirmation_store()
    old = within(Shop(store), lambda running: asked(running))

    async def using(running: Running) -> list[str]:
        return [code_of(await decide(running, each, "view")) for each in (old, UNKNOWN)]

    assert within(Shop(store, settings={"name": "another"}), using) == ["X_FORBIDDEN"] * 2


def test_one_caller_has_so_many_calls_wait_and_no_more() -> None:
    shop = Shop(confirming={"max_pending": 2})

    async def using(running: Running) -> None:
        codes = [code_of(await call(running, sent={**CALL, "amount": each})) for each in (1, 2, 3, 1)]
        assert codes == [PENDING, PENDING, "X_MCP_CONFIRMATIONS_FULL", PENDING]
        assert code_of(await call(running, OTHER)) == PENDING
        shop.now = NOON + TTL
        assert code_of(await call(running, sent={**CALL, "amount": 3})) == PENDING

    within(shop, using)


class Broken(MemoryConfirmationStore):
    """A store that fails at one of its steps."""

    def __init__(self, step: str) -> None:
        super().__init__()
        self.step, self.fails = step, False

    async def find(self, owner: str, tool: str, fingerprint: str) -> Confirmation | None:
        self._check("find")
        return await super().find(owner, tool, fingerprint)

    async def open(self, row: Confirmation, limit: int) -> Confirmation | None:
        self._check("open")
        return await super().open(row, limit)

    async def read(self, ident: str, *, sealed: bool = False) -> Confirmation | None:
        self._check("read")
        return await super().read(ident, sealed=sealed)

    async def swap(self, row: Confirmation) -> bool:
        self._check("swap")
        return await super().swap(row)

    def _check(self, step: str) -> None:
        if self.fails and step == self.step:
            raise OSError("s3ntinel")


@pytest.mark.parametrize("step", ["find", "open", "swap"])
def test_a_store_that_fails_lets_nothing_run(step: str) -> None:
    store = Broken(step)
    shop = Shop(store)

    async def using(running: Running) -> None:
        if step != "open":
            await approve(running, await asked(running))
        store.fails = True
        outcome = await call(running)
        assert code_of(outcome) == "X_MCP_CONFIRMATION_STORE_FAILED"
        assert "s3ntinel" not in repr(outcome)
        assert shop.ran == []
        store.fails = False
        assert code_of(await call(running)) == (PENDING if step == "open" else "ok")

    within(shop, using)


def test_a_store_that_fails_tells_no_lapse_and_no_rejection() -> None:
    store = Broken("swap")
    shop = Shop(store)

    async def using(running: Running) -> None:
        await decide(running, await asked(running), "reject")
        store.fails = True
        assert code_of(await call(running)) == "X_MCP_CONFIRMATION_STORE_FAILED"
        store.fails = False
        assert code_of(await call(running)) == "X_MCP_CONFIRMATION_REJECTED"

    within(shop, using)


def test_a_decision_that_cannot_be_kept_is_no_decision() -> None:
    store = Broken("swap")

    async def using(running: Running) -> None:
        ident = await asked(running)
        store.fails = True
        code = code_of(await decide(running, ident, "approve", arguments=dict(CALL)))
        assert code == "X_MCP_CONFIRMATION_STORE_FAILED"
        store.fails = False
        assert code_of(await call(running)) == PENDING

    within(Shop(store), using)


class Racing(MemoryConfirmationStore):
    """A store in which somebody else is always faster."""

    async def swap(self, row: Confirmation) -> bool:
        return False


def test_who_always_loses_is_told_to_come_back() -> None:
    store = Racing()
    shop = Shop(store)

    async def using(running: Running) -> None:
        await asked(running)
        shop.now = NOON + TTL
        assert code_of(await call(running)) == "X_MCP_CONFIRMATION_CONTESTED"

    within(shop, using)


def test_who_loses_a_decision_is_not_told_that_it_counts() -> None:
    async def using(running: Running) -> str:
        return code_of(await approve(running, await asked(running)))

    assert within(Shop(Racing()), using) == "X_MCP_CONFIRMATION_DECIDED"


def test_a_full_memory_forgets_what_is_over_and_nothing_else() -> None:
    store = MemoryConfirmationStore(max_rows=2)
    shop = Shop(store)

    async def using(running: Running) -> None:
        for amount in (1, 2):
            assert code_of(await call(running, sent={**CALL, "amount": amount})) == PENDING
        assert code_of(await call(running, sent=CALL)) == "X_MCP_CONFIRMATION_STORE_FAILED"
        shop.now = NOON + TTL
        assert code_of(await call(running, sent=CALL)) == PENDING

    within(shop, using)
    assert issubclass(StoreFull, Exception)


# the audit line


def test_every_line_says_which_confirmation_and_what_a_person_did() -> None:
    shop = Shop()

    async def using(running: Running) -> str:
        ident = await asked(running)
        await approve(running, ident)
        await call(running)
        await decide(running, "not an id at all", "view")
        return ident

    ident = within(shop, using)
    told = [(each.tool, each.outcome, each.code, each.confirmation, each.decision) for each in shop.events]  # type: ignore[union-attr]  # calls
    assert told == [
        ("refund", "unconfirmed", PENDING, ident, None),
        (PATH, "ok", None, ident, "view"),
        (PATH, "ok", None, ident, "approve"),
        ("refund", "ok", None, ident, None),
        (PATH, "policy-denied", "X_FORBIDDEN", None, "view"),
    ]


# lists, waiting


@pytest.mark.parametrize("which", ["open", "ended"])
def test_a_person_is_listed_what_may_be_viewed_and_an_agent_nothing(which: Literal["open", "ended"]) -> None:
    async def using(running: Running) -> None:
        theirs = [await asked(running), await asked(running, OTHER)]
        nobodys = await asked(running, LONER)
        if which == "ended":
            for ident, person in ((theirs[0], BOSS), (theirs[1], BOSS), (nobodys, LONE_BOSS)):
                await decide(running, ident, "reject", person)
        people: list[tuple[Principal, list[str]]] = [(BOSS, theirs), (FOREIGN, []), (ANN, []), (AGENT, [])]
        for who, idents in (*people, (LONE_BOSS, [nobodys])):
            rows = await confirmations_for(running, who, which)
            assert sorted(each.ident for each in rows) == sorted(idents)
            assert {each.sealed for each in rows} <= {b""}
        assert len(await confirmations_for(running, BOSS, which, limit=1)) == 1

    shop = Shop()
    within(shop, using)
    assert all(each.decision in (None, "reject") for each in shop.events)  # type: ignore[union-attr]  # a list is no event


def test_who_waits_is_told_when_it_is_decided() -> None:
    async def using(running: Running) -> None:
        ident = await asked(running)
        waiting = asyncio.ensure_future(waited(running, ident, 0, 5))
        await asyncio.sleep(0.02)
        await approve(running, ident)
        row = await waiting
        assert row is not None
        assert row.status == "approved"
        assert (await waited(running, ident, row.version, 0)) == row
        assert await waited(running, UNKNOWN, 0, 5) is None

    within(Shop(), using)


# boot


@pytest.mark.parametrize(
    ("confirming", "code"),
    [
        ({"tools": []}, "X_MCP_CONFIRMATION_TOOL_UNKNOWN"),
        ({"tools": ["refund", "refunds"]}, "X_MCP_CONFIRMATION_TOOL_UNKNOWN"),
        ({"tools": ["orders/refund"]}, "X_MCP_CONFIRMATION_TOOL_UNKNOWN"),
        ({"tools": [PATH]}, "X_MCP_CONFIRMATION_TOOL_UNKNOWN"),
        ({"tools": ["list_resources"]}, "X_MCP_CONFIRMATION_TOOL_UNKNOWN"),
        ({"ttl": timedelta(0)}, "X_DECLARATION_INVALID"),
        ({"ttl": timedelta(days=400)}, "X_DECLARATION_INVALID"),
        ({"max_pending": 0}, "X_DECLARATION_INVALID"),
        ({"permission": "no permission"}, "X_NAME_INVALID"),
        ({"check": "true }; permit (principal, action, resource) when { true"}, "X_POLICY_SYNTAX"),
        ({"check": "resource.total > 3"}, "X_POLICY_INVALID"),
    ],
)
def test_what_cannot_be_confirmed_is_refused_at_boot(confirming: Mapping[str, Any], code: str) -> None:
    with pytest.raises(BootError) as caught:
        Shop(confirming=confirming).app()
    assert {each.code for each in caught.value.faults} == {code}


def test_an_app_that_leaves_the_gate_out_is_refused() -> None:
    shop = Shop()
    registry = shop.registry()
    registry.add(mcp_confirmations(tools=["refund"], store=shop.store, permission="a:b"))
    with pytest.raises(BootError) as caught:
        define_app_mcp(registry, name="shop", include="exposed")
    (told,) = caught.value.faults
    assert told.code == "X_DECLARATION_INVALID"
    assert "`refund`" in told.cause


def test_a_decision_that_is_none_or_in_no_registry_is_refused() -> None:
    registry = Shop().registry()
    foreign = mcp_confirmations(tools=["refund"], store=memory_confirmation_store(), permission="a:b")
    for given, code in ((registry.actions[0], "X_DECLARATION_INVALID"), (foreign, "X_ACTION_UNREGISTERED")):
        with pytest.raises(BootError) as caught:
            define_app_mcp(registry, name="shop", include="exposed", confirmations=given)
        assert {each.code for each in caught.value.faults} == {code}


def test_no_guard_stands_in_for_a_person() -> None:
    app = Shop().app()
    for name in ("refund", PATH):
        with pytest.raises(BootError):
            guard(app, name)


# keys


def test_keys_come_from_a_file_or_the_environment(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "\n".join((new_seal_key("b"), new_seal_key("a")))
    (tmp_path / "keys").write_text(lines)
    monkeypatch.delenv("NONSUCH_SEAL_KEYS", raising=False)
    monkeypatch.delenv("NONSUCH_SEAL_KEYS_FILE", raising=False)
    held = seal_keys(tmp_path / "keys")
    assert [each.ident for each in held.keys] == ["b", "a"]
    monkeypatch.setenv("NONSUCH_SEAL_KEYS", lines.replace("\n", ","))
    assert seal_keys() == held
    monkeypatch.setenv("NONSUCH_SEAL_KEYS_FILE", str(tmp_path / "keys"))
    monkeypatch.setenv("NONSUCH_SEAL_KEYS", "nonsense")
    assert seal_keys() == held


@pytest.mark.parametrize("told", [None, "nonsense", "a:AAAA"])
def test_a_lasting_store_needs_keys_that_can_be_used(
    told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NONSUCH_SEAL_KEYS_FILE", raising=False)
    if told is None:
        monkeypatch.delenv("NONSUCH_SEAL_KEYS", raising=False)
    else:
        monkeypatch.setenv("NONSUCH_SEAL_KEYS", told)
    with pytest.raises(BootError) as caught:
        Shop(confirming={"store": postgres_confirmation_store("dbname=none"), "keys": None}).app()
    assert {each.code for each in caught.value.faults} == {"X_SEAL_KEYS_INVALID"}
    assert told is None or told not in str(caught.value)


def test_a_memory_store_makes_a_key_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NONSUCH_SEAL_KEYS", raising=False)
    monkeypatch.delenv("NONSUCH_SEAL_KEYS_FILE", raising=False)
    assert within(Shop(confirming={"keys": None}), lambda running: asked(running))


def test_a_listing_asks_for_an_organisation_or_for_every_one() -> None:
    store = memory_confirmation_store()

    async def using(running: Running) -> list[int]:
        await asked(running)
        await asked(running, LONER)
        asks = (("acme", False), (None, False), ("beta", False), ("beta", True))
        held = [await store.listed(Listing(("shop",), org, every, True, NOON, 10)) for org, every in asks]
        return [len(each) for each in held]

    assert within(Shop(store), using) == [1, 1, 0, 2]


def test_the_words_name_the_id_the_place_and_the_time() -> None:
    async def using(running: Running) -> Outcome:
        return await call(running)

    for where, place in (
        (None, f"POST /api/{PATH}"),
        ("https://shop.example/inbox", "https://shop.example/inbox"),
    ):
        told = within(Shop(confirming={"where": where}), using)
        assert isinstance(told, Unconfirmed)
        assert (
            told.cause
            == f"`refund` waits for a person: confirmation `{told.ident}`, until 2026-07-28T12:10:00+00:00"
        )
        assert place in told.caller_fix
        assert json.dumps(told.caller_fix).isascii()
