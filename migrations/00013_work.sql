-- +goose Up

-- The replica in whose data folder the thread's workspace is; empty where that was not
-- written down yet.
ALTER TABLE threads ADD COLUMN workspace_replica text NOT NULL DEFAULT '';

-- What threads have made and their projects' forges do not have, so that another machine
-- can go on with it: the commits that the thread's branch and its saved state (a commit
-- whose tree is the working tree) were, and the git packs that hold what is needed for
-- them beyond the project's repository, in the order in which they are read. left_out
-- names, for people, what could not be saved, epoch is the lease's under which it was
-- written.
CREATE TABLE work (
    thread_id bigint      PRIMARY KEY REFERENCES threads,
    epoch     bigint      NOT NULL,
    branch    text        NOT NULL CHECK (branch ~ '^([0-9a-f]{40}|[0-9a-f]{64})?$'),
    saved     text        NOT NULL CHECK (saved ~ '^([0-9a-f]{40}|[0-9a-f]{64})?$'),
    packs     uuid[]      NOT NULL DEFAULT '{}',
    bytes     bigint      NOT NULL DEFAULT 0,
    left_out  text        NOT NULL DEFAULT '',
    saved_at  timestamptz NOT NULL
);

-- The packs, in pieces of a bounded size. Nothing of them can be compressed further.
CREATE TABLE work_packs (
    thread_id bigint NOT NULL REFERENCES threads,
    pack      uuid   NOT NULL,
    part      int    NOT NULL,
    data      bytea  NOT NULL,
    PRIMARY KEY (thread_id, pack, part)
);
ALTER TABLE work_packs ALTER COLUMN data SET STORAGE EXTERNAL;

-- +goose Down
DROP TABLE work_packs, work;
ALTER TABLE threads DROP COLUMN workspace_replica;
