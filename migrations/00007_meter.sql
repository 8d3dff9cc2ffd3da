-- +goose Up

-- The calls of the model that are under way, from before they leave until they are
-- booked: the row is deleted in the transaction that writes the ledger's. What it
-- holds is what the provider has told so far, and what budgets have to count until
-- the rest is known:
--
--   micro_usd           by the last usage that the provider sent
--   reserved_micro_usd  the most that the call is expected to cost
--   bound_micro_usd     what the provider may bill beyond micro_usd if nothing more is
--                       heard of the call
--   rate                what decides the price beside the model and the tokens, such as
--                       'fast'; empty is the ordinary rate
--
-- replica and lease_epoch say who makes the call. A row whose lease nobody holds any
-- more is booked by whoever finds it.
CREATE TABLE calls (
    id                    uuid        PRIMARY KEY,
    team_id               text        NOT NULL,
    channel_id            text        NOT NULL,
    thread_id             bigint      NOT NULL,
    project               text        NOT NULL,
    user_id               text        NOT NULL,
    session_id            uuid        NOT NULL,
    epoch                 int         NOT NULL,
    turn_id               bigint      NOT NULL REFERENCES turns,
    replica               text        NOT NULL,
    lease_epoch           bigint      NOT NULL,
    model                 text        NOT NULL,
    rate                  text        NOT NULL DEFAULT '',
    request_id            text        NOT NULL DEFAULT '',
    started_at            timestamptz NOT NULL,
    first_byte_at         timestamptz,
    input_tokens          bigint      NOT NULL DEFAULT 0,
    output_tokens         bigint      NOT NULL DEFAULT 0,
    cache_read_tokens     bigint      NOT NULL DEFAULT 0,
    cache_write_5m_tokens bigint      NOT NULL DEFAULT 0,
    cache_write_1h_tokens bigint      NOT NULL DEFAULT 0,
    web_searches          bigint      NOT NULL DEFAULT 0,
    micro_usd             bigint      NOT NULL DEFAULT 0,
    contract_micro_usd    bigint,
    priced                boolean     NOT NULL DEFAULT true,
    reserved_micro_usd    bigint      NOT NULL CHECK (reserved_micro_usd >= 0),
    bound_micro_usd       bigint      NOT NULL CHECK (bound_micro_usd >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Two kinds of entries more.
--
--   call  a call of the model, also one that failed (0 micro-USD). ended_at is NULL of
--         a call whose end nobody saw; status is the answer's, 0 without one; complete
--         says that the provider told the whole usage, and bound_micro_usd what it may
--         have billed beyond it (0 of a complete call). priced is false where the list
--         had no price for the model: it was booked at the list's fallback.
--   end   that a turn has ended (turns is 1), or that a process was asked between
--         turns (turns is 0): total_before and total_after are the CLI's own running
--         total, in micro-USD, where its last such entry of the epoch left it and now;
--         NULL where there was no process left to tell. It costs nothing: it is the
--         second witness of the calls since the entry before.
--
-- A correction may refer to a call (corrects), once for each cause: 'price', the call
-- had no price and has one now; 'late', its end was seen after it had been booked
-- without. Its figures are differences, its bound_micro_usd too.
ALTER TABLE ledger
    DROP CONSTRAINT ledger_kind_check,
    ALTER COLUMN total_before DROP NOT NULL,
    ALTER COLUMN total_after DROP NOT NULL,
    ADD COLUMN call_id uuid UNIQUE,
    ADD COLUMN rate text,
    ADD COLUMN request_id text,
    ADD COLUMN started_at timestamptz,
    ADD COLUMN first_byte_at timestamptz,
    ADD COLUMN ended_at timestamptz,
    ADD COLUMN status int,
    ADD COLUMN complete boolean,
    ADD COLUMN priced boolean,
    ADD COLUMN bound_micro_usd bigint,
    ADD COLUMN corrects uuid REFERENCES ledger (call_id),
    ADD COLUMN cause text CHECK (cause IN ('price', 'late')),
    ADD CONSTRAINT ledger_kind_check CHECK (kind IN ('turn', 'estimate', 'correction', 'call', 'end')),
    ADD CONSTRAINT ledger_totals CHECK (CASE kind
        WHEN 'turn' THEN num_nulls(total_before, total_after) = 0
        WHEN 'estimate' THEN num_nulls(total_before, total_after) = 0
        WHEN 'call' THEN num_nonnulls(total_before, total_after) = 0
        ELSE num_nulls(total_before, total_after) <> 1 END),
    ADD CONSTRAINT ledger_call CHECK (CASE kind
        WHEN 'call' THEN num_nulls(call_id, rate, request_id, started_at, status, complete, priced, bound_micro_usd) = 0
            AND bound_micro_usd >= 0 AND NOT (complete AND (bound_micro_usd > 0 OR ended_at IS NULL)) AND turns = 0
        ELSE num_nonnulls(call_id, rate, request_id, started_at, first_byte_at, ended_at, status, complete, priced) = 0 END),
    ADD CONSTRAINT ledger_end CHECK (kind <> 'end' OR (micro_usd = 0 AND input_tokens = 0 AND output_tokens = 0
        AND cache_read_tokens = 0 AND cache_write_5m_tokens = 0 AND cache_write_1h_tokens = 0 AND web_searches = 0)),
    ADD CONSTRAINT ledger_correction CHECK (num_nulls(corrects, cause) <> 1
        AND (kind = 'correction' OR corrects IS NULL) AND (kind IN ('call', 'correction') OR bound_micro_usd IS NULL));

-- A turn's calls are summed up when it ends.
DROP INDEX ledger_thread;
CREATE INDEX ledger_thread ON ledger (thread_id, turn_id);
CREATE UNIQUE INDEX ledger_corrects ON ledger (corrects, cause) WHERE corrects IS NOT NULL;
-- What reports name beside their sums.
CREATE INDEX ledger_cut ON ledger (team_id, booked_on) WHERE bound_micro_usd <> 0;
CREATE INDEX ledger_unpriced ON ledger (team_id, booked_on) WHERE NOT priced;

-- +goose Down

-- Money that was spent is not forgotten for an older schema.
-- +goose StatementBegin
DO $$
DECLARE
    n bigint := (SELECT count(*) FROM ledger WHERE kind IN ('call', 'end') OR corrects IS NOT NULL);
BEGIN
    IF n > 0 THEN
        RAISE EXCEPTION 'the ledger has % entries of the meter, which the schema before cannot hold', n;
    END IF;
END
$$;
-- +goose StatementEnd
-- No other kinds are left to look for, and totals may stay empty, as corrections have
-- none.
DROP TABLE calls;
DROP INDEX ledger_thread, ledger_cut, ledger_unpriced, ledger_corrects;
CREATE INDEX ledger_thread ON ledger (thread_id);
ALTER TABLE ledger
    DROP CONSTRAINT IF EXISTS ledger_kind_check,
    DROP CONSTRAINT IF EXISTS ledger_totals,
    DROP CONSTRAINT IF EXISTS ledger_call,
    DROP CONSTRAINT IF EXISTS ledger_end,
    DROP CONSTRAINT IF EXISTS ledger_correction,
    DROP COLUMN corrects,
    DROP COLUMN cause,
    DROP COLUMN call_id,
    DROP COLUMN rate,
    DROP COLUMN request_id,
    DROP COLUMN started_at,
    DROP COLUMN first_byte_at,
    DROP COLUMN ended_at,
    DROP COLUMN status,
    DROP COLUMN complete,
    DROP COLUMN priced,
    DROP COLUMN bound_micro_usd,
    ADD CONSTRAINT ledger_kind_check CHECK (kind IN ('turn', 'estimate', 'correction')) NOT VALID;
