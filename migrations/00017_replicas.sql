-- +goose Up

-- Sessions that work on the replica now, neither idle nor waiting for people: by these the
-- replicas divide what Slack allows them.
ALTER TABLE replicas ADD COLUMN turns integer NOT NULL DEFAULT 0;

-- The prompt of a turn is looked for whenever its thread goes on.
CREATE INDEX inbox_turn ON inbox (turn_id) WHERE turn_id IS NOT NULL;

-- +goose Down
DROP INDEX inbox_turn;
ALTER TABLE replicas DROP COLUMN turns;
