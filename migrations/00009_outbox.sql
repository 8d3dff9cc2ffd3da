-- +goose Up

-- What people must see and have not been shown yet: written by the transaction that
-- causes it, sent by whoever is alive, and deleted when Slack has it. A row says which
-- rows of the books it is about, and is rendered from them when it is sent. body is what
-- no other row has: how a turn ended, as JSON (turn), a sentence (left, given up, said,
-- whisper) or a mark (mark).
CREATE TABLE outbox (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text        NOT NULL CHECK (kind IN ('turn', 'left', 'given up', 'card', 'wait', 'budget', 'mark', 'said', 'whisper')),
    team_id    text        NOT NULL,
    thread_id  bigint      REFERENCES threads,
    turn_id    bigint      REFERENCES turns,
    card_id    text        REFERENCES approvals,
    inbox_id   bigint      REFERENCES inbox,
    notice_id  text        REFERENCES budget_notices,
    -- Whom a whisper is for, and where; a thread has a row.
    channel_id text        NOT NULL DEFAULT '',
    thread_ts  text        NOT NULL DEFAULT '',
    user_id    text        NOT NULL DEFAULT '',
    body       text        NOT NULL DEFAULT '',
    -- Who sends it, a process of a replica, and until when nobody else does.
    replica    text        NOT NULL DEFAULT '',
    process    text        NOT NULL DEFAULT '',
    held_until timestamptz NOT NULL,
    tries      int         NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((kind IN ('turn', 'left', 'given up')) = (turn_id IS NOT NULL)),
    CHECK ((kind = 'card') = (card_id IS NOT NULL)),
    CHECK ((kind IN ('wait', 'mark')) <= (inbox_id IS NOT NULL)),
    CHECK ((kind = 'budget') = (notice_id IS NOT NULL)),
    CHECK ((kind = 'whisper') = (user_id <> '')),
    CHECK ((kind = 'whisper') = (thread_id IS NULL)),
    CHECK ((kind = 'whisper') = (channel_id <> ''))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX outbox_card ON outbox (card_id) WHERE card_id IS NOT NULL;
CREATE INDEX outbox_thread ON outbox (thread_id, id) WHERE kind IN ('turn', 'left', 'given up', 'mark', 'said');

-- +goose Down

DROP TABLE outbox;
