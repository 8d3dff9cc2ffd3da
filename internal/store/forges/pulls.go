package forges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Pull is a pull request that a thread has opened, as the forge had it when it was asked last.
type Pull struct {
	ID       int64
	ThreadID int64
	threads.ThreadKey
	Project    string
	Further    string // the short name of its repository; empty for the project's own
	Repository string // its address
	Number     int
	URL        string // for people
	Title      string
	Branch     string
	Base       string
	Head       string // commit
	State      string // open, merged or closed
	Draft      bool
	Mergeable  string // clean, conflict, blocked or unknown
	Checks     []PullCheck
	Reviews    []PullReview
	// Discussions counts the review threads that are not resolved.
	Discussions  int
	OpenedBy     string   // login
	Requester    string   // the Slack user whose prompt opened it
	ApprovedBy   []string // the Slack users who allowed that
	MergedCommit string
	MergedBy     string // login
	MergedFor    string // the Slack user whose prompt merged it; empty if it was merged elsewhere
	Merging      string // the approval by which it is being merged
	WokenFor     string // the commit whose trouble has become a prompt by itself
	Rounds       int    // how many commits in a row have
	Problem      string // why the forge did not answer last, a sentence; empty if it did
	CreatedAt    time.Time
	ChangedAt    time.Time
}

// PullCheck is a check of a pull request's head.
type PullCheck struct {
	Name  string `json:"name"`
	State string `json:"state"` // pending, passed, failed or skipped
	URL   string `json:"url,omitempty"`
}

// PullReview is what a reviewer said last.
type PullReview struct {
	Author  string `json:"author"`
	Verdict string `json:"verdict"` // approved, changes_requested or commented
	Commit  string `json:"commit,omitempty"`
}

// IsRed reports whether a check of the head has failed.
func (p Pull) IsRed() bool {
	return slices.ContainsFunc(p.Checks, func(c PullCheck) bool { return c.State == "failed" })
}

// WantsChanges reports whether a reviewer has asked for changes of the head. A review that
// names no commit is of the head.
func (p Pull) WantsChanges() bool {
	return slices.ContainsFunc(p.Reviews, func(r PullReview) bool {
		return r.Verdict == "changes_requested" && (r.Commit == "" || r.Commit == p.Head)
	})
}

// PullDue is the job that asks the forge how a pull request stands.
type PullDue struct {
	PullID int64 `json:"pull_id"`
}

// Kind implements [pg.JobArgs].
func (PullDue) Kind() string { return "pull_due" }

// PullOpened is the job that finds a pull request which was opened by an approval, if the bot
// died before it was written down.
type PullOpened struct {
	ApprovalID string `json:"approval_id"`
}

// Kind implements [pg.JobArgs].
func (PullOpened) Kind() string { return "pull_opened" }

const (
	pullColumns = `p.id, p.thread_id, t.team_id, t.channel_id, t.thread_ts, p.project, p.further, p.repository, p.number, p.url, p.title, p.branch, p.base, p.head,
	p.state, p.draft, p.mergeable, p.checks, p.reviews, p.discussions, p.opened_by, p.requester, p.approved_by, p.merged_commit, p.merged_by, p.merged_for, p.merging,
	p.woken_for, p.rounds, p.problem, p.created_at, p.changed_at`
	pullFrom = ` FROM pulls p JOIN threads t ON t.id = p.thread_id `
)

// PullByID returns a pull request, or [pg.ErrNotFound].
func (s *Store) PullByID(ctx context.Context, id int64) (Pull, error) {
	p, err := pg.CollectOne[Pull](s.db.Query(ctx, `SELECT `+pullColumns+pullFrom+`WHERE p.id = $1`, id))
	return p, pg.Wrap(err, "read pull request %d", id)
}

// PullOfThread returns the thread's newest pull request in a repository, by its short name, an open one before
// others, or [pg.ErrNotFound].
func (s *Store) PullOfThread(ctx context.Context, threadID int64, further string) (Pull, error) {
	p, err := pg.CollectOne[Pull](s.db.Query(ctx, `
		SELECT `+pullColumns+pullFrom+`WHERE p.thread_id = $1 AND p.further = $2 ORDER BY p.state <> 'open', p.id DESC LIMIT 1`, threadID, further))
	return p, pg.Wrap(err, "read the pull request of thread %d", threadID)
}

// PullAt returns a thread's pull request by its repository's address and its number, or [pg.ErrNotFound].
func (s *Store) PullAt(ctx context.Context, threadID int64, repository string, number int) (Pull, error) {
	p, err := pg.CollectOne[Pull](s.db.Query(ctx, `SELECT `+pullColumns+pullFrom+`WHERE p.thread_id = $1 AND p.repository = $2 AND p.number = $3`, threadID, repository, number))
	return p, pg.Wrap(err, "read pull request %d of %s", number, repository)
}

// OpenedPull writes down a pull request that the thread has opened, or pushed to again, with
// what the audit is told, and has the forge asked about it after some time. Once it is known
// its requester and who approved stay.
func (s *Store) OpenedPull(ctx context.Context, p Pull, due time.Duration, told ...audit.Entry) (out Pull, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, `
			INSERT INTO pulls (thread_id, project, repository, number, url, title, branch, base, head, state, draft, mergeable, opened_by, requester, approved_by, further)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, COALESCE($15::text[], '{}'), $16)
			ON CONFLICT (thread_id, repository, number) DO UPDATE SET url = excluded.url, title = excluded.title, base = excluded.base, state = excluded.state,
				draft = excluded.draft, checks = CASE WHEN pulls.head = excluded.head THEN pulls.checks ELSE '[]' END, head = excluded.head, changed_at = now()
			RETURNING id`,
			p.ThreadID, p.Project, p.Repository, p.Number, p.URL, p.Title, p.Branch, p.Base, p.Head, p.State, p.Draft, p.Mergeable, p.OpenedBy, p.Requester, p.ApprovedBy, p.Further).Scan(&id)
		if err != nil {
			return err
		}
		if err := pg.Schedule(ctx, tx, pg.Job{Args: PullDue{id}, At: time.Now().Add(due), Once: true}); err != nil {
			return err
		}
		if out, err = pg.CollectOne[Pull](tx.Query(ctx, `SELECT `+pullColumns+pullFrom+`WHERE p.id = $1`, id)); err != nil {
			return err
		}
		return audit.Append(ctx, tx, told...)
	})
	return out, pg.Wrap(err, "write down the pull request %d of %s", p.Number, p.Repository)
}

// PullChanged writes down how a pull request stands now, with what the audit is told. Who
// merged it here is kept. One that was merged stays so, and one that is open is written down
// only if nothing has changed since p was read.
func (s *Store) PullChanged(ctx context.Context, p Pull, changed bool, told ...audit.Entry) error {
	checks, err := json.Marshal(p.Checks)
	if err != nil {
		return fmt.Errorf("write down checks: %w", err)
	}
	reviews, err := json.Marshal(p.Reviews)
	if err != nil {
		return fmt.Errorf("write down reviews: %w", err)
	}
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		// What began before the pull request ended, or was pushed to, has nothing to add.
		written, err := tx.Exec(ctx, `
			UPDATE pulls SET title = $2, base = $3, head = $4, state = $5, draft = $6, mergeable = $7, checks = COALESCE(NULLIF($8::jsonb, 'null'), '[]'),
				reviews = COALESCE(NULLIF($9::jsonb, 'null'), '[]'), discussions = $10, merged_commit = $11, merged_by = $12, merged_for = COALESCE(NULLIF($13, ''), merged_for),
				rounds = $14, problem = $15, checked_at = now(), changed_at = CASE WHEN $16 THEN now() ELSE changed_at END
			WHERE id = $1 AND state <> 'merged' AND ($5 <> 'open' OR changed_at = $17)`,
			p.ID, p.Title, p.Base, p.Head, p.State, p.Draft, p.Mergeable, string(checks), string(reviews), p.Discussions, p.MergedCommit, p.MergedBy, p.MergedFor,
			p.Rounds, p.Problem, changed, p.ChangedAt)
		if err != nil || written.RowsAffected() == 0 {
			return err
		}
		if p.State != "open" {
			if err := dropWoken(ctx, tx, p); err != nil {
				return err
			}
		}
		return audit.Append(ctx, tx, told...)
	})
	return pg.Wrap(err, "write down how pull request %d stands", p.ID)
}

// dropWoken finishes what [Store.WakePull] has made of a pull request that is open no more, and has not begun.
func dropWoken(ctx context.Context, tx pg.Tx, p Pull) error {
	type row struct {
		ID     int64
		Waited bool // for a budget
	}
	dropped, err := pg.Collect[row](tx.Query(ctx, `
		UPDATE inbox i SET state = 'done', outcome = 'pull request ' || $3, done_at = now()
		WHERE i.thread_id = $1 AND i.state = 'accepted' AND i.event_id LIKE 'pull/' || $2::bigint || '/%'
		RETURNING i.id, EXISTS (SELECT FROM budget_waits b WHERE b.inbox_id = i.id) AS waited`, p.ThreadID, p.ID, p.State))
	if err != nil || len(dropped) == 0 {
		return err
	}
	tell := []outbox.NewRow{{Kind: outbox.Said, Free: true, Body: fmt.Sprintf("Pull request #%d is %s: what Deckhand was to mend in it by itself is not begun.", p.Number, p.State)}}
	for _, d := range dropped {
		if d.Waited {
			tell = append(tell, outbox.NewRow{Kind: outbox.Wait, Inbox: d.ID, Free: true})
		}
	}
	if _, err := outbox.Add(ctx, tx, p.ThreadID, tell...); err != nil {
		return err
	}
	return pg.Notify(ctx, tx, pg.Notice{Kind: pg.NoticePrompt, ThreadID: p.ThreadID})
}

// MergingPull writes down by which approval a pull request is about to be merged; an empty one
// takes that back.
func (s *Store) MergingPull(ctx context.Context, id int64, approvalID string) error {
	_, err := s.db.Exec(ctx, `UPDATE pulls SET merging = $2 WHERE id = $1`, id, approvalID)
	return pg.Wrap(err, "write down who merges pull request %d", id)
}

// PollPulls has the forge asked soon about those of a project's pull requests that have one of
// the numbers or one of the commits as head: once, however often it is called, not before a
// moment has passed since the last time, and not while the forge wants to be left alone.
func (s *Store) PollPulls(ctx context.Context, project string, numbers []int, commits []string) error {
	_, err := s.db.Exec(ctx, `
		UPDATE river_job j SET scheduled_at = greatest(now(), COALESCE(p.checked_at, p.created_at) + interval '3 seconds') FROM pulls p
		WHERE j.kind = 'pull_due' AND j.state = 'scheduled' AND (j.args->>'pull_id')::bigint = p.id AND p.project = $1 AND p.state <> 'merged' AND p.problem = ''
			AND (p.number = ANY ($2) OR p.head <> '' AND p.head = ANY ($3)) AND j.scheduled_at > greatest(now(), COALESCE(p.checked_at, p.created_at) + interval '3 seconds')`,
		project, numbers, commits)
	return pg.Wrap(err, "have pull requests of %s asked about", project)
}

// WakePull makes a prompt of what a pull request's head is in need of, as its requester: once
// for a commit, and for at most so many in a row.
func (s *Store) WakePull(ctx context.Context, p Pull, most int, uuid, text string) (ok bool, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		err := tx.QueryRow(ctx, `
			UPDATE pulls SET woken_for = head, rounds = rounds + 1
			WHERE id = $1 AND head = $2 AND state = 'open' AND woken_for <> head AND rounds < $3 RETURNING id`, p.ID, p.Head, most).Scan(new(int64))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		var inbox int64
		if err := tx.QueryRow(ctx, `
			INSERT INTO inbox (event_id, kind, team_id, channel_id, ts, thread_ts, user_id, payload, state, thread_id, prompt_uuid, prompt)
			VALUES ($1, 'event', $2, $3, '', $4, $5, '{}', 'accepted', $6, $7, $8) RETURNING id`,
			fmt.Sprintf("pull/%d/%s", p.ID, p.Head), p.TeamID, p.ChannelID, p.ThreadTS, p.Requester, p.ThreadID, uuid, text).Scan(&inbox); err != nil {
			return err
		}
		ok = true
		if err := pg.Notify(ctx, tx, pg.Notice{Kind: pg.NoticePrompt, ThreadID: p.ThreadID}); err != nil {
			return err
		}
		return audit.Append(ctx, tx,
			audit.Entry{Kind: audit.Pull, TeamID: p.TeamID, ThreadID: p.ThreadID, Details: map[string]any{"act": "woken", "repository": p.Repository, "number": p.Number, "url": p.URL, "head": p.Head}},
			audit.Entry{Kind: audit.Prompt, TeamID: p.TeamID, Actor: p.Requester, ThreadID: p.ThreadID, Details: map[string]any{"inbox": inbox, "uuid": uuid, "text": text}})
	})
	return ok, pg.Wrap(err, "wake the thread of pull request %d", p.ID)
}
