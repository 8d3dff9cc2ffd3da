-- +goose Up

-- What a thread's folder was at the ends of its last turns: an array of turn, branch, saved and at, oldest
-- first. held is a commit that has all of them as parents and is in the packs; empty if they are not.
ALTER TABLE work
    ADD COLUMN states jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN held   text  NOT NULL DEFAULT '' CHECK (held ~ '^([0-9a-f]{40}|[0-9a-f]{64})?$');

-- A session that begins with its parent's conversation as it was after the turn rewound_to (0: before the
-- first), made when the thread had come to rewound_from.
ALTER TABLE sessions
    ADD COLUMN rewound_to   bigint,
    ADD COLUMN rewound_from bigint;

-- What a prompt is to do that is a rewind of its thread, and no turn. It is running from when the files begin
-- to change until the conversation has.
ALTER TABLE inbox ADD COLUMN rewind jsonb;

-- The buttons below a sentence that is said: an array of label and say, the command that each one is.
ALTER TABLE outbox ADD COLUMN buttons jsonb NOT NULL DEFAULT '[]';

-- The project whose admins a sentence calls; empty if it calls nobody.
ALTER TABLE outbox ADD COLUMN admins_of text NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE outbox DROP COLUMN admins_of, DROP COLUMN buttons;
ALTER TABLE inbox DROP COLUMN rewind;
ALTER TABLE sessions DROP COLUMN rewound_to, DROP COLUMN rewound_from;
ALTER TABLE work DROP COLUMN states, DROP COLUMN held;
