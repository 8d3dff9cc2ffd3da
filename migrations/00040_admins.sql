-- +goose Up

-- The project whose admins a sentence calls; empty if it calls nobody.
ALTER TABLE outbox ADD COLUMN admins_of text NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE outbox DROP COLUMN admins_of;
