-- The tables of the demo. Money is in minor units (cents). Every key starts with the organisation,
-- so that no row can refer to a row of another one.
create schema if not exists postly;

create table if not exists postly.orgs (
    org        text primary key,
    name       text not null,
    plan       text not null,
    seat_limit integer not null check (seat_limit > 0)
);

create table if not exists postly.people (
    org  text not null references postly.orgs,
    id   text not null,
    name text not null,
    role text not null check (role in ('viewer', 'editor', 'staff', 'admin')),
    primary key (org, id)
);

create table if not exists postly.posts (
    org          text not null,
    id           text not null,
    author       text not null,
    title        text not null,
    body         text not null,
    published_at timestamptz,
    status       text generated always as (case when published_at is null then 'draft' else 'published' end) stored,
    primary key (org, id),
    foreign key (org, author) references postly.people (org, id)
);

create table if not exists postly.orders (
    org            text not null references postly.orgs,
    id             text not null,
    customer       text not null,
    currency       text not null check (currency ~ '^[A-Z]{3}$'),
    total_minor    bigint not null check (total_minor >= 0),
    refunded_minor bigint not null default 0 check (refunded_minor between 0 and total_minor),
    created_at     timestamptz not null,
    status         text generated always as (
        case when refunded_minor = 0 then 'paid' when refunded_minor < total_minor then 'partly-refunded'
             else 'refunded' end) stored,
    primary key (org, id)
);

create table if not exists postly.refunds (
    org          text not null,
    id           bigint generated always as identity,
    order_id     text not null,
    amount_minor bigint not null check (amount_minor > 0),
    note         text not null,
    agent        text not null,
    created_at   timestamptz not null,
    primary key (org, id),
    foreign key (org, order_id) references postly.orders (org, id)
);

create table if not exists postly.payout_batches (
    org      text not null references postly.orgs,
    id       text not null,
    period   text not null,
    currency text not null check (currency ~ '^[A-Z]{3}$'),
    status   text not null check (status in ('open', 'paid')),
    primary key (org, id)
);

create table if not exists postly.payouts (
    org          text not null,
    batch_id     text not null,
    person       text not null,
    amount_minor bigint not null check (amount_minor > 0),
    primary key (org, batch_id, person),
    foreign key (org, batch_id) references postly.payout_batches (org, id),
    foreign key (org, person) references postly.people (org, id)
);
