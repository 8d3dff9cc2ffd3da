package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/store/work"
)

// Past is a prompt of a thread that its session knows.
type Past struct {
	Turn         int64 // the last attempt
	Before       int64 // the turn before it; 0 for none
	SessionID    string
	Prompt       string // see [threads.Words]
	Command      bool   // it is a command of Claude Code's
	StartedAt    time.Time
	CostMicroUSD int64
}

// Beginning is the beginning of the prompt in a line.
func (p Past) Beginning() string {
	text := strings.Join(strings.Fields(p.Prompt), " ")
	if runes := []rune(text); len(runes) > beginning {
		text = string(runes[:beginning]) + "…"
	}
	return text
}

const beginning = 50 // how much of a prompt names it, in letters

// History is what a thread's session knows, and to what its thread can go back.
type History struct {
	SessionID string // empty for none
	// Back is the session that it was rewound from, and BackTurn the last turn then; empty and 0 if it was not.
	Back     string
	BackTurn int64
	States   map[string][]work.State // of each repository by its short name, oldest first
	Held     bool                    // they are kept off the machine
	Turns    []Past                  `db:"-"` // oldest first
}

// Last is the last turn that the session knows, or 0.
func (h History) Last() int64 {
	if len(h.Turns) == 0 {
		return 0
	}
	return h.Turns[len(h.Turns)-1].Turn
}

// State is what the repositories were after a turn, those of which that is kept; false if the thread's own is none of them.
func (h History) State(turn int64) (then map[string]work.State, kept bool) {
	then = map[string]work.State{}
	for repository, states := range h.States {
		for _, s := range states {
			if s.Turn == turn {
				then[repository] = s
			}
		}
	}
	_, kept = then[""]
	return then, kept
}

// History reads what the thread's session knows.
func (s *Store) History(ctx context.Context, threadID int64) (History, error) {
	h, err := pg.CollectOne[History](s.db.Query(ctx, `
		SELECT COALESCE(t.session_id::text, '') AS session_id, COALESCE(CASE WHEN s.rewound_to IS NOT NULL THEN s.parent_id::text END, '') AS back,
			COALESCE(s.rewound_from, 0) AS back_turn, w.states, COALESCE(w.held, false) AS held
		FROM threads t LEFT JOIN sessions s ON s.id = t.session_id,
			LATERAL (SELECT jsonb_object_agg(repository, states) AS states, bool_and(held <> '') AS held FROM work WHERE thread_id = t.id AND states <> '[]') w
		WHERE t.id = $1`, threadID))
	if err == nil {
		h.Turns, err = pg.Collect[Past](s.db.Query(ctx, `
			WITH RECURSIVE line AS (
				SELECT s.id, s.parent_id, s.rewound_to, 9223372036854775807 AS upto FROM sessions s WHERE s.id = NULLIF($2, '')::uuid
				UNION ALL
				SELECT p.id, p.parent_id, p.rewound_to, LEAST(l.upto, l.rewound_to) FROM line l JOIN sessions p ON p.id = l.parent_id WHERE p.thread_id = $1)
			SELECT r.id AS turn, COALESCE(lag(r.id) OVER (ORDER BY r.id), 0) AS before, r.session_id::text AS session_id, `+threads.Words+` AS prompt,
				i.prompt LIKE '/%' AS command, r.started_at,
				COALESCE((SELECT ledger_sum(g.micro_usd) FROM ledger g WHERE g.thread_id = $1 AND g.turn_id = r.id AND (g.kind = 'call' OR g.corrects IS NOT NULL)), 0)::bigint AS cost_micro_usd
			FROM line l JOIN turns r ON r.session_id = l.id AND r.id <= l.upto JOIN inbox i ON i.turn_id = r.id
			WHERE r.state <> 'running' ORDER BY r.id`, threadID, h.SessionID))
	}
	return h, pg.Wrap(err, "read what thread %d was", threadID)
}

// Point is what a thread was after a turn: its conversation, and its folder.
type Point struct {
	Turn      int64
	SessionID string                // whose conversation it is, up to the turn
	States    map[string]work.State // of its repositories, by their short names
	// Conversation is that for a session of another id; nil if nothing was said.
	Conversation *transcripts.Part
}

func (p *Point) turn() int64 {
	if p == nil {
		return 0
	}
	return p.Turn
}

// set writes what is kept of a thread as of the point. [ErrNothingKept] says that files of it are on one machine alone.
func (p *Point) set(ctx context.Context, tx pg.Tx, l threads.Lease) error {
	if p == nil {
		return nil
	}
	if c := p.Conversation; c != nil {
		if saved, err := transcripts.Save(ctx, tx, l, transcripts.Pack([]transcripts.Part{*c})); err != nil || !saved {
			return errors.Join(err, fmt.Errorf("the transcript %s is there already", c.SessionID))
		}
	}
	alone := false
	for repository, s := range p.States {
		tag, err := tx.Exec(ctx, `UPDATE work SET branch = $2, saved = $3, saved_at = $4, told = false WHERE thread_id = $1 AND repository = $5 AND held <> ''`, l.ThreadID, s.Branch, s.Saved, s.At, repository)
		if err != nil {
			return err
		}
		alone = alone || tag.RowsAffected() == 0
	}
	if alone {
		return ErrNothingKept
	}
	return nil
}

// MoveRewind notes that a rewind begins to change the files, or that it has not changed them.
func (s *Store) MoveRewind(ctx context.Context, l threads.Lease, inboxID int64, begun bool) error {
	err := threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		_, err := tx.Exec(ctx, `
			UPDATE inbox SET state = CASE WHEN $3 THEN 'running' ELSE 'accepted' END
			WHERE id = $1 AND thread_id = $2 AND state IN ('accepted', 'running') AND rewind IS NOT NULL`, inboxID, l.ThreadID, begun)
		return err
	})
	return pg.Wrap(err, "note the rewind %d", inboxID)
}

// Rewound is a rewind whose files are as they are to be.
type Rewound struct {
	InboxID  int64
	By       string // Slack user
	To       Point
	From     int64 // the last turn before it
	Back     bool  // it goes on in To's session, as that is
	Sentence string
	Buttons  []outbox.Button
}

// FinishRewind has the thread go on in a session that begins with the conversation of the point, ends the permissions that
// were given in it, and tells it. Nothing of what was is lost: turns, costs and the audit stay.
func (s *Store) FinishRewind(ctx context.Context, l threads.Lease, r Rewound) (sessionID string, rows []outbox.Row, err error) {
	sessionID = r.To.SessionID
	err = threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		if !r.Back {
			sessionID = uuid.NewString()
			if r.To.Conversation != nil {
				sessionID = r.To.Conversation.SessionID
			}
			if _, err := tx.Exec(ctx, `
				INSERT INTO sessions (id, thread_id, parent_id, started, rewound_to, rewound_from)
				SELECT $2, id, session_id, $3, $4, $5 FROM threads WHERE id = $1`, l.ThreadID, sessionID, r.To.Conversation != nil, r.To.Turn, r.From); err != nil {
				return err
			}
			if err := copyTranscripts(ctx, tx, l.ThreadID, r.To.SessionID, sessionID, false); err != nil {
				return err
			}
		}
		if err := r.To.set(ctx, tx, l); err != nil && !errors.Is(err, ErrNothingKept) {
			return err
		}
		var team, was string
		if err := tx.QueryRow(ctx, `
			WITH done AS (UPDATE inbox SET state = 'done', outcome = 'rewound', done_at = now() WHERE id = $2 AND thread_id = $1 AND state = 'running'),
			offers AS (UPDATE turns SET over_budget = false WHERE thread_id = $1 AND over_budget),
			was AS (SELECT session_id FROM threads WHERE id = $1)
			UPDATE threads t SET session_id = $3, active_at = now() FROM was WHERE t.id = $1
			RETURNING t.team_id, was.session_id::text`, l.ThreadID, r.InboxID, sessionID).Scan(&team, &was); err != nil {
			return err
		}
		entries, err := approvals.EndGrants(ctx, tx, l.ThreadID, r.By)
		if err != nil {
			return err
		}
		if rows, err = outbox.Add(ctx, tx, l.ThreadID, outbox.NewRow{Kind: outbox.Said, Body: r.Sentence, Buttons: r.Buttons}); err != nil {
			return err
		}
		return audit.Append(ctx, tx, append(entries, audit.Entry{
			Kind: audit.Rewound, TeamID: team, Actor: r.By, ThreadID: l.ThreadID,
			Details: map[string]any{"to": r.To.Turn, "from": r.From, "session": sessionID, "before": was, "states": r.To.States},
		})...)
	})
	return sessionID, rows, pg.Wrap(err, "rewind thread %d", l.ThreadID)
}

// copyTranscripts copies the transcripts of a session for another one: all of them, or its subagents' alone.
func copyTranscripts(ctx context.Context, tx pg.Tx, threadID int64, from, to string, all bool) error {
	if _, err := tx.Exec(ctx, `
		INSERT INTO transcripts (thread_id, session_id, agent, bytes, sha256, lease_epoch, "full", saved_at)
		SELECT $1, $2, agent, bytes, sha256, 0, "full", saved_at FROM transcripts WHERE session_id = $3 AND ($4 OR agent <> '')`, threadID, to, from, all); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO transcript_pieces (transcript_id, at_byte, bytes, zstd)
		SELECT n.id, p.at_byte, p.bytes, p.zstd FROM transcripts o JOIN transcript_pieces p ON p.transcript_id = o.id
			JOIN transcripts n ON n.session_id = $1 AND n.agent = o.agent WHERE o.session_id = $2`, to, from)
	return err
}
