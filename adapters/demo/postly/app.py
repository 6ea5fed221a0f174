"""What Postly declares: its actions, queries, tool, resource and prompt, and who may see and do what.

Knows no wire and no SQL. Who may do it is written in `policies/`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

from .... import (
    ActionError,
    App,
    Context,
    Registry,
    SealKeys,
    can,
    define_app_mcp,
    expose,
    mcp_confirmations,
    new_seal_key,
    postgres_confirmation_store,
    prompt,
    resource,
    tool,
)
from ....kernel.audit import Event
from ....kernel.declare import Action
from ....kernel.meter import DEFAULT, Limits
from . import queries
from .db import Db, open_db
from .models import (
    GetPost,
    ListOrders,
    ListPayoutBatches,
    ListPosts,
    Order,
    OrderRow,
    OrgExport,
    PayoutBatch,
    PayoutBatchRow,
    PayoutPreview,
    Post,
    PostDetail,
    PostRow,
    PreviewPayoutBatch,
    Published,
    PublishPost,
    Refunded,
    RefundOrder,
    SeatReport,
)
from .tokens import Tokens

_HERE: Final = Path(__file__).parent
_EDITORS: Final = ["editor", "admin"]
_REFUNDERS: Final = ["editor", "staff", "admin"]
_PAYERS: Final = ["staff", "admin"]

ROLES: Final = ("viewer", "editor", "staff", "admin")
SCOPES: Final = {
    "posts:read": ["listPosts", "getPost"],
    "posts:write": ["publishPost"],
    "orders:read": ["listOrders"],
    "orders:write": ["refundOrder"],
    "payouts:read": ["listPayoutBatches"],
    "payouts:write": ["previewPayoutBatch"],
    "admin:seats": ["seatReport"],
}

registry: Final = Registry()


# The facts that policies judge. A row of another organisation is not loaded: it is as absent as no row.


async def post_facts(input: PublishPost, ctx: Context[Db]) -> Post | None:
    return await queries.post_facts(ctx.resources, ctx.principal.org, input.postId)


async def order_facts(input: RefundOrder, ctx: Context[Db]) -> Order | None:
    return await queries.order_facts(ctx.resources, ctx.principal.org, input.orderId)


async def batch_facts(input: PreviewPayoutBatch, ctx: Context[Db]) -> PayoutBatch | None:
    return await queries.batch_facts(ctx.resources, ctx.principal.org, input.batchId)


# Posts.


@registry.query(policy=can("post:read"), mcp=expose("Posts of your organisation, by id", title="List posts"))
async def listPosts(input: ListPosts, ctx: Context[Db]) -> list[PostRow]:
    return await queries.posts(ctx.resources, ctx.principal.org, input)


@registry.query(
    policy=can("post:read"), mcp=expose("One post with its text", title="Read a post"), single=True
)
async def getPost(input: GetPost, ctx: Context[Db]) -> PostDetail | None:
    return await queries.post(ctx.resources, ctx.principal.org, input.postId)


@registry.action(
    policy=can("post:publish", resource=post_facts),
    mcp=expose("Publish a draft post", visible_to=_EDITORS, title="Publish a post"),
    idempotent=True,
    path="posts/publish",
)
async def publishPost(input: PublishPost, ctx: Context[Db]) -> Published:
    published = await queries.publish(ctx.resources, ctx.principal.org, input.postId, ctx.now)
    if published is None:  # somebody else was faster, after the policy was asked
        cause = f"`{input.postId}` is no draft any more"
        raise ActionError("X_POST_CHANGED", cause, "read the post again with getPost")
    return published


# Orders.


@registry.query(
    policy=can("order:read"),
    mcp=expose(
        "Orders of your organisation, amounts in minor units", visible_to=_REFUNDERS, title="List orders"
    ),
)
async def listOrders(input: ListOrders, ctx: Context[Db]) -> list[OrderRow]:
    return await queries.orders(ctx.resources, ctx.principal.org, input)


@registry.action(
    policy=can("order:refund", resource=order_facts),
    mcp=expose("Refund an order or a part of it", visible_to=_REFUNDERS, title="Refund an order"),
    path="orders/refund",
)
async def refundOrder(input: RefundOrder, ctx: Context[Db]) -> Refunded:
    refunded = await queries.refund(ctx.resources, ctx.principal.org, input, ctx.principal.id, ctx.now)
    if refunded is None:  # another refund was faster, after the policy was asked
        cause = f"less than {input.amountMinor} minor units are left of `{input.orderId}` by now"
        raise ActionError("X_ORDER_CHANGED", cause, "read `refundableMinor` again with listOrders")
    return refunded


# Payouts.


@registry.query(
    policy=can("payout:read"),
    mcp=expose("Payout batches, the newest period first", visible_to=_PAYERS, title="List payout batches"),
)
async def listPayoutBatches(input: ListPayoutBatches, ctx: Context[Db]) -> list[PayoutBatchRow]:
    return await queries.batches(ctx.resources, ctx.principal.org, input)


@registry.action(
    policy=can("payout:prepare", resource=batch_facts),
    mcp=expose(
        "Show what an open batch would pay to whom", visible_to=_PAYERS, title="Preview a payout batch"
    ),
    destructive=False,
    path="payouts/preview",
)
async def previewPayoutBatch(input: PreviewPayoutBatch, ctx: Context[Db]) -> PayoutPreview:
    preview = await queries.preview(ctx.resources, ctx.principal.org, input.batchId)
    if preview is None:
        cause = f"`{input.batchId}` is gone"
        raise ActionError("X_BATCH_CHANGED", cause, "read the batches again with listPayoutBatches")
    return preview


# The organisation.


async def seat_report(ctx: Context[Db]) -> SeatReport:
    report = await queries.seats(ctx.resources, ctx.principal.org)
    if report is None:
        raise ActionError("X_ORG_UNKNOWN", "this caller's organisation is not known", "ask the account owner")
    return report


async def read_org_export(ctx: Context[Db]) -> OrgExport | None:
    return await queries.export(ctx.resources, ctx.principal.org)


org_export: Final = resource(
    "postly://org/export", "orgExport", "Your organisation in numbers", read_org_export, visible_to=["admin"]
)
summarize: Final = prompt(
    _HERE / "prompts" / "summarize.v1.md",
    description="Summarise a post for the newsletter",
    visible_to=_EDITORS,
)


def confirming(dsn: str, keys: SealKeys) -> tuple[Registry, Action]:
    """Return what is declared above, and the action by which people confirm refunds, on a database."""
    whole = Registry()
    for each in registry.actions:
        whole.add(each)
    store = postgres_confirmation_store(dsn)
    decide = mcp_confirmations(tools=["refundOrder"], store=store, permission="order:confirm", keys=keys)
    return whole, whole.add(decide)


def postly(
    dsn: str,
    tokens: Tokens,
    *,
    keys: SealKeys | None = None,
    on_audit: Callable[[Event], object] | None = None,
    rate_limits: Limits | None = DEFAULT,
) -> App:
    """Return the app on a database whose tables are prepared.

    Without ``keys`` it makes one for as long as it lives: what waited before can then only be rejected.
    """
    declared, decide = confirming(dsn, keys or SealKeys.read(new_seal_key("demo")))

    def lifespan() -> AbstractAsyncContextManager[Db]:
        return open_db(dsn)

    return define_app_mcp(
        declared,
        name="postly",
        version="1",
        include="exposed",
        tools={
            "seatReport": tool(
                "Seats used, remaining and the plan's limit. Read-only",
                seat_report,
                policy="org:administer",
                destructive=False,
                visible_to=["admin"],
                title="Report seats",
            )
        },
        resources=[org_export],
        prompts=[summarize],
        scopes=SCOPES,
        confirmations=decide,
        roles=ROLES,
        policies_dir=_HERE / "policies",
        instructions="Postly: posts, orders and payouts of one organisation. Amounts are in minor units.",
        resolve_token=tokens.resolve,
        on_audit=on_audit,
        lifespan=lifespan,
        rate_limits=rate_limits,
    )
