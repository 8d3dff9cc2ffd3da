-- +goose Up

-- What a project's repository brings for agents, by kind (commands, agents, skills), as it was
-- seen, and what an admin has decided about it. The newest trusted row of a kind is used.
CREATE TABLE trust (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project    text        NOT NULL,
    kind       text        NOT NULL,
    sha256     bytea       NOT NULL CHECK (length(sha256) = 32),
    files      jsonb       NOT NULL, -- contents by path
    seen_at    timestamptz NOT NULL DEFAULT now(),
    status     text        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'trusted', 'refused', 'replaced')),
    decided_by text        NOT NULL DEFAULT '',
    decided_at timestamptz,
    CHECK ((status IN ('trusted', 'refused')) = (decided_at IS NOT NULL))
);
CREATE INDEX trust_project ON trust (project, kind, id);
CREATE UNIQUE INDEX trust_pending ON trust (project, kind) WHERE status = 'pending';

-- +goose Down

DROP TABLE trust;
