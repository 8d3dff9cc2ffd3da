package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Thread is a Slack thread with a session.
type Thread struct {
	ID        int64
	TeamID    string
	ChannelID string
	ThreadTS  string
	Project   string
	OwnerID   string // who opened it
	Title     string // for people, with secrets masked; may be empty
	Branch    string // its own, where it has a working tree of its own
	Base      string // the branch that it starts from; empty for its project's
	SessionID string // empty until the first process starts
	Workspace string // folder; empty until it is prepared
	// WorkspaceReplica is the replica whose data folder has it; empty if unknown.
	WorkspaceReplica string
	ForkedBranch     string // the branch of the thread whose files it began with; empty for none
	LeaseOwner       string
	LeaseEpoch       int64
}

const threadColumns = `t.id, t.team_id, t.channel_id, t.thread_ts, t.project, t.owner_id, t.title,
	'deckhand/' || t.id || CASE t.slug WHEN '' THEN '' ELSE '-' || t.slug END AS branch, t.base,
	COALESCE(t.session_id::text, '') AS session_id, t.workspace, t.workspace_replica,
	COALESCE((SELECT 'deckhand/' || f.id || CASE f.slug WHEN '' THEN '' ELSE '-' || f.slug END FROM threads f WHERE f.id = t.forked_from), '') AS forked_branch,
	COALESCE(t.lease_owner, '') AS lease_owner, t.lease_epoch`

// Key names the thread in Slack.
func (t Thread) Key() ThreadKey {
	return ThreadKey{TeamID: t.TeamID, ChannelID: t.ChannelID, ThreadTS: t.ThreadTS}
}

// Lease is the right to run a thread's process and to write for it. Epoch fences: it grows with every acquisition.
type Lease struct {
	ThreadID int64
	Owner    string // replica id
	Epoch    int64
}

// ThreadByKey returns the thread, or [ErrNotFound].
func (s *Store) ThreadByKey(ctx context.Context, k ThreadKey) (Thread, error) {
	t, err := collectOne[Thread](s.pool.Query(ctx, `
		SELECT `+threadColumns+` FROM threads t
		WHERE team_id = $1 AND channel_id = $2 AND thread_ts = $3`, k.TeamID, k.ChannelID, k.ThreadTS))
	return t, wrap(err, "read thread %s/%s", k.ChannelID, k.ThreadTS)
}

// AcquireLease takes the thread's lease for a live replica, for as long as that lives. ok is false while another
// one holds it, and, unless eager, while another one is preferred: the one with the thread's workspace if it has
// room, else the one with room for the most further threads. A replica's own lease is taken again with a higher
// epoch: it cannot be in use, since a registration belongs to one process, which runs one worker per thread.
func (s *Store) AcquireLease(ctx context.Context, threadID int64, l Registration, eager bool) (t Thread, ok bool, err error) {
	t, err = collectOne[Thread](s.pool.Query(ctx, `
		UPDATE threads t
		SET lease_owner = me.id, lease_epoch = lease_epoch + 1
		FROM (SELECT * FROM replicas WHERE id = $2 AND life = $3 AND alive FOR SHARE) me
		WHERE t.id = $1 AND (t.lease_owner IS NULL AND ($4 OR NOT EXISTS (
			SELECT FROM replicas o WHERE o.alive AND o.id <> me.id AND `+suits("o")+` > `+suits("me")+`)) OR t.lease_owner = me.id)
		RETURNING `+threadColumns, threadID, l.Replica, l.Number, eager))
	if errors.Is(err, ErrNotFound) {
		return Thread{}, false, nil
	}
	return t, err == nil, wrap(err, "acquire the lease of thread %d", threadID)
}

// suits is how well a replica suits thread t. Ties are broken differently for each thread, and alike by all
// replicas.
func suits(r string) string {
	room := "(" + r + ".slots - (SELECT count(*) FROM threads h WHERE h.lease_owner = " + r + ".id))"
	return "(" + room + " > 0 AND t.workspace_replica = " + r + ".id, " + room + ", md5(t.thread_ts || " + r + ".id))"
}

// ReleaseLease frees the lease if it is still held. wake says that another replica may have work to do: the
// replicas are notified if there are open prompts that do not sleep, in a turn that is not parked. A prompt that
// its holder could not handle must not wake it again at once.
func (s *Store) ReleaseLease(ctx context.Context, l Lease, wake bool) error {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var open bool
		err := tx.QueryRow(ctx, `
			UPDATE threads t SET lease_owner = NULL
			WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3
			RETURNING EXISTS (SELECT FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running')) AND NOT `+asleep+` AND NOT `+parked,
			l.ThreadID, l.Owner, l.Epoch).Scan(&open)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil || !open || !wake {
			return err
		}
		return notify(ctx, tx, Notice{Kind: NoticePrompt, ThreadID: l.ThreadID})
	})
	return wrap(err, "release the lease of thread %d", l.ThreadID)
}

// Unattended returns the threads that have a prompt or a running turn and that owner may take: nobody's, and its
// own; the longest waiting first. It omits those whose prompt sleeps (see [Store.WaitForBudget] and
// [Store.PutOffPrompt]) or whose turn is parked (see [Store.ParkTurn]). held lists the threads that it already
// works on.
func (s *Store) Unattended(ctx context.Context, owner string, held []int64) ([]int64, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT t.id FROM threads t
		WHERE (t.lease_owner IS NULL OR t.lease_owner = $1)
		  AND NOT t.id = ANY ($2::bigint[])
		  AND (EXISTS (SELECT FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running')) AND NOT `+asleep+`
		    OR EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND r.state = 'running') AND NOT `+putOff+`)
		  AND NOT `+parked+`
		ORDER BY (SELECT min(i.id) FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running')), t.id`, owner, held)
	if err != nil {
		return nil, fmt.Errorf("look for unattended threads: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return ids, wrap(err, "look for unattended threads")
}

// SetWorkspace records the folder that the lease's owner has prepared for the thread.
func (s *Store) SetWorkspace(ctx context.Context, l Lease, dir string) error {
	return s.fenced(ctx, l, "set the workspace", `
		UPDATE threads SET workspace = $4, workspace_replica = $2
		WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3`, dir)
}

// SetBranch gives the thread's branch another name below deckhand/ and its number: somebody else has the first.
func (s *Store) SetBranch(ctx context.Context, l Lease, branch string) error {
	return s.fenced(ctx, l, "name the branch", `
		UPDATE threads SET slug = right($4, -length('deckhand/' || id || '-'))
		WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3 AND starts_with($4, 'deckhand/' || id || '-')`, branch)
}

// fenced runs a statement that changes rows only while the lease ($1 thread, $2 owner, $3 epoch) holds.
func (s *Store) fenced(ctx context.Context, l Lease, what, sql string, args ...any) error {
	tag, err := s.pool.Exec(ctx, sql, append([]any{l.ThreadID, l.Owner, l.Epoch}, args...)...)
	if err != nil {
		return fmt.Errorf("%s of thread %d: %w", what, l.ThreadID, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("%s of thread %d: %w", what, l.ThreadID, ErrFenced)
	}
	return nil
}

// hold locks the thread's row for the rest of the transaction and returns its team. It fails with ErrFenced when
// the lease is lost.
func hold(ctx context.Context, tx pgx.Tx, l Lease) (teamID string, err error) {
	err = tx.QueryRow(ctx, `
		SELECT team_id FROM threads WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3
		FOR NO KEY UPDATE`, l.ThreadID, l.Owner, l.Epoch).Scan(&teamID)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrFenced
	}
	return teamID, err
}

// ThreadOfRunningTurn returns the thread whose turn is running, or
// [ErrNotFound] when it has ended.
func (s *Store) ThreadOfRunningTurn(ctx context.Context, turnID int64) (Thread, error) {
	t, err := collectOne[Thread](s.pool.Query(ctx, `
		SELECT `+threadColumns+` FROM threads t JOIN turns r ON r.thread_id = t.id
		WHERE r.id = $1 AND r.state = 'running'`, turnID))
	return t, wrap(err, "read the thread of turn %d", turnID)
}

// ThreadOfTurn returns the thread of a turn, or [ErrNotFound].
func (s *Store) ThreadOfTurn(ctx context.Context, turnID int64) (Thread, error) {
	t, err := collectOne[Thread](s.pool.Query(ctx, `
		SELECT `+threadColumns+` FROM threads t JOIN turns r ON r.thread_id = t.id WHERE r.id = $1`, turnID))
	return t, wrap(err, "read the thread of turn %d", turnID)
}

// Teams are all teams in this database, in order.
func (s *Store) Teams(ctx context.Context) ([]string, error) {
	// An index scan that skips from team to team, instead of reading every thread.
	teams, err := collectColumn[string](s.pool.Query(ctx, `
		WITH RECURSIVE teams AS (
			SELECT min(team_id) AS team_id FROM threads
			UNION ALL
			SELECT (SELECT min(h.team_id) FROM threads h WHERE h.team_id > t.team_id) FROM teams t WHERE t.team_id IS NOT NULL)
		SELECT team_id FROM teams WHERE team_id IS NOT NULL ORDER BY team_id`))
	return teams, wrap(err, "list the teams")
}
