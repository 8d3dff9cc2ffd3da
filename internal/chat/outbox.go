package chat

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

const (
	// sweepEvery is how often this process claims outbox rows that nobody sends.
	sweepEvery = 2 * time.Second
	// renewEvery is how often the claims on rows in hand are renewed.
	renewEvery = outbox.Hold / 3
	// sweepMost is how many rows are claimed at once; with inHandMost in hand no more are.
	sweepMost, inHandMost = 50, 200
	// outboxTime bounds one access to the database.
	outboxTime = 10 * time.Second
)

// Outbox sends outbox rows, and deletes each once Slack has it. Rows that this process wrote
// come through Tell, or through begun if sending has already started. Rows of a dead replica
// are claimed by sweep. Rows of a thread are sent one after another where their order matters.
type Outbox struct {
	app *Chat

	mu     sync.Mutex
	lanes  map[threads.ThreadKey][]*delivery
	inHand map[int64]bool // rows that this process has claimed
	over   []int64        // rows to be deleted
	shown  []outbox.Shown
	back   []int64 // rows to be tried again

	wake      chan struct{} // has a token when over, shown or back have something
	sweepSoon chan struct{} // has a token when there may be rows to claim
	closing   chan struct{} // closed when nothing may be sent any more
	sending   sync.WaitGroup
}

// delivery is an outbox row on its way.
type delivery struct {
	row   outbox.Row
	start func(end func(error)) // nil: it has begun
	done  chan error            // gets its outcome; see publish.Message.OnEnd
}

func newOutbox(a *Chat) *Outbox {
	return &Outbox{app: a, lanes: map[threads.ThreadKey][]*delivery{}, inHand: map[int64]bool{}, wake: make(chan struct{}, 1), sweepSoon: make(chan struct{}, 1), closing: make(chan struct{})}
}

// Tell sends outbox rows, each when those before it in its thread are there.
func (o *Outbox) Tell(rows ...outbox.Row) {
	posts := o.app.posts
	for _, w := range rows {
		switch w.Kind {
		case outbox.Turn, outbox.Left, outbox.GivenUp, outbox.Mark, outbox.Said:
			o.put(&delivery{row: w, start: func(end func(error)) { o.show(w, end) }, done: make(chan error, 1)})
		case outbox.Whisper:
			o.Keep(w.ID)
			o.show(w, func(err error) { o.Ended(w, err) })
		case outbox.Card:
			posts.Show(outbox.CardPost, w.CardID)
		case outbox.Wait:
			posts.Show(outbox.WaitPost, FormatID(w.InboxID))
		case outbox.Waits:
			o.showWaits(w)
		case outbox.Queue:
			o.Keep(w.ID)
			queuePosts{posts}.takeOver(w)
		case outbox.Budget:
			posts.Show(outbox.BudgetPost, w.NoticeID)
		default:
			o.Ended(w, errUnknownRow)
		}
	}
}

// begun records that a row is being sent, so that those after it wait. end must be called with
// its outcome.
func (o *Outbox) begun(w outbox.Row) (end func(error)) {
	e := &delivery{row: w, done: make(chan error, 1)}
	o.put(e)
	return func(err error) { e.done <- err }
}

func (o *Outbox) put(e *delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.closing:
		return // it is in the database
	default:
	}
	o.inHand[e.row.ID] = true
	key := e.row.ThreadKey
	lane, runs := o.lanes[key]
	o.lanes[key] = append(lane, e)
	if !runs {
		o.sending.Go(func() { o.run(key) })
	}
}

// run sends the rows of a thread until there is none. If one cannot be sent now, it and those
// behind it that have not begun are put back.
func (o *Outbox) run(key threads.ThreadKey) {
	stuck := false
	for {
		o.mu.Lock()
		if len(o.lanes[key]) == 0 {
			delete(o.lanes, key)
			o.mu.Unlock()
			return
		}
		e := o.lanes[key][0]
		o.lanes[key] = o.lanes[key][1:]
		o.mu.Unlock()
		if e.start != nil {
			if stuck {
				o.PutBack(e.row.ID)
				continue
			}
			e.start(func(err error) { e.done <- err })
		}
		select {
		case err := <-e.done:
			stuck = !o.Ended(e.row, err) || stuck
		case <-o.closing:
			return
		}
	}
}

// Ended records a row's outcome. It returns false if the row will be sent again.
func (o *Outbox) Ended(w outbox.Row, err error) bool {
	return o.settle(w.ID, err, func() { o.over = append(o.over, w.ID) },
		zap.String("kind", string(w.Kind)), zap.String("channel", w.ChannelID), zap.String("thread", w.ThreadTS), zap.Int64("turn", w.TurnID))
}

// settle records a row's outcome. A temporary error puts the row back, and it returns false.
// Otherwise it calls note under o.mu, and logs a lasting error with the fields in about.
func (o *Outbox) settle(id int64, err error, note func(), about ...zap.Field) bool {
	if err != nil && o.isTemporary(err) {
		o.PutBack(id)
		return false
	}
	if err != nil {
		o.app.c.Log.With(about...).Error("giving up on an outbox row: Slack refuses what it shows", zap.Int64("outbox", id), zap.Error(err))
	}
	o.mu.Lock()
	note()
	o.mu.Unlock()
	o.signal()
	return true
}

// PutBack gives a row back, so that it is sent again, here or by another replica.
func (o *Outbox) PutBack(id int64) {
	o.mu.Lock()
	o.back = append(o.back, id)
	o.mu.Unlock()
	o.signal()
}

// Keep has the claim on a row renewed while it is being sent.
func (o *Outbox) Keep(id int64) {
	if id == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inHand[id] = true
}

// Showing records that something is being shown as the database has it. end must be called
// with the outcome.
func (o *Outbox) Showing(s outbox.Shown) (end func(error)) {
	if s.UpTo == 0 {
		return nil // nobody waits for it
	}
	o.Keep(s.UpTo)
	return func(err error) {
		o.settle(s.UpTo, err, func() { o.shown = append(o.shown, s) }, zap.String("kind", string(s.Kind)), zap.String("of", s.Subject))
	}
}

func (o *Outbox) signal() { signal(o.wake) }

// SweepNow has unclaimed rows claimed and sent now, not at the next tick.
func (o *Outbox) SweepNow() { signal(o.sweepSoon) }

// keepUp deletes the rows that were sent, renews the claims on those in hand, and claims those
// of dead replicas, until ctx ends.
func (o *Outbox) keepUp(ctx context.Context) {
	sweep, renew := time.NewTicker(sweepEvery), time.NewTicker(renewEvery)
	defer sweep.Stop()
	defer renew.Stop()
	o.sweep(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
			o.note(ctx)
		case <-renew.C:
			o.renew(ctx)
			o.clearStalePlaces(ctx)
		case <-o.sweepSoon:
			o.sweep(ctx)
		case <-sweep.C:
			o.note(ctx)
			o.sweep(ctx)
		}
	}
}

// Close stops sending, and releases the rows that were not sent to other replicas.
func (o *Outbox) Close() {
	o.mu.Lock()
	close(o.closing)
	o.mu.Unlock()
	o.sending.Wait()
	ctx := context.Background()
	o.note(ctx)
	o.ask(ctx, "release the outbox rows that were not sent", o.app.c.Store.ReleaseOutbox)
}

// note deletes the rows that were sent, and puts back those to be tried again. If the database
// is away, it does so later.
func (o *Outbox) note(ctx context.Context) {
	o.mu.Lock()
	over, shown, back := o.over, o.shown, o.back
	o.over, o.shown, o.back = nil, nil, nil
	o.mu.Unlock()
	if len(over)+len(shown) > 0 && !o.ask(ctx, "note what was sent", func(ctx context.Context) error { return o.app.c.Store.EndOutbox(ctx, over, shown) }) {
		o.mu.Lock()
		o.over, o.shown = append(over, o.over...), append(shown, o.shown...)
		o.mu.Unlock()
		over, shown = nil, nil
	}
	if len(back) > 0 && !o.ask(ctx, "put back what was not sent", func(ctx context.Context) error { return o.app.c.Store.PutBackOutbox(ctx, back) }) {
		o.mu.Lock()
		o.back = append(back, o.back...)
		o.mu.Unlock()
		back = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range slices.Concat(over, back) {
		delete(o.inHand, id)
	}
	for _, s := range shown {
		delete(o.inHand, s.UpTo)
	}
}

func (o *Outbox) renew(ctx context.Context) {
	o.mu.Lock()
	ids := slices.Collect(maps.Keys(o.inHand))
	o.mu.Unlock()
	if len(ids) > 0 {
		o.ask(ctx, "renew the claims on outbox rows", func(ctx context.Context) error { return o.app.c.Store.HoldOutbox(ctx, ids) })
	}
}

// clearStalePlaces removes the posts about a place in the queue from threads that no longer wait.
func (o *Outbox) clearStalePlaces(ctx context.Context) {
	o.ask(ctx, "find posts about places in the queue that are over", func(ctx context.Context) error {
		stale, err := o.app.c.Store.StalePlaces(ctx, o.app.self.Team)
		for _, t := range stale {
			placePosts{o.app.posts}.showPlace(t, agent.Served)
		}
		return err
	})
}

// sweep claims rows that nobody sends, and sends them.
func (o *Outbox) sweep(ctx context.Context) {
	o.mu.Lock()
	busy := len(o.inHand) >= inHandMost
	o.mu.Unlock()
	if busy {
		return
	}
	if !o.ask(ctx, "claim outbox rows that nobody sends", func(ctx context.Context) error {
		rows, err := o.app.c.Store.ClaimOutbox(ctx, o.app.self.Team, sweepMost)
		if len(rows) > 0 {
			o.app.c.Log.Info("took over outbox rows that nobody sent", zap.Int("rows", len(rows)))
		}
		o.Tell(rows...)
		return err
	}) && ctx.Err() == nil {
		o.app.cursor.mute() // what Slack delivers now may not be stored
	}
}

// ask accesses the database, and reports whether that succeeded. what is for the log.
func (o *Outbox) ask(ctx context.Context, what string, fn func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, outboxTime)
	defer cancel()
	if err := fn(ctx); err != nil {
		if ctx.Err() == nil || context.Cause(ctx) == context.DeadlineExceeded { //nolint:errorlint // it is that very value
			o.app.c.Log.Warn(what, zap.Error(err))
		}
		return false
	}
	return true
}

// isTemporary reports whether a later try may succeed.
func (o *Outbox) isTemporary(err error) bool {
	return !errors.Is(err, errUnknownRow) && o.app.screen.IsTemporary(err)
}

// errUnknownRow is the outcome of a row of a kind that a newer version wrote.
var errUnknownRow = errors.New("this version does not know what it is")

// PostedAs is the ts of the only message that shows something; empty while there is none.
func (a *gate) PostedAs(ctx context.Context, kind outbox.PostKind, id string) (ts string, err error) {
	posts, err := a.c.Store.Posts(ctx, kind, id)
	if len(posts) > 0 {
		ts = posts[0].TS
	}
	return ts, err
}

// ParseID reverses [FormatID]. A text that is no number gives 0, which is no row's id.
func ParseID(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64)
	return n
}

// FormatID is the number of a row or of a moment as text.
func FormatID(n int64) string { return strconv.FormatInt(n, 10) }
