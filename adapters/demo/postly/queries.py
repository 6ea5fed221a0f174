"""Every SQL statement of Postly's tools. Each one names the organisation it is asked for.

Knows no caller, no tool and no policy. An organisation of `None` matches no row.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, LiteralString

from .db import Db, fetch
from .models import (
    ListOrders,
    ListPayoutBatches,
    ListPosts,
    Order,
    OrderRow,
    OrgExport,
    PayoutBatch,
    PayoutBatchRow,
    PayoutLine,
    PayoutPreview,
    Post,
    PostDetail,
    PostRow,
    Published,
    Refunded,
    RefundOrder,
    SeatReport,
)

Org = str | None

# Posts.


async def post_facts(db: Db, org: Org, post: str) -> Post | None:
    """Return what policies judge of a post."""
    statement: LiteralString = """
        select id, org, status = 'published' as published
        from postly.posts where org = %(org)s and id = %(id)s"""
    return await db.one(Post, statement, {"org": org, "id": post})


async def posts(db: Db, org: Org, wanted: ListPosts) -> list[PostRow]:
    """Return posts by id."""
    statement: LiteralString = """
        select id, title, author, status from postly.posts
        where org = %(org)s and %(status)s in ('any', status) order by id limit %(limit)s"""
    return await db.all(PostRow, statement, {"org": org, "status": wanted.status, "limit": wanted.limit})


async def post(db: Db, org: Org, post: str) -> PostDetail | None:
    """Return one post with its body."""
    statement: LiteralString = """
        select id, title, author, body, status, published_at as "publishedAt"
        from postly.posts where org = %(org)s and id = %(id)s"""
    return await db.one(PostDetail, statement, {"org": org, "id": post})


async def publish(db: Db, org: Org, post: str, now: datetime) -> Published | None:
    """Publish a draft; return `None` when it is no draft any more."""
    statement: LiteralString = """
        update postly.posts set published_at = %(now)s
        where org = %(org)s and id = %(id)s and published_at is null
        returning id, true as published, published_at as "publishedAt\""""
    return await db.one(Published, statement, {"org": org, "id": post, "now": now})


# Orders.


async def order_facts(db: Db, org: Org, order: str) -> Order | None:
    """Return what policies judge of an order."""
    statement: LiteralString = """
        select id, org, total_minor - refunded_minor as "refundableMinor"
        from postly.orders where org = %(org)s and id = %(id)s"""
    return await db.one(Order, statement, {"org": org, "id": order})


_ORDERS: Final = """
    select id, customer, currency, total_minor as "totalMinor",
           total_minor - refunded_minor as "refundableMinor",
           status, created_at as "createdAt"
    from postly.orders
    where org = %(org)s and %(status)s in ('any', status) and total_minor > %(above)s
    """
_ORDER_BY: Final[dict[str, LiteralString]] = {
    "createdAt": "order by created_at, id",
    "-createdAt": "order by created_at desc, id",
    "totalMinor": "order by total_minor, id",
    "-totalMinor": "order by total_minor desc, id",
}


async def orders(db: Db, org: Org, wanted: ListOrders) -> list[OrderRow]:
    """Return orders, filtered and sorted as asked."""
    statement: LiteralString = _ORDERS + _ORDER_BY[wanted.sort] + " limit %(limit)s"
    asked = {"org": org, "status": wanted.status_eq, "above": wanted.totalMinor_gt, "limit": wanted.limit}
    return await db.all(OrderRow, statement, asked)


async def refund(db: Db, org: Org, wanted: RefundOrder, agent: str, now: datetime) -> Refunded | None:
    """Refund a part of an order; return `None` when less than that is left of it by now."""
    asked = {"org": org, "id": wanted.orderId, "amount": wanted.amountMinor, "note": wanted.note}
    async with db.transaction() as connection:
        taken = await fetch(
            connection,
            Refunded,
            """
            update postly.orders set refunded_minor = refunded_minor + %(amount)s
            where org = %(org)s and id = %(id)s and %(amount)s <= total_minor - refunded_minor
            returning id as "orderId", currency, %(amount)s::bigint as "amountMinor",
                      total_minor - refunded_minor as "refundableMinor\"""",
            asked,
        )
        if not taken:
            return None
        await connection.execute(
            """
            insert into postly.refunds (org, order_id, amount_minor, note, agent, created_at)
            values (%(org)s, %(id)s, %(amount)s, %(note)s, %(agent)s, %(now)s)""",
            {**asked, "agent": agent, "now": now},
        )
        return taken[0]


# Payouts.


async def batch_facts(db: Db, org: Org, batch: str) -> PayoutBatch | None:
    """Return what policies judge of a payout batch."""
    statement: LiteralString = """
        select id, org, status from postly.payout_batches where org = %(org)s and id = %(id)s"""
    return await db.one(PayoutBatch, statement, {"org": org, "id": batch})


_BATCHES: Final = """
    select b.id, b.period, b.currency, b.status, count(p.person) as payouts,
           coalesce(sum(p.amount_minor), 0)::bigint as "totalMinor"
    from postly.payout_batches b
    left join postly.payouts p on p.org = b.org and p.batch_id = b.id
    """


async def batches(db: Db, org: Org, wanted: ListPayoutBatches) -> list[PayoutBatchRow]:
    """Return payout batches, the newest period first."""
    statement: LiteralString = (
        _BATCHES
        + """where b.org = %(org)s and %(status)s in ('any', b.status)
        group by b.org, b.id order by b.period desc, b.id limit %(limit)s"""
    )
    return await db.all(
        PayoutBatchRow, statement, {"org": org, "status": wanted.status, "limit": wanted.limit}
    )


async def preview(db: Db, org: Org, batch: str) -> PayoutPreview | None:
    """Return what a batch would pay to whom. Changes nothing."""
    asked = {"org": org, "id": batch}
    head_of: LiteralString = _BATCHES + "where b.org = %(org)s and b.id = %(id)s group by b.org, b.id"
    lines_of: LiteralString = """
        select person, amount_minor as "amountMinor" from postly.payouts
        where org = %(org)s and batch_id = %(id)s order by person"""
    head = await db.one(PayoutBatchRow, head_of, asked)
    if head is None:
        return None
    lines = await db.all(PayoutLine, lines_of, asked)
    total = sum(line.amountMinor for line in lines)
    return PayoutPreview(
        id=head.id, period=head.period, currency=head.currency, totalMinor=total, lines=lines
    )


# The organisation.


async def seats(db: Db, org: Org) -> SeatReport | None:
    """Return how many seats of the plan are used."""
    statement: LiteralString = """
        select o.org, o.plan, o.seat_limit as "limit", count(p.id) as used,
               o.seat_limit - count(p.id) as remaining
        from postly.orgs o left join postly.people p on p.org = o.org
        where o.org = %(org)s group by o.org"""
    return await db.one(SeatReport, statement, {"org": org})


async def export(db: Db, org: Org) -> OrgExport | None:
    """Return what there is of an organisation, in numbers."""
    statement: LiteralString = """
        select o.org, o.name,
               (select count(*) from postly.people p where p.org = o.org) as people,
               (select count(*) from postly.posts p where p.org = o.org) as posts,
               (select count(*) from postly.orders r where r.org = o.org) as orders
        from postly.orgs o where o.org = %(org)s"""
    return await db.one(OrgExport, statement, {"org": org})
