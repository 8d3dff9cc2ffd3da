-- +goose Up

-- The project whose admins a sentence calls; empty if it calls nobody. Step 39 adds it, but an earlier form of that step
-- did not: a database that took that one gets the column here.
ALTER TABLE outbox ADD COLUMN IF NOT EXISTS admins_of text NOT NULL DEFAULT '';

-- +goose Down

-- Step 39 takes it away.
SELECT 1;
