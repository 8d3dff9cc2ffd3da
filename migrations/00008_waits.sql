-- +goose Up

-- A prompt that waits for a budget, with the notice that admins decide about. While it
-- is asleep and the budget's period (until) has not ended, no replica looks at it: it
-- is woken by a decision, or when a bot starts, whose configuration may be another.
-- Whether it waits still is told by its row in the inbox. message_ts is the message in
-- its thread that says what it waits for.
CREATE TABLE budget_waits (
    inbox_id   bigint      PRIMARY KEY REFERENCES inbox,
    thread_id  bigint      NOT NULL REFERENCES threads,
    notice_id  text        NOT NULL REFERENCES budget_notices,
    until      timestamptz NOT NULL,
    asleep     boolean     NOT NULL DEFAULT true,
    message_ts text        NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX budget_waits_thread ON budget_waits (thread_id) WHERE asleep;
CREATE INDEX budget_waits_notice ON budget_waits (notice_id);

-- Where a notice was posted, so that any replica can edit it when it is decided.
CREATE TABLE budget_messages (
    notice_id  text NOT NULL REFERENCES budget_notices,
    channel_id text NOT NULL,
    ts         text NOT NULL,
    PRIMARY KEY (notice_id, channel_id, ts)
);

-- A turn that a budget stopped offers to go on. Whoever takes the offer is written
-- here, once.
ALTER TABLE turns
    ADD COLUMN over_budget  boolean NOT NULL DEFAULT false,
    ADD COLUMN continued_by text    NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE turns DROP COLUMN continued_by, DROP COLUMN over_budget;
DROP TABLE budget_messages, budget_waits;
