-- +goose Up

-- What people think of a turn's answer, each once: the last word counts. reason is theirs,
-- secrets excepted, and may be empty.
CREATE TABLE feedback (
    turn_id bigint      NOT NULL REFERENCES turns,
    user_id text        NOT NULL,
    good    boolean     NOT NULL,
    reason  text        NOT NULL DEFAULT '',
    at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (turn_id, user_id)
);

-- +goose Down

DROP TABLE feedback;
