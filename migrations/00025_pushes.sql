-- +goose Up

-- What a push would bring to the forge, as it was looked at before people were asked: the
-- commits that an approval of it is for. It is written when the request is, and never again.
ALTER TABLE approvals ADD COLUMN push jsonb;

-- +goose StatementBegin
CREATE FUNCTION approvals_push_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.push IS DISTINCT FROM NEW.push THEN
        RAISE EXCEPTION 'the commits of approval % may not be changed', OLD.id;
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER approvals_push_guard BEFORE UPDATE ON approvals
    FOR EACH ROW EXECUTE FUNCTION approvals_push_guard();

-- +goose Down
DROP TRIGGER approvals_push_guard ON approvals;
DROP FUNCTION approvals_push_guard;
ALTER TABLE approvals DROP COLUMN push;
