-- +goose Up

-- The ledger summed up, for reports. A trigger on the ledger keeps the sums, in
-- the statement that writes the entries, and nothing else may: no entry is without
-- its share in them, and no sum without its entries.
--
--   ledger_daily            who, where, on which model: reports about people
--   ledger_monthly          the same by month (its first day), for long periods
--   ledger_channel_daily    both without the people: all other reports
--   ledger_channel_monthly
--   ledger_thread_daily     a thread's days: what it has cost of its life in a period
--   ledger_threads          a thread's whole life: the dearest threads of all
--   ledger_openings         how many threads were opened on a day
--
-- Each column after the key is a sum over the ledger's column of that name; entries
-- counts the rows, and estimated_micro_usd is what of micro_usd is of kind
-- 'estimate'. Rows of the present day are updated often: the fill factors leave
-- room for that in their pages.
CREATE TABLE ledger_sums (
    entries               bigint NOT NULL,
    turns                 bigint NOT NULL,
    approved              bigint NOT NULL,
    input_tokens          bigint NOT NULL,
    output_tokens         bigint NOT NULL,
    cache_read_tokens     bigint NOT NULL,
    cache_write_5m_tokens bigint NOT NULL,
    cache_write_1h_tokens bigint NOT NULL,
    web_searches          bigint NOT NULL,
    micro_usd             bigint NOT NULL,
    estimated_micro_usd   bigint NOT NULL,
    contract_micro_usd    bigint NOT NULL
);

CREATE TABLE ledger_daily (
    team_id    text NOT NULL,
    booked_on  date NOT NULL,
    project    text NOT NULL,
    channel_id text NOT NULL,
    user_id    text NOT NULL,
    model      text NOT NULL,
    LIKE ledger_sums,
    PRIMARY KEY (team_id, booked_on, project, channel_id, user_id, model)
) WITH (fillfactor = 85);
CREATE INDEX ledger_daily_user ON ledger_daily (team_id, user_id, booked_on);

CREATE TABLE ledger_monthly (
    team_id    text NOT NULL,
    booked_on  date NOT NULL CHECK (extract(day FROM booked_on) = 1),
    project    text NOT NULL,
    channel_id text NOT NULL,
    user_id    text NOT NULL,
    model      text NOT NULL,
    LIKE ledger_sums,
    PRIMARY KEY (team_id, booked_on, project, channel_id, user_id, model)
) WITH (fillfactor = 85);
CREATE INDEX ledger_monthly_user ON ledger_monthly (team_id, user_id, booked_on);

CREATE TABLE ledger_channel_daily (
    team_id    text NOT NULL,
    booked_on  date NOT NULL,
    project    text NOT NULL,
    channel_id text NOT NULL,
    model      text NOT NULL,
    LIKE ledger_sums,
    PRIMARY KEY (team_id, booked_on, project, channel_id, model)
) WITH (fillfactor = 70);

CREATE TABLE ledger_channel_monthly (
    team_id    text NOT NULL,
    booked_on  date NOT NULL CHECK (extract(day FROM booked_on) = 1),
    project    text NOT NULL,
    channel_id text NOT NULL,
    model      text NOT NULL,
    LIKE ledger_sums,
    PRIMARY KEY (team_id, booked_on, project, channel_id, model)
) WITH (fillfactor = 70);

CREATE TABLE ledger_thread_daily (
    thread_id  bigint NOT NULL,
    booked_on  date   NOT NULL,
    user_id    text   NOT NULL,
    model      text   NOT NULL,
    team_id    text   NOT NULL,
    project    text   NOT NULL,
    channel_id text   NOT NULL,
    LIKE ledger_sums,
    PRIMARY KEY (thread_id, booked_on, user_id, model)
) WITH (fillfactor = 85);
CREATE INDEX ledger_thread_daily_day ON ledger_thread_daily (team_id, booked_on);
CREATE INDEX ledger_thread_daily_user ON ledger_thread_daily (team_id, user_id, booked_on);

-- first_on and last_on are the first and the last day that the thread has entries
-- on. opened_on is a day that it has entries on too, the one when it had none yet:
-- the first, unless a change of the zone let a later entry fall on a day before.
CREATE TABLE ledger_threads (
    thread_id  bigint PRIMARY KEY,
    team_id    text   NOT NULL,
    project    text   NOT NULL,
    channel_id text   NOT NULL,
    opened_on  date   NOT NULL,
    first_on   date   NOT NULL,
    last_on    date   NOT NULL,
    LIKE ledger_sums
) WITH (fillfactor = 85);
CREATE INDEX ledger_threads_dearest ON ledger_threads (team_id, micro_usd DESC, thread_id);
CREATE INDEX ledger_threads_first ON ledger_threads (team_id, first_on);
CREATE INDEX ledger_threads_life ON ledger_threads USING gist (daterange(first_on, last_on, '[]')) WHERE last_on > first_on;

CREATE TABLE ledger_openings (
    team_id    text   NOT NULL,
    opened_on  date   NOT NULL,
    project    text   NOT NULL,
    channel_id text   NOT NULL,
    threads    bigint NOT NULL,
    PRIMARY KEY (team_id, opened_on, project, channel_id)
) WITH (fillfactor = 70);

DROP TABLE ledger_sums;

-- sum(bigint) is a numeric and slow; this one fails on overflow, as it should.
CREATE AGGREGATE ledger_sum(bigint) (sfunc = int8pl, stype = bigint, initcond = '0', combinefunc = int8pl, parallel = safe);

-- What a turn's end looks up, to count what was allowed.
CREATE INDEX approvals_turn ON approvals (turn_id);

-- ledger_roll_up, written out once per table: it adds the entries of a statement to
-- their sums. Keys are taken in order, tables too, so that concurrent turns wait
-- for each other and never in a circle.
-- +goose StatementBegin
DO $do$
DECLARE
    sums   text[] := '{entries,turns,approved,input_tokens,output_tokens,cache_read_tokens,cache_write_5m_tokens,cache_write_1h_tokens,web_searches,micro_usd,estimated_micro_usd,contract_micro_usd}';
    named  text := array_to_string(sums, ', ');
    added  text := (SELECT string_agg(format('%1$s = r.%1$s + excluded.%1$s', c), ', ') FROM unnest(sums) c);
    rollup record;
    body   text := '';
BEGIN
    -- key makes a row; what else it holds is the same in all entries of that key (of),
    -- or an aggregate (agg) that is merged in a way of its own (merge).
    FOR rollup IN SELECT * FROM (VALUES
        (1, 'ledger_daily', 'team_id, booked_on, project, channel_id, user_id, model', '', '', '', ''),
        (2, 'ledger_monthly', 'team_id, booked_on, project, channel_id, user_id, model', '', '', '', ''),
        (3, 'ledger_channel_daily', 'team_id, booked_on, project, channel_id, model', '', '', '', ''),
        (4, 'ledger_channel_monthly', 'team_id, booked_on, project, channel_id, model', '', '', '', ''),
        (5, 'ledger_thread_daily', 'thread_id, booked_on, user_id, model', ', team_id, project, channel_id', '', '', ''),
        (6, 'ledger_threads', 'thread_id', ', team_id, project, channel_id', 'opened_on, first_on, last_on, ', 'min(booked_on), min(booked_on), max(booked_on), ',
            'first_on = least(r.first_on, excluded.first_on), last_on = greatest(r.last_on, excluded.last_on), ')
    ) AS v (no, name, key, of, agg, agg_value, merge) ORDER BY no LOOP
        body := body || format($sql$
    INSERT INTO %1$s AS r (%2$s%3$s, %5$s%8$s)
    SELECT %4$s%3$s, %6$scount(*), ledger_sum(turns), ledger_sum(approved), ledger_sum(input_tokens), ledger_sum(output_tokens),
        ledger_sum(cache_read_tokens), ledger_sum(cache_write_5m_tokens), ledger_sum(cache_write_1h_tokens), ledger_sum(web_searches),
        ledger_sum(micro_usd), ledger_sum(micro_usd) FILTER (WHERE kind = 'estimate'), ledger_sum(contract_micro_usd)
    FROM fresh GROUP BY %4$s%3$s ORDER BY %4$s
    ON CONFLICT (%2$s) DO UPDATE SET %7$s%9$s;
$sql$, rollup.name, rollup.key, rollup.of,
            CASE WHEN rollup.name LIKE '%_monthly' THEN replace(rollup.key, 'booked_on', 'date_trunc(''month'', booked_on::timestamp)::date') ELSE rollup.key END,
            rollup.agg, rollup.agg_value, rollup.merge, named, added);
    END LOOP;
    -- A thread all of whose entries are new has been opened.
    body := body || $sql$
    INSERT INTO ledger_openings AS r (team_id, opened_on, project, channel_id, threads)
    SELECT t.team_id, t.opened_on, t.project, t.channel_id, count(*)
    FROM (SELECT thread_id, count(*) AS entries FROM fresh GROUP BY thread_id) f
    JOIN ledger_threads t ON t.thread_id = f.thread_id AND t.entries = f.entries
    GROUP BY t.team_id, t.opened_on, t.project, t.channel_id ORDER BY t.team_id, t.opened_on, t.project, t.channel_id
    ON CONFLICT (team_id, opened_on, project, channel_id) DO UPDATE SET threads = r.threads + excluded.threads;
$sql$;
    EXECUTE format('CREATE FUNCTION ledger_roll_up() RETURNS trigger LANGUAGE plpgsql AS %L', E'BEGIN' || body || E'    RETURN NULL;\nEND');
END
$do$;
CREATE FUNCTION ledger_rollup_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- 1 is this trigger alone; an insert into the ledger stands above it as another.
    IF TG_OP IN ('DELETE', 'TRUNCATE') OR pg_trigger_depth() < 2 THEN
        RAISE EXCEPTION '% follows the ledger: % refused', TG_TABLE_NAME, TG_OP;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER ledger_roll_up AFTER INSERT ON ledger
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION ledger_roll_up();
CREATE TRIGGER ledger_rollup_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ledger_daily
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_rollup_guard();
CREATE TRIGGER ledger_rollup_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ledger_monthly
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_rollup_guard();
CREATE TRIGGER ledger_rollup_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ledger_channel_daily
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_rollup_guard();
CREATE TRIGGER ledger_rollup_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ledger_channel_monthly
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_rollup_guard();
CREATE TRIGGER ledger_rollup_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ledger_thread_daily
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_rollup_guard();
CREATE TRIGGER ledger_rollup_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ledger_threads
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_rollup_guard();
CREATE TRIGGER ledger_rollup_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ledger_openings
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_rollup_guard();

-- +goose Down
DROP TRIGGER ledger_roll_up ON ledger;
DROP TABLE ledger_daily, ledger_monthly, ledger_channel_daily, ledger_channel_monthly, ledger_thread_daily, ledger_threads, ledger_openings;
DROP FUNCTION ledger_roll_up, ledger_rollup_guard;
DROP AGGREGATE ledger_sum(bigint);
DROP INDEX approvals_turn;
