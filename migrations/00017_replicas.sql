-- +goose Up

-- Sessions that work on the replica now, neither idle nor waiting for people: by these the
-- replicas divide what Slack allows them.
ALTER TABLE replicas ADD COLUMN turns integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE replicas DROP COLUMN turns;
