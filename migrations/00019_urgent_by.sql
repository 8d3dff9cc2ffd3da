-- +goose Up

-- Of a prompt with urgent_at, urgent_by is the person who has sent it before what waits with
-- it. What was heard of channels is one row for a workspace (see heard). Both hold whether
-- step 10 was applied before the column was added to it, or after.
ALTER TABLE inbox ADD COLUMN IF NOT EXISTS urgent_by text NOT NULL DEFAULT '';
DROP TABLE IF EXISTS channels_heard;

-- +goose Down
CREATE TABLE channels_heard (
    team_id       text        NOT NULL,
    channel_id    text        NOT NULL,
    heard_ts      text        NOT NULL,
    claimed_until timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (team_id, channel_id)
);
ALTER TABLE inbox DROP COLUMN urgent_by;
