-- +goose Up

-- The files that came with a prompt, as [{"id": …, "name": …}]: whichever process begins its
-- turn fetches them.
ALTER TABLE inbox ADD COLUMN files jsonb NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE inbox DROP COLUMN files;
