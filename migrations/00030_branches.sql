-- +goose Up

-- What a thread's branch is called after its number, and the branch that it starts from;
-- empty is none, and as its project has it.
ALTER TABLE threads
    ADD COLUMN slug text NOT NULL DEFAULT '',
    ADD COLUMN base text NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE threads DROP COLUMN slug, DROP COLUMN base;
