-- +goose Up

-- The approval by which a pull request is being merged: a merge that is found at the forge
-- afterwards was made by it. Empty: nobody here merges it.
ALTER TABLE pulls ADD COLUMN merging text NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE pulls DROP COLUMN merging;
