-- +goose Up

-- What happened, in order, as rows chained by hash: each holds the hash of the one
-- before, so that no row can be changed, left out or moved without all later
-- hashes changing too. seq has no gaps. details is JSON, kept as the text that
-- was hashed. The trigger fills in seq, at and both hashes: nobody can choose them.
CREATE TABLE audit (
    seq         bigint      PRIMARY KEY,
    at          timestamptz NOT NULL,
    kind        text        NOT NULL,
    team_id     text        NOT NULL DEFAULT '',
    actor       text        NOT NULL DEFAULT '',
    thread_id   bigint      NOT NULL DEFAULT 0,
    turn_id     bigint      NOT NULL DEFAULT 0,
    approval_id text        NOT NULL DEFAULT '',
    details     text        NOT NULL DEFAULT '{}',
    prev_hash   bytea       NOT NULL,
    hash        bytea       NOT NULL,
    CHECK (json_typeof(details::json) = 'object')
);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_thread ON audit (thread_id, seq);
CREATE INDEX audit_config ON audit (team_id, seq) WHERE kind = 'config';
CREATE INDEX audit_turn ON audit (turn_id, seq) WHERE turn_id <> 0;
CREATE INDEX audit_tool_use ON audit ((details::json ->> 'tool_use')) WHERE kind = 'tool_result';
CREATE INDEX audit_approval ON audit (approval_id, seq) WHERE approval_id <> '';

-- The last row of each day (UTC) that has passed. Exported and kept elsewhere, an
-- anchor proves the chain up to it even against somebody who owns this database.
CREATE TABLE audit_anchors (
    day  date   PRIMARY KEY,
    seq  bigint NOT NULL,
    hash bytea  NOT NULL
);

-- +goose StatementBegin
CREATE FUNCTION audit_part(t text) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT int4send(octet_length(convert_to(t, 'UTF8'))) || convert_to(t, 'UTF8')
$$;
CREATE FUNCTION audit_hash(a audit) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT sha256(a.prev_hash || int8send(a.seq) || int8send((extract(epoch FROM a.at) * 1000000)::bigint)
        || audit_part(a.kind) || audit_part(a.team_id) || audit_part(a.actor)
        || int8send(a.thread_id) || int8send(a.turn_id) || audit_part(a.approval_id) || audit_part(a.details))
$$;
-- The lock makes the chain one line over all replicas. It is held until the
-- commit: a transaction's audit rows are its last statement.
-- It runs as its owner: nobody else may write anchors.
CREATE FUNCTION audit_chain() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    last audit;
BEGIN
    PERFORM pg_advisory_xact_lock(7222305415120001);
    SELECT * INTO last FROM audit ORDER BY seq DESC LIMIT 1;
    NEW.seq := COALESCE(last.seq, 0) + 1;
    NEW.at := GREATEST(clock_timestamp(), last.at);
    NEW.prev_hash := COALESCE(last.hash, decode(repeat('00', 32), 'hex'));
    NEW.hash := audit_hash(NEW);
    IF (last.at AT TIME ZONE 'UTC')::date < (NEW.at AT TIME ZONE 'UTC')::date THEN
        INSERT INTO audit_anchors (day, seq, hash) VALUES ((last.at AT TIME ZONE 'UTC')::date, last.seq, last.hash)
        ON CONFLICT DO NOTHING; -- VerifyAudit tells of one that somebody put there
    END IF;
    RETURN NEW;
END
$$;
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit is append-only: % of % refused', TG_OP, TG_TABLE_NAME;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER audit_chain BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_chain();
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
CREATE TRIGGER audit_anchors_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_anchors
    FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();

-- +goose Down
DROP TABLE audit_anchors, audit CASCADE;
DROP FUNCTION audit_chain, audit_append_only, audit_part;
