-- +goose Up

-- What people were told of a budget, once for each share of each limit: warnings,
-- and that the limit is reached (share 100). A notice that asks carries the buttons
-- by which an admin decides; its id is all that they carry.
CREATE TABLE budget_notices (
    id              text        PRIMARY KEY,
    team_id         text        NOT NULL,
    scope           text        NOT NULL CHECK (scope IN ('workspace', 'channel', 'project', 'person', 'thread')),
    key             text        NOT NULL,
    period          text        NOT NULL CHECK (period IN ('day', 'week', 'month')),
    period_start    date        NOT NULL,
    limit_micro_usd bigint      NOT NULL,
    share           int         NOT NULL CHECK (share BETWEEN 1 AND 100),
    spent_micro_usd bigint      NOT NULL,
    thread_id       bigint      NOT NULL REFERENCES threads,
    created_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (team_id, scope, key, period, period_start, limit_micro_usd, share)
);

-- What an admin decided about a notice, once: the limit is raised for the period,
-- or the work goes on with a cheaper model until its end, or it stays as it is.
CREATE TABLE budget_decisions (
    notice_id text        PRIMARY KEY REFERENCES budget_notices,
    decision  text        NOT NULL CHECK (decision IN ('raise', 'model', 'leave')),
    micro_usd bigint      NOT NULL DEFAULT 0,
    model     text        NOT NULL DEFAULT '',
    by_user   text        NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    CHECK ((decision = 'raise') = (micro_usd > 0)),
    CHECK ((decision = 'model') = (model <> ''))
);

-- +goose StatementBegin
CREATE FUNCTION budget_decisions_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what was decided about a budget is never changed: % refused', TG_OP;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER budget_decisions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON budget_decisions
    FOR EACH STATEMENT EXECUTE FUNCTION budget_decisions_append_only();

-- +goose Down
DROP TABLE budget_decisions, budget_notices;
DROP FUNCTION budget_decisions_append_only;
