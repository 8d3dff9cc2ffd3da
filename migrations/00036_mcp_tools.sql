-- +goose Up

-- What the model was told of tools of MCP servers when they were allowed in a project: at first,
-- and whenever a person has allowed what had changed.
CREATE TABLE mcp_tools (
    team_id     text        NOT NULL,
    project     text        NOT NULL,
    tool        text        NOT NULL,
    sha256      bytea       NOT NULL,
    description text        NOT NULL,
    schema      text        NOT NULL,
    accepted_by text        NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (team_id, project, tool, sha256)
);

-- What the model was told of the tool of a request, and how that differs from what was allowed.
ALTER TABLE approvals ADD COLUMN tool_sha256 bytea, ADD COLUMN tool_change jsonb;

-- +goose Down

ALTER TABLE approvals DROP COLUMN tool_sha256, DROP COLUMN tool_change;
DROP TABLE mcp_tools;
