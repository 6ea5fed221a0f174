-- What waits for a person, and what became of it: nonsuch.SQL_MCP_CONFIRMATIONS_TABLE.

create table if not exists nonsuch_confirmations (
  id text primary key,
  server text not null,
  owner text not null,
  org text,
  actor text not null,
  actor_kind text not null check (actor_kind in ('agent', 'human')),
  person text,
  tool text not null,
  fingerprint text not null,
  sealed bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  updated_at timestamptz not null,
  status text not null check (status in
    ('pending', 'approved', 'rejected', 'running', 'ran', 'refused', 'expired', 'interrupted')),
  version bigint not null,
  decided_by text,
  decided_at timestamptz
);
create unique index if not exists nonsuch_confirmations_open on nonsuch_confirmations (owner, tool, fingerprint)
  where status in ('pending', 'approved', 'rejected', 'running');
create index if not exists nonsuch_confirmations_listed on nonsuch_confirmations (server, org, created_at);
create index if not exists nonsuch_confirmations_over on nonsuch_confirmations (expires_at);
