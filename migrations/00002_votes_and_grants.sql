-- +goose Up

-- What a person said to an approval. Allowing needs as many people as its quorum,
-- one denial decides. Somebody who allowed may still deny while it is pending.
CREATE TABLE votes (
    approval_id text        NOT NULL REFERENCES approvals,
    user_id     text        NOT NULL,
    allow       boolean     NOT NULL,
    via         text        NOT NULL,
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (approval_id, user_id, allow)
);

-- A standing permission that an approver gave with a decision: "always allow".
-- It covers what pattern covers, or the one input with input_sha256, of one tool,
-- within its scope: project always, and the session, thread or channel too when
-- the scope is that narrow.
CREATE TABLE grants (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id      text        NOT NULL,
    project      text        NOT NULL,
    scope        text        NOT NULL CHECK (scope IN ('session', 'thread', 'channel', 'project')),
    session_id   uuid        REFERENCES sessions,
    thread_id    bigint      REFERENCES threads,
    channel_id   text,
    tool_name    text        NOT NULL,
    pattern      text        NOT NULL,
    input_sha256 bytea,
    approval_id  text        NOT NULL REFERENCES approvals,
    created_by   text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    revoked_by   text        NOT NULL DEFAULT '',
    revoked_at   timestamptz,
    CHECK ((scope = 'session') = (session_id IS NOT NULL)),
    CHECK ((scope = 'thread') = (thread_id IS NOT NULL)),
    CHECK ((scope = 'channel') = (channel_id IS NOT NULL)),
    CHECK ((pattern = '') = (input_sha256 IS NOT NULL)),
    CHECK ((revoked_at IS NULL) = (revoked_by = '')),
    CHECK (expires_at > created_at)
);
CREATE INDEX grants_live ON grants (team_id, project, tool_name) WHERE revoked_at IS NULL;
ALTER TABLE approvals ADD COLUMN grant_id bigint REFERENCES grants;

-- +goose StatementBegin
CREATE FUNCTION votes_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'votes are never changed: % refused', TG_OP;
END
$$;
CREATE FUNCTION grants_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' THEN
        RAISE EXCEPTION 'grants are never deleted, only revoked';
    END IF;
    IF OLD.revoked_at IS NOT NULL THEN
        RAISE EXCEPTION 'grant % was revoked already', OLD.id;
    END IF;
    NEW.revoked_by := COALESCE(NEW.revoked_by, '');
    IF (OLD.id, OLD.team_id, OLD.project, OLD.scope, OLD.session_id, OLD.thread_id, OLD.channel_id, OLD.tool_name,
        OLD.pattern, OLD.input_sha256, OLD.approval_id, OLD.created_by, OLD.created_at, OLD.expires_at)
       IS DISTINCT FROM
       (NEW.id, NEW.team_id, NEW.project, NEW.scope, NEW.session_id, NEW.thread_id, NEW.channel_id, NEW.tool_name,
        NEW.pattern, NEW.input_sha256, NEW.approval_id, NEW.created_by, NEW.created_at, NEW.expires_at) THEN
        RAISE EXCEPTION 'what grant % allows cannot change', OLD.id;
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER votes_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON votes
    FOR EACH STATEMENT EXECUTE FUNCTION votes_append_only();
CREATE TRIGGER grants_guard BEFORE UPDATE OR DELETE ON grants
    FOR EACH ROW EXECUTE FUNCTION grants_guard();

-- +goose Down
ALTER TABLE approvals DROP COLUMN grant_id;
DROP TABLE grants, votes;
DROP FUNCTION grants_guard, votes_append_only;
