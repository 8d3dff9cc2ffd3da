-- +goose Up

-- Pull requests that threads have opened, as the forge had them when it was asked last. checks
-- and reviews are lists of {name, state, url} and {author, verdict}; discussions counts the
-- review threads that are not resolved. requester is the Slack user whose prompt opened it,
-- approved_by those who allowed that; merged_for is the Slack user whose prompt merged it here,
-- merged_by the account that the forge names. woken_for is the commit whose failed checks or
-- reviews have become a prompt by themselves, rounds how many commits in a row have.
CREATE TABLE pulls (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread_id     bigint      NOT NULL REFERENCES threads,
    project       text        NOT NULL,
    repository    text        NOT NULL,
    number        int         NOT NULL,
    url           text        NOT NULL,
    title         text        NOT NULL,
    branch        text        NOT NULL,
    base          text        NOT NULL,
    head          text        NOT NULL,
    state         text        NOT NULL CHECK (state IN ('open', 'merged', 'closed')),
    draft         boolean     NOT NULL,
    mergeable     text        NOT NULL DEFAULT 'unknown',
    checks        jsonb       NOT NULL DEFAULT '[]',
    reviews       jsonb       NOT NULL DEFAULT '[]',
    discussions   int         NOT NULL DEFAULT 0,
    opened_by     text        NOT NULL DEFAULT '',
    requester     text        NOT NULL,
    approved_by   text[]      NOT NULL DEFAULT '{}',
    merged_commit text        NOT NULL DEFAULT '',
    merged_by     text        NOT NULL DEFAULT '',
    merged_for    text        NOT NULL DEFAULT '',
    woken_for     text        NOT NULL DEFAULT '',
    rounds        int         NOT NULL DEFAULT 0,
    problem       text        NOT NULL DEFAULT '',
    created_at    timestamptz NOT NULL DEFAULT now(),
    changed_at    timestamptz NOT NULL DEFAULT now(),
    checked_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (thread_id, repository, number)
);

ALTER TABLE posts DROP CONSTRAINT posts_kind_check;
ALTER TABLE posts ADD CONSTRAINT posts_kind_check CHECK (kind IN ('turn', 'card', 'place', 'queue', 'wait', 'budget', 'pull'));
ALTER TABLE posts ADD COLUMN pull_id bigint GENERATED ALWAYS AS (CASE WHEN kind = 'pull' THEN subject::bigint END) STORED REFERENCES pulls;

-- +goose Down
DELETE FROM posts WHERE kind = 'pull';
ALTER TABLE posts DROP COLUMN pull_id;
ALTER TABLE posts DROP CONSTRAINT IF EXISTS posts_kind_check;
ALTER TABLE posts ADD CONSTRAINT posts_kind_check CHECK (kind IN ('turn', 'card', 'place', 'queue', 'wait', 'budget')) NOT VALID;
DROP TABLE pulls;
