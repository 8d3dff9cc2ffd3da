-- +goose Up

-- Work of a thread that has rested for long is deleted once it is somewhere else: when
-- that was looked for last (empty: not since it was written), and whether the thread was
-- told that it is nowhere else, and stays.
ALTER TABLE work ADD COLUMN looked_at timestamptz;
ALTER TABLE work ADD COLUMN told boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE work DROP COLUMN told;
ALTER TABLE work DROP COLUMN looked_at;
