-- Rows to try things on. A row that is there already stays as it is.
insert into postly.orgs (org, name, plan, seat_limit) values
    ('acme', 'Acme Publishing', 'team', 10),
    ('globex', 'Globex Media', 'starter', 3)
on conflict do nothing;

insert into postly.people (org, id, name, role) values
    ('acme', 'vera', 'Vera Lind', 'viewer'),
    ('acme', 'eli', 'Eli Novak', 'editor'),
    ('acme', 'edda', 'Edda Brandt', 'editor'),
    ('acme', 'stan', 'Stan Okoye', 'staff'),
    ('acme', 'ada', 'Ada Moreau', 'admin'),
    ('globex', 'gil', 'Gil Santos', 'editor'),
    ('globex', 'greta', 'Greta Holm', 'admin')
on conflict do nothing;

insert into postly.posts (org, id, author, title, body, published_at) values
    ('acme', 'post-1', 'eli', 'Hello from Acme', 'The first post of the season.', '2026-03-02 09:00+00'),
    ('acme', 'post-2', 'edda', 'Autumn catalogue', 'Forty new titles, and one old favourite.', null),
    ('acme', 'post-3', 'edda', 'Notes on paper', 'Why the new stock feels different.', null),
    ('globex', 'post-9', 'gil', 'Globex plans', 'Not for other organisations to read.', null)
on conflict do nothing;

insert into postly.orders (org, id, customer, currency, total_minor, refunded_minor, created_at) values
    ('acme', 'order-1', 'Bookshop North', 'EUR', 4000, 0, '2026-03-03 10:15+00'),
    ('acme', 'order-2', 'Library West', 'EUR', 25000, 0, '2026-03-04 11:30+00'),
    ('acme', 'order-3', 'Reader Club', 'EUR', 9900, 9900, '2026-03-05 16:45+00'),
    ('globex', 'order-9', 'Cinema South', 'USD', 120000, 0, '2026-03-06 08:00+00')
on conflict do nothing;

insert into postly.payout_batches (org, id, period, currency, status) values
    ('acme', 'batch-1', '2026-02', 'EUR', 'paid'),
    ('acme', 'batch-2', '2026-03', 'EUR', 'open'),
    ('globex', 'batch-9', '2026-03', 'USD', 'open')
on conflict do nothing;

insert into postly.payouts (org, batch_id, person, amount_minor) values
    ('acme', 'batch-1', 'eli', 32000),
    ('acme', 'batch-2', 'eli', 27550),
    ('acme', 'batch-2', 'edda', 41025),
    ('globex', 'batch-9', 'gil', 18000)
on conflict do nothing;
