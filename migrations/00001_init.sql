-- +goose Up

-- A Slack thread that has become a session in one project. The lease says which
-- replica may run its process; lease_epoch grows with every change of hands and
-- fences writers that have lost it.
CREATE TABLE threads (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id     text        NOT NULL,
    channel_id  text        NOT NULL,
    thread_ts   text        NOT NULL,
    project     text        NOT NULL,
    owner_id    text        NOT NULL,
    session_id  uuid,
    workspace   text        NOT NULL DEFAULT '',
    lease_owner text,
    lease_until timestamptz,
    lease_epoch bigint      NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL DEFAULT now(),
    active_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (team_id, channel_id, thread_ts)
);
CREATE INDEX threads_lease_owner ON threads (lease_owner) WHERE lease_owner IS NOT NULL;

-- A Claude Code session. started: a prompt was written to it, so a transcript
-- may exist and the next process resumes it.
CREATE TABLE sessions (
    id          uuid        PRIMARY KEY,
    thread_id   bigint      NOT NULL REFERENCES threads,
    parent_id   uuid        REFERENCES sessions,
    started     boolean     NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sessions_thread ON sessions (thread_id);
ALTER TABLE threads ADD FOREIGN KEY (session_id) REFERENCES sessions;

-- An epoch of a session: one run of its process, or the part of one after a
-- /clear. baseline is the running total that the CLI started from.
CREATE TABLE epochs (
    session_id         uuid        NOT NULL REFERENCES sessions,
    epoch              int         NOT NULL,
    cli_version        text        NOT NULL,
    baseline_micro_usd bigint      NOT NULL,
    started_at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, epoch)
);

-- Everything Slack was told that we have. event_id makes a delivery unique;
-- a post that reaches us as app_mention and as message is one row.
CREATE TABLE inbox (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id    text        NOT NULL UNIQUE,
    kind        text        NOT NULL CHECK (kind IN ('message', 'action', 'view', 'command', 'event')),
    team_id     text        NOT NULL,
    channel_id  text        NOT NULL,
    ts          text        NOT NULL,
    thread_ts   text        NOT NULL,
    user_id     text        NOT NULL,
    payload     json        NOT NULL,
    state       text        NOT NULL DEFAULT 'received'
                            CHECK (state IN ('received', 'accepted', 'running', 'done')),
    outcome     text        NOT NULL DEFAULT '',
    thread_id   bigint      REFERENCES threads,
    prompt_uuid uuid        UNIQUE,
    prompt      text        NOT NULL DEFAULT '',
    turn_id     bigint,
    received_at timestamptz NOT NULL DEFAULT now(),
    done_at     timestamptz,
    CHECK ((state = 'done') = (done_at IS NOT NULL)),
    CHECK ((state IN ('accepted', 'running')) <= (thread_id IS NOT NULL AND prompt_uuid IS NOT NULL))
);
CREATE UNIQUE INDEX inbox_one_row_per_post ON inbox (team_id, channel_id, ts) WHERE kind = 'message';
CREATE INDEX inbox_received ON inbox (id) WHERE state = 'received';
CREATE INDEX inbox_open ON inbox (thread_id, ts) WHERE state IN ('accepted', 'running');

-- A turn: one prompt and all that the CLI did until its result.
CREATE TABLE turns (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread_id      bigint      NOT NULL REFERENCES threads,
    session_id     uuid        NOT NULL REFERENCES sessions,
    epoch          int         NOT NULL,
    lease_epoch    bigint      NOT NULL,
    requested_by   text        NOT NULL,
    continues      bigint      REFERENCES turns,
    attempt        int         NOT NULL DEFAULT 1,
    state          text        NOT NULL DEFAULT 'running'
                               CHECK (state IN ('running', 'done', 'interrupted', 'failed')),
    problem        text        NOT NULL DEFAULT '',
    agent_turns    int         NOT NULL DEFAULT 0,
    cost_micro_usd bigint      NOT NULL DEFAULT 0,
    started_at     timestamptz NOT NULL DEFAULT now(),
    ended_at       timestamptz,
    CHECK ((state = 'running') = (ended_at IS NULL))
);
CREATE UNIQUE INDEX turns_one_running ON turns (thread_id) WHERE state = 'running';
CREATE INDEX turns_thread ON turns (thread_id, id);
ALTER TABLE inbox ADD FOREIGN KEY (turn_id) REFERENCES turns;

-- A request to use a tool, and how it ended. input holds the bytes that were
-- shown, and input_sha256 binds the decision to them. delivered_at: the CLI has
-- been given the answer, so it can never be given again. From rule to dangerous
-- stand the terms under which it is decided, as the policy had them when it was
-- asked. card_id names the approval whose message shows this one too.
CREATE TABLE approvals (
    id              text        PRIMARY KEY,
    thread_id       bigint      NOT NULL REFERENCES threads,
    session_id      uuid        NOT NULL REFERENCES sessions,
    turn_id         bigint      NOT NULL REFERENCES turns,
    kind            text        NOT NULL CHECK (kind IN ('tool', 'question', 'plan')),
    request_id      text        NOT NULL,
    tool_use_id     text        NOT NULL,
    tool_name       text        NOT NULL,
    input           text        NOT NULL,
    input_sha256    bytea       NOT NULL,
    requested_by    text        NOT NULL,
    rule            text        NOT NULL,
    because         text        NOT NULL DEFAULT '',
    approvers       text[]      NOT NULL DEFAULT '{}',
    quorum          int         NOT NULL DEFAULT 1 CHECK (quorum >= 1),
    requester_may   boolean     NOT NULL DEFAULT true,
    on_timeout      text        NOT NULL DEFAULT 'pause' CHECK (on_timeout IN ('pause', 'deny')),
    dangerous       boolean     NOT NULL DEFAULT false,
    grantable       boolean     NOT NULL DEFAULT false,
    risks           text[]      NOT NULL DEFAULT '{}',
    decision_reason text        NOT NULL DEFAULT '',
    card_id         text        NOT NULL,
    status          text        NOT NULL DEFAULT 'pending'
                                CHECK (status IN ('pending', 'allowed', 'denied', 'expired', 'cancelled', 'interrupted')),
    decided_by      text        NOT NULL DEFAULT '',
    decided_via     text        NOT NULL DEFAULT '',
    reason          text        NOT NULL DEFAULT '',
    answer          text        NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    decided_at      timestamptz,
    delivered_at    timestamptz,
    CHECK ((status = 'pending') = (decided_at IS NULL)),
    CHECK (status NOT IN ('allowed', 'denied') OR decided_by <> ''),
    CHECK (octet_length(input_sha256) = 32),
    CHECK (input_sha256 = sha256(convert_to(input, 'UTF8')))
);
CREATE INDEX approvals_open ON approvals (thread_id) WHERE delivered_at IS NULL;
CREATE INDEX approvals_pending ON approvals (created_at) WHERE status = 'pending';
CREATE INDEX approvals_card ON approvals (card_id);
CREATE INDEX approvals_asked ON approvals (created_at);

-- What was asked and who decided are facts: only the ending may be filled in,
-- once.
-- +goose StatementBegin
CREATE FUNCTION approvals_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'approvals are never deleted';
    END IF;
    IF (OLD.id, OLD.thread_id, OLD.kind, OLD.tool_name, OLD.input, OLD.input_sha256, OLD.requested_by, OLD.rule,
        OLD.approvers, OLD.quorum, OLD.requester_may, OLD.on_timeout, OLD.dangerous, OLD.grantable, OLD.created_at, OLD.expires_at)
       IS DISTINCT FROM
       (NEW.id, NEW.thread_id, NEW.kind, NEW.tool_name, NEW.input, NEW.input_sha256, NEW.requested_by, NEW.rule,
        NEW.approvers, NEW.quorum, NEW.requester_may, NEW.on_timeout, NEW.dangerous, NEW.grantable, NEW.created_at, NEW.expires_at) THEN
        RAISE EXCEPTION 'what was asked for in approval % cannot change', OLD.id;
    END IF;
    IF OLD.status <> 'pending' AND
       (OLD.status, OLD.decided_by, OLD.decided_via, OLD.reason, OLD.answer, OLD.decided_at)
       IS DISTINCT FROM
       (NEW.status, NEW.decided_by, NEW.decided_via, NEW.reason, NEW.answer, NEW.decided_at) THEN
        RAISE EXCEPTION 'approval % has ended as % already', OLD.id, OLD.status;
    END IF;
    IF OLD.delivered_at IS NOT NULL AND OLD.delivered_at IS DISTINCT FROM NEW.delivered_at THEN
        RAISE EXCEPTION 'approval % was delivered already', OLD.id;
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER approvals_guard BEFORE UPDATE OR DELETE ON approvals
    FOR EACH ROW EXECUTE FUNCTION approvals_guard();

-- What we posted, to edit it after a restart. page counts the messages of one
-- turn from 0; an approval's card is page 0 of its approval.
CREATE TABLE messages (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel_id  text   NOT NULL,
    ts          text   NOT NULL,
    turn_id     bigint REFERENCES turns,
    approval_id text   REFERENCES approvals,
    page        int    NOT NULL,
    CHECK ((turn_id IS NULL) <> (approval_id IS NULL)),
    UNIQUE (turn_id, page),
    UNIQUE (approval_id, page)
);

-- The ledger: per turn and model, what the CLI's running total grew by.
-- Amounts are micro-USD by list price; total_before and total_after are the
-- model's running totals within (session_id, epoch). contract_micro_usd is the
-- same by the team's own prices, where there are any. booked_on is the day in the
-- workspace's time zone when the entry was written; it stays, whatever becomes of
-- the zone. turns is 1 on the one entry that stands for a turn that has ended, and
-- approved counts the tool calls of that turn that a person or a grant allowed.
-- A thread that has cost something stays in its project and its channel.
ALTER TABLE threads ADD UNIQUE (id, team_id, channel_id, project);
CREATE TABLE ledger (
    id                    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at                    timestamptz NOT NULL DEFAULT now(),
    booked_on             date        NOT NULL,
    kind                  text        NOT NULL CHECK (kind IN ('turn', 'estimate', 'correction')),
    team_id               text        NOT NULL,
    channel_id            text        NOT NULL,
    thread_id             bigint      NOT NULL,
    project               text        NOT NULL,
    user_id               text        NOT NULL,
    session_id            uuid        NOT NULL,
    epoch                 int         NOT NULL,
    turn_id               bigint      NOT NULL REFERENCES turns,
    cli_version           text        NOT NULL,
    model                 text        NOT NULL,
    input_tokens          bigint      NOT NULL,
    output_tokens         bigint      NOT NULL,
    cache_read_tokens     bigint      NOT NULL,
    cache_write_5m_tokens bigint      NOT NULL,
    cache_write_1h_tokens bigint      NOT NULL,
    web_searches          bigint      NOT NULL,
    micro_usd             bigint      NOT NULL,
    contract_micro_usd    bigint,
    total_before          bigint      NOT NULL,
    total_after           bigint      NOT NULL,
    turns                 smallint    NOT NULL DEFAULT 0 CHECK (turns IN (0, 1)),
    approved              int         NOT NULL DEFAULT 0 CHECK (approved >= 0),
    FOREIGN KEY (thread_id, team_id, channel_id, project) REFERENCES threads (id, team_id, channel_id, project),
    FOREIGN KEY (session_id, epoch) REFERENCES epochs,
    CHECK (kind <> 'turn' OR micro_usd = total_after - total_before),
    CHECK (turns = 1 OR approved = 0)
);
CREATE INDEX ledger_thread ON ledger (thread_id);
CREATE INDEX ledger_booked ON ledger (team_id, booked_on, at);
CREATE INDEX ledger_epoch ON ledger (session_id, epoch);

-- +goose StatementBegin
CREATE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only: % refused', TG_OP;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();

-- +goose Down
DROP TABLE ledger, messages, approvals CASCADE;
ALTER TABLE inbox DROP COLUMN turn_id;
DROP TABLE turns, inbox, epochs CASCADE;
ALTER TABLE threads DROP COLUMN session_id;
DROP TABLE sessions, threads CASCADE;
DROP FUNCTION ledger_append_only, approvals_guard;
