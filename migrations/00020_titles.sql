-- +goose Up

-- What a thread is about, in a few words of the prompt that opened it, secrets excepted;
-- empty for threads that were opened before. Overviews list a person's threads, and a
-- team's, by when they were active last.
ALTER TABLE threads ADD COLUMN title text NOT NULL DEFAULT '';
CREATE INDEX threads_owner_active ON threads (team_id, owner_id, active_at DESC);
CREATE INDEX threads_active ON threads (team_id, active_at DESC);

-- +goose Down
DROP INDEX threads_active, threads_owner_active;
ALTER TABLE threads DROP COLUMN title;
