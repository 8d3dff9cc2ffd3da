-- +goose Up

-- The messages that we have posted, or are about to post, so that any process edits them
-- and none posts them twice. subject is the id of what a message shows: of a turn, of a
-- card, of a thread (place: where it stands in the queue for a session; queue: what waits
-- in it), of a prompt in the inbox (wait: what it waits for) or of a budget's notice. part
-- counts a turn's messages from 0. audience is the person who was sent a copy of a card, or
-- the channel that was told of a budget; it is empty for what stands in the thread itself.
-- ts is empty until Slack has the message.
CREATE TABLE posts (
    kind       text        NOT NULL CHECK (kind IN ('turn', 'card', 'place', 'queue', 'wait', 'budget')),
    subject    text        NOT NULL,
    part       int         NOT NULL DEFAULT 0,
    audience   text        NOT NULL DEFAULT '',
    channel_id text        NOT NULL,
    ts         text        NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The same as subject, so that nothing is noted of what is not in the database.
    turn_id    bigint      GENERATED ALWAYS AS (CASE WHEN kind = 'turn' THEN subject::bigint END) STORED REFERENCES turns,
    card_id    text        GENERATED ALWAYS AS (CASE WHEN kind = 'card' THEN subject END) STORED REFERENCES approvals,
    thread_id  bigint      GENERATED ALWAYS AS (CASE WHEN kind IN ('place', 'queue') THEN subject::bigint END) STORED REFERENCES threads,
    inbox_id   bigint      GENERATED ALWAYS AS (CASE WHEN kind = 'wait' THEN subject::bigint END) STORED REFERENCES inbox,
    notice_id  text        GENERATED ALWAYS AS (CASE WHEN kind = 'budget' THEN subject END) STORED REFERENCES budget_notices,
    PRIMARY KEY (kind, subject, part, audience)
);

INSERT INTO posts (kind, subject, part, channel_id, ts)
SELECT 'turn', turn_id::text, page, channel_id, ts FROM messages WHERE turn_id IS NOT NULL
UNION ALL
SELECT 'card', approval_id, 0, channel_id, ts FROM messages WHERE approval_id IS NOT NULL AND page = 0;

INSERT INTO posts (kind, subject, audience, channel_id, ts, created_at)
SELECT 'card', card_id, user_id, channel_id, ts, created_at FROM card_copies;

-- A place whose message was about to be posted is not known by its mark any more.
INSERT INTO posts (kind, subject, channel_id, ts)
SELECT 'place', t.id::text, t.channel_id, p.message_ts FROM places p JOIN threads t ON t.id = p.thread_id WHERE NOT starts_with(p.message_ts, 'mark:')
UNION ALL
SELECT 'queue', id::text, channel_id, queue_ts FROM threads WHERE queue_ts <> ''
UNION ALL
SELECT 'wait', w.inbox_id::text, t.channel_id, w.message_ts FROM budget_waits w JOIN threads t ON t.id = w.thread_id WHERE w.message_ts <> '';

-- The first one in the channel of the notice's thread stands in the thread.
INSERT INTO posts (kind, subject, audience, part, channel_id, ts)
SELECT 'budget', m.notice_id, CASE WHEN m.channel_id = t.channel_id AND m.nth = 0 THEN '' ELSE m.channel_id END, m.nth, m.channel_id, m.ts
FROM (SELECT *, row_number() OVER (PARTITION BY notice_id, channel_id ORDER BY ts) - 1 AS nth FROM budget_messages) m
JOIN budget_notices n ON n.id = m.notice_id JOIN threads t ON t.id = n.thread_id;

DROP TABLE messages, card_copies, places, budget_messages;
ALTER TABLE threads DROP COLUMN queue_ts;
ALTER TABLE budget_waits DROP COLUMN message_ts;

-- +goose Down

CREATE TABLE messages (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel_id  text   NOT NULL,
    ts          text   NOT NULL,
    turn_id     bigint REFERENCES turns,
    approval_id text   REFERENCES approvals,
    page        int    NOT NULL,
    CHECK ((turn_id IS NULL) <> (approval_id IS NULL)),
    UNIQUE (turn_id, page),
    UNIQUE (approval_id, page)
);
CREATE TABLE card_copies (
    card_id    text        NOT NULL REFERENCES approvals,
    user_id    text        NOT NULL,
    channel_id text        NOT NULL,
    ts         text        NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (card_id, user_id)
);
CREATE TABLE places (
    thread_id  bigint PRIMARY KEY REFERENCES threads,
    message_ts text   NOT NULL
);
CREATE TABLE budget_messages (
    notice_id  text NOT NULL REFERENCES budget_notices,
    channel_id text NOT NULL,
    ts         text NOT NULL,
    PRIMARY KEY (notice_id, channel_id, ts)
);
ALTER TABLE threads ADD COLUMN queue_ts text NOT NULL DEFAULT '';
ALTER TABLE budget_waits ADD COLUMN message_ts text NOT NULL DEFAULT '';

INSERT INTO messages (channel_id, ts, turn_id, approval_id, page)
SELECT channel_id, ts, turn_id, card_id, part FROM posts WHERE kind IN ('turn', 'card') AND audience = '' AND ts <> '' ORDER BY ts;
INSERT INTO card_copies (card_id, user_id, channel_id, ts, created_at)
SELECT card_id, audience, channel_id, ts, created_at FROM posts WHERE kind = 'card' AND audience <> '';
INSERT INTO places (thread_id, message_ts) SELECT thread_id, ts FROM posts WHERE kind = 'place' AND ts <> '';
INSERT INTO budget_messages (notice_id, channel_id, ts) SELECT notice_id, channel_id, ts FROM posts WHERE kind = 'budget' AND ts <> '';
UPDATE threads t SET queue_ts = p.ts FROM posts p WHERE p.kind = 'queue' AND p.thread_id = t.id;
UPDATE budget_waits w SET message_ts = p.ts FROM posts p WHERE p.kind = 'wait' AND p.inbox_id = w.inbox_id;

DROP TABLE posts;
