-- +goose Up

-- People's own accounts at forges: login and account are the forge's, sealed is the token,
-- encrypted with the key that key names, bound to team_id, user_id and host. dead_at is when the
-- forge took the token no more.
CREATE TABLE connections (
    team_id    text        NOT NULL,
    user_id    text        NOT NULL,
    host       text        NOT NULL,
    account    bigint      NOT NULL,
    login      text        NOT NULL,
    key        text        NOT NULL,
    sealed     bytea       NOT NULL,
    expires_at timestamptz,
    dead_at    timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (team_id, user_id, host),
    UNIQUE (team_id, host, account)
);

-- +goose Down

DROP TABLE connections;
