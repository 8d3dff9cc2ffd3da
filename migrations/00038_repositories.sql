-- +goose Up

-- The short name of the project's further repository that work or a pull request is in; empty for the project's own.
ALTER TABLE work ADD COLUMN repository text NOT NULL DEFAULT '';
ALTER TABLE work DROP CONSTRAINT work_pkey, ADD PRIMARY KEY (thread_id, repository);
ALTER TABLE pulls ADD COLUMN further text NOT NULL DEFAULT '';

-- +goose Down

-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM work WHERE repository <> '') THEN
        RAISE EXCEPTION 'the saved work of further repositories would be lost: push it, and delete their rows of work first';
    END IF;
END $$;
-- +goose StatementEnd

ALTER TABLE pulls DROP COLUMN further;
ALTER TABLE work DROP CONSTRAINT work_pkey, ADD PRIMARY KEY (thread_id);
ALTER TABLE work DROP COLUMN repository;
