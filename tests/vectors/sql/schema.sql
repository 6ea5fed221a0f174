-- The database that the statements of corpus.jsonl speak of. PostgreSQL 16 or later, as a superuser, in an empty
-- database. Three roles ask it: agent_ro (NOLOGIN, SELECT only), agent_login (LOGIN, SELECT only, in no role),
-- app_owner (LOGIN, owns the tables, no superuser).
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname='agent_ro') THEN CREATE ROLE agent_ro NOLOGIN; END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname='agent_login') THEN CREATE ROLE agent_login LOGIN; END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname='app_owner') THEN CREATE ROLE app_owner LOGIN; END IF;
END $$;
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname='dbl') THEN CREATE ROLE dbl LOGIN PASSWORD 'demo'; END IF; END $$;
--   dbl          LOGIN with a password (dblink asks for one), member of app_owner
GRANT app_owner TO dbl;
GRANT agent_ro TO app_owner;

CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS dblink;
CREATE EXTENSION IF NOT EXISTS postgres_fdw;
CREATE EXTENSION IF NOT EXISTS file_fdw;
CREATE EXTENSION IF NOT EXISTS tablefunc;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS lo;
CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
CREATE EXTENSION IF NOT EXISTS pg_prewarm;
CREATE EXTENSION IF NOT EXISTS pg_buffercache;
CREATE EXTENSION IF NOT EXISTS pageinspect;
CREATE EXTENSION IF NOT EXISTS amcheck;
CREATE EXTENSION IF NOT EXISTS pgrowlocks;
CREATE EXTENSION IF NOT EXISTS pgstattuple;
CREATE EXTENSION IF NOT EXISTS pg_visibility;
CREATE EXTENSION IF NOT EXISTS pg_freespacemap;
CREATE EXTENSION IF NOT EXISTS pg_walinspect;
CREATE EXTENSION IF NOT EXISTS pg_surgery;
CREATE EXTENSION IF NOT EXISTS tsm_system_rows;
CREATE EXTENSION IF NOT EXISTS tsm_system_time;
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS fuzzystrmatch;
CREATE EXTENSION IF NOT EXISTS ltree;
CREATE EXTENSION IF NOT EXISTS citext;

CREATE SCHEMA IF NOT EXISTS stock AUTHORIZATION app_owner;
GRANT CREATE ON SCHEMA public TO app_owner;
SET ROLE app_owner;

CREATE TYPE address_t AS (street text, city text, zip text);
CREATE TYPE level_t AS ENUM ('low','mid','high');
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email text, region text, address address_t, tags text[], created_at timestamptz DEFAULT now());
CREATE TABLE products (id int PRIMARY KEY, sku text, title text, price numeric(10,2), attrs jsonb, tags text[]);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, status text, total numeric(10,2), placed_at timestamptz, notes text, shipped boolean);
CREATE TABLE order_lines (order_id int REFERENCES orders, line_no int, product_id int REFERENCES products, qty int, price numeric(10,2), PRIMARY KEY(order_id,line_no));
CREATE TABLE categories (id int PRIMARY KEY, parent_id int, name text);
CREATE TABLE articles (id int PRIMARY KEY, lang text, title text, body text, tsv tsvector GENERATED ALWAYS AS (to_tsvector('english', coalesce(title,'')||' '||coalesce(body,''))) STORED, embedding vector(3));
CREATE TABLE events (id int PRIMARY KEY, kind text, payload jsonb, at timestamptz, during tstzrange, doc text);
-- column names that a keyword or prefix scan confuses with calls
CREATE TABLE sensors (id int PRIMARY KEY, pg_sleep_for_seconds int, update_date date, delete_flag boolean, set2 text, insert_count int, "drop" text, call_center text,
  copy_of int, nextval_hint text, lock_version int, "grant" text, created_by text, execute_at timestamptz, pg_notify_channel text, txid_current_seen bigint, lo_import_ref int,
  "select" text, "into" text, truncated boolean, listen_port int, "for" text, merge_key text, dblink_name text, set_config_done boolean, alter_ego text, explain_text text, analyze_me boolean,
  "pg_read_file" text, reset_token text, "do" text, vacuum_bags int, pg_advisory_note text, comment text, begin_at date, commit_hash text, rollback_plan text, "end" text);
CREATE TABLE stock.items (id int PRIMARY KEY, product_id int, qty int, "update" text);
CREATE TABLE audit_log (id bigserial PRIMARY KEY, who text, what text);
CREATE TABLE secret_notes (id int PRIMARY KEY, note text);
CREATE TABLE victim_t (id int);
CREATE SEQUENCE order_seq;
CREATE INDEX orders_brin ON orders USING brin(placed_at);
CREATE INDEX products_gin ON products USING gin(attrs);

INSERT INTO customers SELECT i, 'name '||i, 'user'||i||'@example.test', (ARRAY['north','south','east','west'])[1+i%4], ROW('street '||i,'city '||i%5,'z'||i)::address_t, ARRAY['t'||i%3,'vip'], timestamptz '2026-01-01' + i*interval '1 day' FROM generate_series(1,40) i;
INSERT INTO products SELECT i, 'SKU-'||i, 'product '||i, i*1.5, jsonb_build_object('color',(ARRAY['red','green'])[1+i%2],'size',i,'dims',jsonb_build_object('w',i,'h',i+1)), ARRAY['p'||i%4] FROM generate_series(1,30) i;
INSERT INTO orders SELECT i, 1+i%40, (ARRAY['new','paid','sent','void'])[1+i%4], i*3.25, timestamptz '2026-03-01' + i*interval '6 hours', 'note '||i, i%2=0 FROM generate_series(1,120) i;
INSERT INTO order_lines SELECT o, l, 1+(o+l)%30, l, l*2.5 FROM generate_series(1,120) o, generate_series(1,3) l;
INSERT INTO categories VALUES (1,NULL,'root'),(2,1,'tools'),(3,1,'parts'),(4,2,'hand'),(5,2,'power'),(6,5,'drills');
INSERT INTO articles(id,lang,title,body,embedding) SELECT i,'en','Title '||i,'the quick brown fox number '||i||' jumps over pumps and valves', ('['||i||','||i%3||',1]')::vector FROM generate_series(1,25) i;
INSERT INTO events SELECT i,(ARRAY['click','view'])[1+i%2], jsonb_build_object('n',i,'items',jsonb_build_array(jsonb_build_object('q',i),jsonb_build_object('q',i+1))), timestamptz '2026-05-01'+i*interval '1 hour', tstzrange(timestamptz '2026-05-01'+i*interval '1 hour', timestamptz '2026-05-01'+(i+2)*interval '1 hour'), '<e><n>'||i||'</n></e>' FROM generate_series(1,30) i;
INSERT INTO sensors(id,pg_sleep_for_seconds,update_date,delete_flag,set2,insert_count,"drop",call_center) SELECT i,i,date '2026-06-01'+i,i%2=0,'s'||i,i,'d'||i,'c'||i FROM generate_series(1,10) i;
INSERT INTO stock.items SELECT i, i, i*10, 'u'||i FROM generate_series(1,10) i;
INSERT INTO secret_notes VALUES (1,'the secret value 9f2c');
INSERT INTO victim_t VALUES (1);

-- honest helpers
CREATE FUNCTION price_with_tax(p numeric) RETURNS numeric LANGUAGE sql IMMUTABLE RETURN p * 1.2;
CREATE FUNCTION customer_total(cid int) RETURNS numeric LANGUAGE sql STABLE AS $$ SELECT coalesce(sum(total),0) FROM orders WHERE customer_id = cid $$;
CREATE FUNCTION full_label(c customers) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT c.id || ': ' || c.name $$;
-- functions with side effects
CREATE FUNCTION log_touch(t text) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN INSERT INTO audit_log(who,what) VALUES (current_user, t); RETURN 1; END $$;
CREATE FUNCTION log_touch_definer(t text) RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path=public AS $$ BEGIN INSERT INTO audit_log(who,what) VALUES (current_user, t); RETURN 1; END $$;
CREATE FUNCTION ring(ch text) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM pg_notify(ch,'x'); RETURN 1; END $$;
CREATE FUNCTION ring_stable(ch text) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN PERFORM pg_notify(ch,'x'); PERFORM pg_advisory_lock(7001); RETURN 1; END $$;
CREATE FUNCTION lock_immutable(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM pg_advisory_lock(k); RETURN k; END $$;
CREATE FUNCTION run_text(q text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$ DECLARE r text; BEGIN EXECUTE q INTO r; RETURN r; END $$;
CREATE FUNCTION run_stmt(q text) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN EXECUTE q; RETURN 1; END $$;
CREATE FUNCTION run_text_definer(q text) RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$ DECLARE r text; BEGIN EXECUTE q INTO r; RETURN r; END $$;
CREATE FUNCTION loop_write(t text) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT dblink_exec('host=127.0.0.1 port=55461 dbname=guardlab user=dbl password=demo', 'INSERT INTO audit_log(who,what) VALUES (''loop'','''||t||''')') $$;
CREATE FUNCTION ticket(k int DEFAULT 1, n bigint DEFAULT nextval('order_seq')) RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT n $$;
CREATE FUNCTION ticket_lock(k bigint DEFAULT 1, n text DEFAULT pg_try_advisory_lock(7002)::text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT k + length(n) $$;
CREATE FUNCTION touch_row(c customers) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM pg_advisory_lock(7003); RETURN 1; END $$;
CREATE FUNCTION op_lock(a text, b text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM pg_advisory_lock(7004); RETURN true; END $$;
CREATE OPERATOR @#@ (LEFTARG=text, RIGHTARG=text, FUNCTION=op_lock);
CREATE FUNCTION op_pre(a text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM pg_advisory_lock(7005); RETURN true; END $$;
CREATE OPERATOR #@# (RIGHTARG=text, FUNCTION=op_pre);
CREATE TYPE lockkey AS (k int);
CREATE FUNCTION int_to_lockkey(i int) RETURNS lockkey LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM pg_advisory_lock(7006); RETURN ROW(i)::lockkey; END $$;
CREATE CAST (int AS lockkey) WITH FUNCTION int_to_lockkey(int);
CREATE FUNCTION check_lock(t text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM pg_advisory_lock(7007); RETURN true; END $$;
CREATE DOMAIN locked_text AS text CHECK (check_lock(VALUE));
CREATE FUNCTION agg_step(s int, x int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM pg_advisory_lock(7008); RETURN coalesce(s,0)+x; END $$;
CREATE AGGREGATE sum_lock(int) (SFUNC=agg_step, STYPE=int, INITCOND='0');
CREATE PROCEDURE do_touch(t text) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit_log(who,what) VALUES (current_user,t); END $$;
CREATE VIEW v_orders AS SELECT o.id, c.name, o.total FROM orders o JOIN customers c ON c.id=o.customer_id;
CREATE VIEW v_next AS SELECT nextval('order_seq') AS n;
CREATE VIEW v_locks AS SELECT pg_try_advisory_lock(7009) AS l;
CREATE VIEW v_touch AS SELECT log_touch_definer('from view') AS l;
CREATE VIEW v_orders_upd AS SELECT id, status FROM orders;
CREATE MATERIALIZED VIEW mv_totals AS SELECT customer_id, sum(total) t FROM orders GROUP BY 1;
-- search_path shadow: a better match than pg_catalog.lower(text) for citext-like arguments
CREATE FUNCTION stock.lower(t text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM pg_advisory_lock(7010); RETURN t; END $$;
CREATE FUNCTION public.abs(t text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM pg_advisory_lock(7011); RETURN t; END $$;
CREATE FUNCTION tbl_lock(n int) RETURNS TABLE(x int) LANGUAGE plpgsql VOLATILE AS $$ BEGIN PERFORM pg_advisory_lock(7012); RETURN QUERY SELECT generate_series(1,n); END $$;
RESET ROLE;

CREATE SERVER loop_srv FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '55461', dbname 'guardlab');
CREATE USER MAPPING FOR PUBLIC SERVER loop_srv OPTIONS (user 'app_owner', password_required 'false');
GRANT USAGE ON FOREIGN SERVER loop_srv TO PUBLIC;
CREATE FOREIGN TABLE far_orders (id int, status text, total numeric) SERVER loop_srv OPTIONS (schema_name 'public', table_name 'orders');
CREATE FOREIGN TABLE far_touch (n bigint) SERVER loop_srv OPTIONS (schema_name 'public', table_name 'v_next');
CREATE SERVER files_srv FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE etc_hosts (line text) SERVER files_srv OPTIONS (filename '/etc/hostname', format 'text');

-- the SELECT-only grants
GRANT USAGE ON SCHEMA public, stock TO agent_ro, agent_login;
GRANT SELECT ON ALL TABLES IN SCHEMA public, stock TO agent_ro, agent_login;
REVOKE ALL ON secret_notes FROM agent_ro, agent_login;
-- one large object owned by app_owner, one readable
SET ROLE app_owner;
SELECT lo_from_bytea(990001, 'hello large object');
GRANT SELECT ON LARGE OBJECT 990001 TO agent_ro, agent_login;
RESET ROLE;
