-- +goose Up

-- A running turn that was put aside while people decide: it has no process, and no
-- replica looks at its thread while it is asleep. The transaction that ends one of its
-- approvals wakes it.
CREATE TABLE turn_rests (
    turn_id bigint      PRIMARY KEY REFERENCES turns,
    asleep  boolean     NOT NULL DEFAULT true,
    since   timestamptz NOT NULL DEFAULT now()
);

-- How many of a turn's earlier attempts ended by being put aside: they killed no process.
ALTER TABLE turns ADD COLUMN rests int NOT NULL DEFAULT 0;

-- The message in its thread that says where a prompt stands in the queue for a session,
-- while it says so.
CREATE TABLE places (
    thread_id  bigint PRIMARY KEY REFERENCES threads,
    message_ts text   NOT NULL
);

-- +goose Down
DROP TABLE places, turn_rests;
ALTER TABLE turns DROP COLUMN rests;
