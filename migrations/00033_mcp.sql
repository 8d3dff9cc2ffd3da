-- +goose Up

-- MCP servers of a thread's sessions, by their names: those that people have switched off,
-- those that are to be connected again, and how they were when they were looked at last.
ALTER TABLE threads
    ADD COLUMN mcp_off     text[] NOT NULL DEFAULT '{}',
    ADD COLUMN mcp_again   text[] NOT NULL DEFAULT '{}',
    ADD COLUMN mcp_seen    jsonb  NOT NULL DEFAULT '[]',
    ADD COLUMN mcp_seen_at timestamptz;

-- +goose Down

ALTER TABLE threads DROP COLUMN mcp_off, DROP COLUMN mcp_again, DROP COLUMN mcp_seen, DROP COLUMN mcp_seen_at;
