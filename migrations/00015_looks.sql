-- +goose Up

-- Until when all that people posted has reached the inbox, as far as Slack delivers: a
-- replica that hears moves it on every few seconds, and what was posted while nobody did
-- is looked for since then. A workspace gets its row when a bot hears it for the first time.
CREATE TABLE heard (
    team_id text        PRIMARY KEY,
    until   timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What is to be looked through in Slack for posts that were not delivered, since when: a
-- thread, or all that the bot is in, where channel_id is empty. A row belongs to the replica
-- that looks until next_try, and goes when that is through; asked counts how often it was
-- wanted, so that what was wanted meanwhile is not taken for done.
CREATE TABLE looks (
    team_id    text        NOT NULL,
    channel_id text        NOT NULL DEFAULT '',
    thread_ts  text        NOT NULL DEFAULT '',
    since      timestamptz NOT NULL,
    asked      int         NOT NULL DEFAULT 1,
    tries      int         NOT NULL DEFAULT 0,
    next_try   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (team_id, channel_id, thread_ts)
);

-- Two kinds of words more. waits: whether a post's author sees that it waits, as its row says
-- when the word is sent; until it is a prompt it has no thread. queue: one for each thread in
-- which a message says what waits there, from before it is posted until it is taken away, so
-- that whoever takes it over from a dead process puts that right.
ALTER TABLE outbox
    DROP CONSTRAINT outbox_kind_check,
    DROP CONSTRAINT outbox_check5,
    ADD CONSTRAINT outbox_kind_check CHECK (kind IN ('turn', 'left', 'given up', 'card', 'wait', 'budget', 'mark', 'said', 'whisper', 'waits', 'queue')),
    ADD CONSTRAINT outbox_threads CHECK ((kind IN ('whisper', 'waits')) = (thread_id IS NULL)),
    ADD CONSTRAINT outbox_posts CHECK ((kind = 'waits') <= (inbox_id IS NOT NULL));
CREATE UNIQUE INDEX outbox_queue ON outbox (thread_id) WHERE kind = 'queue';

-- Whatever begins or ends that a post is marked as waiting, its author is to see it.
-- +goose StatementBegin
CREATE FUNCTION inbox_waits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (kind, team_id, inbox_id, held_until) VALUES ('waits', NEW.team_id, NEW.id, now());
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER inbox_begins_to_wait AFTER INSERT ON inbox FOR EACH ROW WHEN (NEW.marked) EXECUTE FUNCTION inbox_waits();
CREATE TRIGGER inbox_waits AFTER UPDATE OF marked, state ON inbox FOR EACH ROW
    WHEN ((OLD.marked AND OLD.state <> 'done') <> (NEW.marked AND NEW.state <> 'done')) EXECUTE FUNCTION inbox_waits();

-- +goose Down
DROP TRIGGER inbox_waits ON inbox;
DROP TRIGGER inbox_begins_to_wait ON inbox;
DROP FUNCTION inbox_waits;
DROP INDEX outbox_queue;
DELETE FROM outbox WHERE kind IN ('waits', 'queue');
ALTER TABLE outbox
    DROP CONSTRAINT IF EXISTS outbox_kind_check,
    DROP CONSTRAINT IF EXISTS outbox_threads,
    DROP CONSTRAINT IF EXISTS outbox_posts,
    ADD CONSTRAINT outbox_kind_check CHECK (kind IN ('turn', 'left', 'given up', 'card', 'wait', 'budget', 'mark', 'said', 'whisper')) NOT VALID,
    ADD CONSTRAINT outbox_check5 CHECK ((kind = 'whisper') = (thread_id IS NULL)) NOT VALID;
DROP TABLE looks, heard;
