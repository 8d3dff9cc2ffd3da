-- +goose Up

-- The thread whose conversation and files a thread began with; NULL of one that began anew.
ALTER TABLE threads ADD COLUMN forked_from bigint;

-- +goose Down

ALTER TABLE threads DROP COLUMN forked_from;
