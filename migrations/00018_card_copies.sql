-- +goose Up

-- The copies of a card that people were sent as direct messages, so that they can be
-- edited with it. ts is empty until the copy is posted.
CREATE TABLE card_copies (
    card_id    text        NOT NULL REFERENCES approvals,
    user_id    text        NOT NULL,
    channel_id text        NOT NULL,
    ts         text        NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (card_id, user_id)
);

-- +goose Down

DROP TABLE card_copies;
