-- +goose Up

-- What the commits of an ended turn would bring to the forge, for the window that shows their
-- diff; deleted with the thread's copies of conversations. No value: there are none.
ALTER TABLE turns ADD COLUMN diff jsonb;

-- +goose Down

ALTER TABLE turns DROP COLUMN diff;
