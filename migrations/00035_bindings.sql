-- +goose Up

-- The projects of channels that admins have set up in Slack, empty for none any more. deckhand.yaml
-- comes before it.
CREATE TABLE bindings (
    team_id    text        NOT NULL,
    channel_id text        NOT NULL,
    project    text        NOT NULL,
    bound_by   text        NOT NULL,
    bound_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (team_id, channel_id)
);

-- +goose Down

DROP TABLE bindings;
