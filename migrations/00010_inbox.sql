-- +goose Up

-- A row of the inbox that cannot be acted on yet waits until next_try. attempts counts
-- the tries that came to nothing, why is the last one's reason, and waits_since the first
-- one's time. Of a row that is 'received', next_try is also how long it belongs to holder,
-- the replica that acts on it: whoever finds it later takes it. Of an open prompt it is
-- when its start is tried again. marked: its author sees by a reaction that it waits.
-- edits counts how often the message was changed meanwhile: what was read before a change
-- is not accepted after it. urgent_at: somebody has sent it before what waits with it.
ALTER TABLE inbox
    ADD COLUMN holder      text        NOT NULL DEFAULT '',
    ADD COLUMN next_try    timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN attempts    int         NOT NULL DEFAULT 0,
    ADD COLUMN waits_since timestamptz,
    ADD COLUMN why         text        NOT NULL DEFAULT '',
    ADD COLUMN marked      boolean     NOT NULL DEFAULT false,
    ADD COLUMN edits       int         NOT NULL DEFAULT 0,
    ADD COLUMN urgent_at   timestamptz;
DROP INDEX inbox_received;
CREATE INDEX inbox_received ON inbox (next_try) WHERE state = 'received';
CREATE INDEX inbox_behind ON inbox (team_id, channel_id, thread_ts, ts) WHERE state = 'received' AND kind = 'message';

-- The message in a thread that says what waits there; empty where there is none.
ALTER TABLE threads ADD COLUMN queue_ts text NOT NULL DEFAULT '';

-- Up to which post a channel was heard, by Slack's ts: what came after it while nobody
-- listened is looked for when somebody does again. Until claimed_until a replica does.
CREATE TABLE channels_heard (
    team_id       text        NOT NULL,
    channel_id    text        NOT NULL,
    heard_ts      text        NOT NULL,
    claimed_until timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (team_id, channel_id)
);

-- +goose Down
DROP TABLE channels_heard;
ALTER TABLE threads DROP COLUMN queue_ts;
DROP INDEX inbox_behind;
DROP INDEX inbox_received;
CREATE INDEX inbox_received ON inbox (id) WHERE state = 'received';
ALTER TABLE inbox
    DROP COLUMN holder,
    DROP COLUMN next_try,
    DROP COLUMN attempts,
    DROP COLUMN waits_since,
    DROP COLUMN why,
    DROP COLUMN marked,
    DROP COLUMN edits,
    DROP COLUMN urgent_at;
