package threads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
)

// ThreadByID returns a thread, or [pg.ErrNotFound].
func (s *Store) ThreadByID(ctx context.Context, id int64) (Thread, error) {
	t, err := pg.CollectOne[Thread](s.db.Query(ctx, `SELECT `+Columns+` FROM threads t WHERE t.id = $1`, id))
	return t, pg.Wrap(err, "read thread %d", id)
}

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

// Columns are those of a [Thread], of row t.
const Columns = `t.id, t.team_id, t.channel_id, t.thread_ts, t.project, t.owner_id, t.title,
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

// ThreadByKey returns the thread, or [pg.ErrNotFound].
func (s *Store) ThreadByKey(ctx context.Context, k ThreadKey) (Thread, error) {
	t, err := pg.CollectOne[Thread](s.db.Query(ctx, `
		SELECT `+Columns+` FROM threads t
		WHERE team_id = $1 AND channel_id = $2 AND thread_ts = $3`, k.TeamID, k.ChannelID, k.ThreadTS))
	return t, pg.Wrap(err, "read thread %s/%s", k.ChannelID, k.ThreadTS)
}

// AcquireLease takes the thread's lease for a live replica, for as long as that lives. ok is false while another
// one holds it, and, unless eager, while another one is preferred: the one with the thread's workspace if it has
// room, else the one with room for the most further threads. A replica's own lease is taken again with a higher
// epoch: it cannot be in use, since a registration belongs to one process, which runs one worker per thread.
func (s *Store) AcquireLease(ctx context.Context, threadID int64, l Registration, eager bool) (t Thread, ok bool, err error) {
	t, err = pg.CollectOne[Thread](s.db.Query(ctx, `
		UPDATE threads t
		SET lease_owner = me.id, lease_epoch = lease_epoch + 1
		FROM (SELECT * FROM replicas WHERE id = $2 AND life = $3 AND alive FOR SHARE) me
		WHERE t.id = $1 AND (t.lease_owner IS NULL AND ($4 OR NOT EXISTS (
			SELECT FROM replicas o WHERE o.alive AND o.id <> me.id AND `+suits("o")+` > `+suits("me")+`)) OR t.lease_owner = me.id)
		RETURNING `+Columns, threadID, l.Replica, l.Number, eager))
	if errors.Is(err, pg.ErrNotFound) {
		return Thread{}, false, nil
	}
	return t, err == nil, pg.Wrap(err, "acquire the lease of thread %d", threadID)
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
	err := s.db.InTx(ctx, func(tx pg.Tx) error {
		var open bool
		err := tx.QueryRow(ctx, `
			UPDATE threads t SET lease_owner = NULL
			WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3
			RETURNING EXISTS (SELECT FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running')) AND NOT `+asleep+` AND NOT `+Parked,
			l.ThreadID, l.Owner, l.Epoch).Scan(&open)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil || !open || !wake {
			return err
		}
		return pg.Notify(ctx, tx, pg.Notice{Kind: pg.NoticePrompt, ThreadID: l.ThreadID})
	})
	return pg.Wrap(err, "release the lease of thread %d", l.ThreadID)
}

// Unattended returns the threads that have a prompt or a running turn and that owner may take: nobody's, and its
// own; the longest waiting first. It omits those whose prompt sleeps (see [ledger.Store.WaitForBudget] and
// [inbox.Store.PutOffPrompt]) or whose turn is parked (see [turns.Store.ParkTurn]). held lists the threads that it already
// works on.
func (s *Store) Unattended(ctx context.Context, owner string, held []int64) ([]int64, error) {
	rows, err := s.db.Query(ctx, `
		SELECT t.id FROM threads t
		WHERE (t.lease_owner IS NULL OR t.lease_owner = $1)
		  AND NOT t.id = ANY ($2::bigint[])
		  AND (EXISTS (SELECT FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running')) AND NOT `+asleep+`
		    OR EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND r.state = 'running') AND NOT `+putOff+`)
		  AND NOT `+Parked+`
		ORDER BY (SELECT min(i.id) FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running')), t.id`, owner, held)
	if err != nil {
		return nil, fmt.Errorf("look for unattended threads: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return ids, pg.Wrap(err, "look for unattended threads")
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
	tag, err := s.db.Exec(ctx, sql, append([]any{l.ThreadID, l.Owner, l.Epoch}, args...)...)
	if err != nil {
		return fmt.Errorf("%s of thread %d: %w", what, l.ThreadID, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("%s of thread %d: %w", what, l.ThreadID, ErrFenced)
	}
	return nil
}

// Hold locks the thread's row for the rest of the transaction and returns its team. It fails with ErrFenced when
// the lease is lost.
func Hold(ctx context.Context, tx pg.Tx, l Lease) (teamID string, err error) {
	var b pgx.Batch
	QueueHold(&b, l, &teamID)
	return teamID, tx.Send(ctx, &b)
}

// QueueHold is [Hold] in a batch, whose other statements then count only if it succeeds.
func QueueHold(b *pgx.Batch, l Lease, teamID *string) {
	b.Queue(`
		SELECT team_id FROM threads WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3
		FOR NO KEY UPDATE`, l.ThreadID, l.Owner, l.Epoch).QueryRow(func(row pgx.Row) error {
		err := row.Scan(teamID)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrFenced
		}
		return err
	})
}

// ThreadOfRunningTurn returns the thread whose turn is running, or
// [pg.ErrNotFound] when it has ended.
func (s *Store) ThreadOfRunningTurn(ctx context.Context, turnID int64) (Thread, error) {
	t, err := pg.CollectOne[Thread](s.db.Query(ctx, `
		SELECT `+Columns+` FROM threads t JOIN turns r ON r.thread_id = t.id
		WHERE r.id = $1 AND r.state = 'running'`, turnID))
	return t, pg.Wrap(err, "read the thread of turn %d", turnID)
}

// ThreadOfTurn returns the thread of a turn, or [pg.ErrNotFound].
func (s *Store) ThreadOfTurn(ctx context.Context, turnID int64) (Thread, error) {
	t, err := pg.CollectOne[Thread](s.db.Query(ctx, `
		SELECT `+Columns+` FROM threads t JOIN turns r ON r.thread_id = t.id WHERE r.id = $1`, turnID))
	return t, pg.Wrap(err, "read the thread of turn %d", turnID)
}

// Teams are all teams in this database, in order.
func (s *Store) Teams(ctx context.Context) ([]string, error) {
	// An index scan that skips from team to team, instead of reading every thread.
	teams, err := pg.CollectColumn[string](s.db.Query(ctx, `
		WITH RECURSIVE teams AS (
			SELECT min(team_id) AS team_id FROM threads
			UNION ALL
			SELECT (SELECT min(h.team_id) FROM threads h WHERE h.team_id > t.team_id) FROM teams t WHERE t.team_id IS NOT NULL)
		SELECT team_id FROM teams WHERE team_id IS NOT NULL ORDER BY team_id`))
	return teams, pg.Wrap(err, "list the teams")
}

// RestingThreads are those of the threads without anything to do on any replica, with their last activity.
func (s *Store) RestingThreads(ctx context.Context, ids []int64) (since map[int64]time.Time, err error) {
	rows, err := s.db.Query(ctx, `
		SELECT t.id, t.active_at FROM threads t
		WHERE t.id = ANY ($1) AND `+Unheld+`
		  AND NOT EXISTS (SELECT FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running'))
		  AND NOT EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND r.state = 'running')`, ids)
	if err != nil {
		return nil, fmt.Errorf("look for threads that rest: %w", err)
	}
	since = map[int64]time.Time{}
	var id int64
	var at time.Time
	if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error { since[id] = at; return nil }); err != nil {
		return nil, fmt.Errorf("look for threads that rest: %w", err)
	}
	return since, nil
}
