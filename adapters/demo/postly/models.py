"""The values of Postly: what its tools take and answer, and the facts its policies judge. Knows no SQL."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

Id = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Words = Annotated[str, Field(pattern=r"^[^\x00]*$")]  # PostgreSQL holds every character but this one
MinorUnits = Annotated[int, Field(description="An amount in minor units: 1250 is 12.50")]
Limit = Annotated[int, Field(ge=1, le=100)]


# The facts of what is acted on: Cedar sees these as entities of the same name.


class Post(BaseModel):
    id: str
    org: str
    published: bool


class Order(BaseModel):
    id: str
    org: str
    refundableMinor: int


class PayoutBatch(BaseModel):
    id: str
    org: str
    status: str


# Inputs.


class PublishPost(BaseModel):
    postId: Annotated[Id, Field(examples=["post-2"])]
    notify: bool = Field(default=False, description="Tell the subscribers")


class ListPosts(BaseModel):
    status: Literal["draft", "published", "any"] = "any"
    limit: Limit = 50


class GetPost(BaseModel):
    postId: Annotated[Id, Field(examples=["post-1"])]


class RefundOrder(BaseModel):
    orderId: Annotated[Id, Field(examples=["order-1"])]
    amountMinor: Annotated[
        int, Field(gt=0, le=10**12, description="The amount in minor units: 1250 is 12.50")
    ]
    note: Annotated[Words, Field(max_length=500)] = ""


class ListOrders(BaseModel):
    status_eq: Literal["paid", "partly-refunded", "refunded", "any"] = "any"
    totalMinor_gt: Annotated[int, Field(ge=0, le=10**12)] = 0
    sort: Literal["createdAt", "-createdAt", "totalMinor", "-totalMinor"] = "-createdAt"
    limit: Limit = 50


class PreviewPayoutBatch(BaseModel):
    batchId: Annotated[Id, Field(examples=["batch-2"])]


class ListPayoutBatches(BaseModel):
    status: Literal["open", "paid", "any"] = "any"
    limit: Limit = 50


# Answers.


class Published(BaseModel):
    id: str
    published: bool
    publishedAt: datetime


class PostRow(BaseModel):
    id: str
    title: str
    author: str
    status: Literal["draft", "published"]


class PostDetail(PostRow):
    body: str
    publishedAt: datetime | None


class OrderRow(BaseModel):
    id: str
    customer: str
    currency: str
    totalMinor: MinorUnits
    refundableMinor: MinorUnits
    status: Literal["paid", "partly-refunded", "refunded"]
    createdAt: datetime


class Refunded(BaseModel):
    orderId: str
    currency: str
    amountMinor: MinorUnits
    refundableMinor: MinorUnits


class PayoutBatchRow(BaseModel):
    id: str
    period: str
    currency: str
    status: Literal["open", "paid"]
    totalMinor: MinorUnits
    payouts: int


class PayoutLine(BaseModel):
    person: str
    amountMinor: MinorUnits


class PayoutPreview(BaseModel):
    id: str
    period: str
    currency: str
    totalMinor: MinorUnits
    lines: list[PayoutLine]


class SeatReport(BaseModel):
    org: str
    plan: str
    used: int
    remaining: int
    limit: int


class OrgExport(BaseModel):
    org: str
    name: str
    people: int
    posts: int
    orders: int
