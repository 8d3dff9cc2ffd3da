-- +goose Up

-- An approver may change what a call is about to do before it runs. input stays what the
-- CLI sent; edited_input is what runs instead, written by edited_by, and edits counts how
-- often it was changed. A vote is for the input that stood when it was given. dir is where
-- the call would run, fixed says that its input may not be changed, and touches is what it
-- would touch as far as that was known when it was asked, or changed, as JSON.
ALTER TABLE approvals
    ADD COLUMN dir           text    NOT NULL DEFAULT '',
    ADD COLUMN fixed         boolean NOT NULL DEFAULT false,
    ADD COLUMN touches       text    NOT NULL DEFAULT '',
    ADD COLUMN edits         int     NOT NULL DEFAULT 0,
    ADD COLUMN edited_input  text    NOT NULL DEFAULT '',
    ADD COLUMN edited_sha256 bytea,
    ADD COLUMN edited_by     text    NOT NULL DEFAULT '',
    ADD CONSTRAINT approvals_edited CHECK (
        (edits > 0) = (edited_sha256 IS NOT NULL) AND (edits > 0) = (edited_by <> '') AND (edits > 0) = (edited_input <> ''));
ALTER TABLE votes
    ADD COLUMN edit int NOT NULL DEFAULT 0,
    DROP CONSTRAINT votes_pkey,
    ADD PRIMARY KEY (approval_id, user_id, allow, edit);

-- +goose StatementBegin
CREATE FUNCTION approvals_edits_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.fixed AND NEW.edits > 0 OR OLD.dir <> NEW.dir OR OLD.fixed <> NEW.fixed THEN
        RAISE EXCEPTION 'the input of approval % may not be changed', OLD.id;
    END IF;
    IF (OLD.edits, OLD.edited_input, OLD.edited_sha256, OLD.edited_by, OLD.touches)
       IS NOT DISTINCT FROM (NEW.edits, NEW.edited_input, NEW.edited_sha256, NEW.edited_by, NEW.touches) THEN
        RETURN NEW;
    END IF;
    IF OLD.status <> 'pending' THEN
        RAISE EXCEPTION 'approval % has ended as % already', OLD.id, OLD.status;
    END IF;
    IF NEW.edits <> OLD.edits + 1 OR sha256(convert_to(NEW.edited_input, 'UTF8')) <> NEW.edited_sha256 THEN
        RAISE EXCEPTION 'a change of the input of approval % is counted, with its hash', OLD.id;
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER approvals_edits_guard BEFORE UPDATE ON approvals
    FOR EACH ROW EXECUTE FUNCTION approvals_edits_guard();

-- +goose Down
DROP TRIGGER approvals_edits_guard ON approvals;
DROP FUNCTION approvals_edits_guard;
ALTER TABLE votes DISABLE TRIGGER votes_append_only;
DELETE FROM votes v USING votes o
WHERE o.approval_id = v.approval_id AND o.user_id = v.user_id AND o.allow = v.allow AND o.edit < v.edit;
ALTER TABLE votes ENABLE TRIGGER votes_append_only;
ALTER TABLE votes DROP CONSTRAINT votes_pkey, DROP COLUMN edit, ADD PRIMARY KEY (approval_id, user_id, allow);
ALTER TABLE approvals
    DROP COLUMN edited_by, DROP COLUMN edited_sha256, DROP COLUMN edited_input, DROP COLUMN edits,
    DROP COLUMN touches, DROP COLUMN fixed, DROP COLUMN dir;
