-- +goose Up

-- A replica of the bot, and whether it lives. While it does it counts beat up, every
-- second or so. One whose beat has not moved for lease_ms, by the clock of whoever looks,
-- is dead: no clock of the database's is asked, so that none that jumps does any harm.
-- life is another whenever it begins to live again. kernel says which machine runs it,
-- since when: on the same one, a lock on its data folder tells whether it lives. slots is
-- how many sessions it may run at once, none while it stops, and busy how many of them
-- work or are waited for.
CREATE SEQUENCE replica_lives;
CREATE TABLE replicas (
    id       text        PRIMARY KEY,
    life     bigint      NOT NULL,
    beat     bigint      NOT NULL DEFAULT 0,
    alive    boolean     NOT NULL DEFAULT true,
    kernel   text        NOT NULL,
    lease_ms bigint      NOT NULL,
    slots    integer     NOT NULL,
    busy     integer     NOT NULL DEFAULT 0,
    since    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE INDEX replicas_alive ON replicas (id) WHERE alive; -- those that came and went stay

-- A lease is held for as long as its owner lives: whoever finds it dead hands them back.
UPDATE threads SET lease_owner = NULL WHERE lease_owner IS NOT NULL;
ALTER TABLE threads DROP COLUMN lease_until;

-- +goose Down
ALTER TABLE threads ADD COLUMN lease_until timestamptz;
UPDATE threads SET lease_owner = NULL WHERE lease_owner IS NOT NULL;
DROP TABLE replicas;
DROP SEQUENCE replica_lives;
