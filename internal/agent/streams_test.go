package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
)

// streamReader keeps the books of what a writtenCLI says, as a worker does.
type streamReader struct {
	t       testing.TB
	store   *store.Store
	cli     *writtenCLI
	lease   store.Lease
	turn    int64
	version string
	epoch   int
	session string
	meter   *claude.Meter
	content claude.Output
	entries []store.LedgerEntry
	// allowed is what of a killed turn nobody told, and totals counts how often a total
	// was rounded; by session.
	allowed map[string]int64
	totals  map[string]int64
}

// TestLedgerOfWrittenStreams holds that the entries of a thousand random streams, of
// CLIs that restore their totals and of CLIs that do not, add up to what their calls
// cost: half a micro-dollar per total that was read apart, and where a process was
// killed in an answer at most that answer. No amount is negative, and the books are
// as the store's own checks want them.
func TestLedgerOfWrittenStreams(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	const histories = 1000
	readers := make([]*streamReader, histories)
	for i := range readers {
		r := rand.New(rand.NewPCG(uint64(i), 9))
		readers[i] = newStreamReader(t, s, i, newWrittenCLI(r, i%2 == 0))
		readers[i].play(t.Context(), r)
		if t.Failed() {
			t.Fatalf("history %d", i)
		}
	}
	booked := readBooks(t, url)
	exact, sessions := 0, 0
	for i, b := range readers {
		perSession := map[string]int64{}
		for key, nano := range b.cli.spent {
			perSession[key[0]] += nano
		}
		for session, nano := range perSession {
			sessions++
			d, r := nano-booked[session], 500*(b.totals[session]+1)
			if d > -1000 && d < 1000 {
				exact++
			}
			if d < -r || d > b.allowed[session]+r {
				t.Errorf("history %d, session %s: spent %d n$, booked %d n$: the difference %d is not within −%d and %d + %d", i, session, nano, booked[session], d, r, b.allowed[session], r)
			}
		}
	}
	t.Logf("%d histories, %d sessions, %d of them to the micro-dollar", histories, sessions, exact)
	differences, err := s.VerifyRollups(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences {
		t.Errorf("the books differ: %+v", d)
	}
}

func readBooks(t *testing.T, url string) map[string]int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // it only reads
	rows, err := conn.Query(t.Context(), `SELECT session_id::text, 1000 * sum(micro_usd)::bigint FROM ledger GROUP BY session_id`)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	var session string
	var nano int64
	if _, err := pgx.ForEachRow(rows, []any{&session, &nano}, func() error { out[session] = nano; return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func newStreamReader(t *testing.T, s *store.Store, n int, cli *writtenCLI) *streamReader {
	t.Helper()
	b := &streamReader{t: t, store: s, cli: cli, version: "2.1.276", allowed: map[string]int64{}, totals: map[string]int64{}}
	if cli.restores {
		b.version = pinnedCLI
	}
	ctx := t.Context()
	key := store.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: fmt.Sprintf("%d.1", n)}
	id, _, err := s.Receive(ctx, store.Envelope{
		EventID: uuid.NewString(), Kind: store.KindMessage, TeamID: "T1", ChannelID: "C1", ThreadTS: key.ThreadTS, TS: key.ThreadTS, UserID: "U1", Payload: json.RawMessage(`{}`),
	})
	b.must(err)
	th, _, err := s.AcceptPrompt(ctx, store.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "go"})
	b.must(err)
	th, _, err = s.AcquireLease(ctx, th.ID, "replica", time.Hour)
	b.must(err)
	b.lease = store.Lease{ThreadID: th.ID, Owner: "replica", Epoch: th.LeaseEpoch}
	b.process(ctx, true)
	turn, _, _, err := s.BeginTurn(ctx, b.lease, b.session, b.epoch)
	b.must(err)
	b.turn = turn.ID
	return b
}

func (b *streamReader) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// process begins an epoch for a new process, from what it says of its total.
func (b *streamReader) process(ctx context.Context, newSession bool) {
	b.t.Helper()
	if newSession {
		b.must(b.store.NewSession(ctx, b.lease, b.cli.session, b.session))
	}
	b.session = b.cli.session
	b.content = claude.Output{}
	m, err := claude.Decode(b.cli.result("success")) // get_usage answers the same figures
	b.must(err)
	baseline := m.(*claude.Result).Running
	b.meter = claude.NewMeter(baseline)
	b.newEpoch(ctx, baseline.TotalMicroUSD)
}

func (b *streamReader) newEpoch(ctx context.Context, baseline int64) {
	b.t.Helper()
	var err error
	b.epoch, err = b.store.BeginEpoch(ctx, b.lease, b.session, b.version, baseline)
	b.must(err)
	b.totals[b.session] += 2 // where it begins, and where it ends
}

// read takes in a line.
func (b *streamReader) read(ctx context.Context, line []byte) {
	b.t.Helper()
	m, err := claude.Decode(line)
	b.must(err)
	b.content = b.content.Fold(m)
	switch m := m.(type) {
	case *claude.ConversationReset:
		b.meter.Reset()
		b.must(b.store.NewSession(ctx, b.lease, b.cli.session, b.session))
		b.session = b.cli.session
		b.newEpoch(ctx, 0)
	case *claude.Result:
		deltas, reset := b.meter.Observe(m.Running)
		if reset {
			b.newEpoch(ctx, 0)
		}
		b.book(deltas, store.LedgerTurn)
		b.content = b.content.Next()
	}
}

func (b *streamReader) book(deltas []claude.ModelDelta, kind store.LedgerKind) {
	b.t.Helper()
	for _, d := range deltas {
		if d.MicroUSD < 0 || d.Input < 0 || d.Output < 0 {
			b.t.Errorf("a negative entry: %+v", d)
		}
		short, long := d.CacheWrites()
		b.entries = append(b.entries, store.LedgerEntry{
			Kind: kind, SessionID: b.session, Epoch: b.epoch, Model: d.Model, Input: d.Input, Output: d.Output, CacheRead: d.CacheRead,
			CacheWrite5m: short, CacheWrite1h: long, WebSearches: d.WebSearches, MicroUSD: d.MicroUSD, TotalBefore: d.Before, TotalAfter: d.After,
		})
	}
}

// play is one random history.
func (b *streamReader) play(ctx context.Context, r *rand.Rand) {
	b.t.Helper()
	c := b.cli
	turn := func() {
		for _, call := range c.spend(r.IntN(4), true) {
			for _, line := range call.streamed(true) {
				b.read(ctx, line)
			}
		}
		b.read(ctx, c.result([]string{"success", "error_during_execution", "error_max_turns"}[r.IntN(3)]))
	}
	// quit has the books closed before the process ends, as get_usage tells.
	quit := func() {
		b.read(ctx, c.result("success"))
		c.exit()
	}
	turn()
	for range 2 + r.IntN(6) {
		switch r.IntN(10) {
		case 0: // helper calls, of which only totals tell
			c.spend(1+r.IntN(2), true)
		case 1:
			quit()
			c.resume()
			b.process(ctx, false)
		case 2: // killed between turns: what no total has told is lost
			for key, nano := range c.unreported {
				b.allowed[key[0]] += nano
			}
			clear(c.unreported)
			c.resume()
			b.process(ctx, false)
		case 3: // killed in mid-turn, perhaps in an answer
			b.killed(ctx, r)
			c.resume()
			b.process(ctx, false)
		case 4:
			quit()
			c.fork()
			b.process(ctx, true)
		case 5:
			b.read(ctx, c.result("success"))
			b.read(ctx, c.clear())
			b.read(ctx, c.result("success"))
		case 6: // a total that goes back without a word
			b.read(ctx, c.result("success"))
			c.begin(c.session)
			b.read(ctx, c.result("success"))
		default:
			turn()
		}
	}
	turn()
	_, err := b.store.FinishTurn(ctx, b.lease, store.FinishedTurn{ID: b.turn, State: "done", Entries: b.entries, Approvals: store.ApprovalCancelled})
	b.must(err)
}

// killed is the end of a process in mid-turn: the calls are billed, the CLI never
// tells of them, and of the last one not even the stream tells all.
func (b *streamReader) killed(ctx context.Context, r *rand.Rand) {
	b.t.Helper()
	b.read(ctx, b.cli.result("success"))
	calls := b.cli.spend(1+r.IntN(3), false)
	for i, call := range calls {
		whole := i < len(calls)-1 || r.IntN(2) == 0
		lines := call.streamed(whole)
		if !whole {
			b.allowed[b.session] += call.nano
			lines = lines[:r.IntN(len(lines)+1)]
		}
		for _, line := range lines {
			b.read(ctx, line)
		}
	}
	b.book(b.meter.Estimate(b.content.Calls), store.LedgerEstimate)
	b.totals[b.session] += int64(len(calls)) // each model's estimate is rounded
}
