-- +goose Up

-- Copies of the files in which Claude Code keeps a session, so that any replica can go
-- on with it: the session's own (agent is empty), and those of its subagents (agent is
-- the file's name without its ending). A copy holds the first bytes of what the next
-- process may go on with, whole lines, in pieces that follow each other; sha256 is that of
-- all of them. lease_epoch is that of the lease under which it was written last. full:
-- it has reached its limit, and nothing is added any more.
CREATE TABLE transcripts (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread_id   bigint      NOT NULL REFERENCES threads ON DELETE CASCADE,
    session_id  uuid        NOT NULL REFERENCES sessions ON DELETE CASCADE,
    agent       text        NOT NULL DEFAULT '',
    bytes       bigint      NOT NULL CHECK (bytes >= 0),
    sha256      bytea       NOT NULL CHECK (octet_length(sha256) = 32),
    lease_epoch bigint      NOT NULL,
    "full"      boolean     NOT NULL DEFAULT false,
    saved_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (session_id, agent)
) WITH (fillfactor = 50);
CREATE INDEX transcripts_thread ON transcripts (thread_id);

-- A piece of a transcript: so many bytes from an offset, compressed. The last one is
-- replaced as the transcript grows.
CREATE TABLE transcript_pieces (
    transcript_id bigint NOT NULL REFERENCES transcripts ON DELETE CASCADE,
    at_byte       bigint NOT NULL CHECK (at_byte >= 0),
    bytes         int    NOT NULL CHECK (bytes > 0),
    zstd          bytea  NOT NULL,
    PRIMARY KEY (transcript_id, at_byte)
);
ALTER TABLE transcript_pieces ALTER COLUMN zstd SET STORAGE EXTERNAL; -- it is compressed

-- What a turn answered last, for a session that cannot be resumed: the one that takes its
-- place (recalls) is told what was said in it.
ALTER TABLE turns ADD COLUMN answer text NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN recalls boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE sessions DROP COLUMN recalls;
ALTER TABLE turns DROP COLUMN answer;
DROP TABLE transcript_pieces, transcripts;
