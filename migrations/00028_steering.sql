-- +goose Up

-- How people want a thread's work done; empty is as its project has it.
ALTER TABLE threads
    ADD COLUMN model  text NOT NULL DEFAULT '',
    ADD COLUMN effort text NOT NULL DEFAULT '',
    ADD COLUMN mode   text NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE threads DROP COLUMN model, DROP COLUMN effort, DROP COLUMN mode;
