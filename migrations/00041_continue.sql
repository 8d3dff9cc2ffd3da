-- +goose Up

-- Whether a turn that a budget stopped may be continued follows from what came after it in its thread.
ALTER TABLE turns DROP COLUMN continued_by;

-- +goose Down

ALTER TABLE turns ADD COLUMN continued_by text NOT NULL DEFAULT '';
