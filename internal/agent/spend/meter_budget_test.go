package spend

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"deckhand/internal/gateway"
	"deckhand/internal/playground/model"
	"deckhand/internal/store"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

// inside is a session's way to the playground's model, with the real books and a budget
// of the team.
type inside struct {
	*gateway.Session
	t       *testing.T
	meter   *Meter
	running sync.WaitGroup
	model   *model.Server
	url     string // of the database
	env     map[string]string
	id      string // the session's
}

func newInside(t *testing.T, limitMicroUSD int64) *inside {
	t.Helper()
	ctx := t.Context()
	srv, err := model.New(model.Options{})
	must(t, err)
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	url := storetest.URL(t)
	db := storetest.Open(t, url, store.Options{})
	key := threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: "1.1"}
	envelope, _, err := db.Receive(ctx, inbox.Envelope{EventID: "1", Kind: inbox.Message, TeamID: "T1", ChannelID: "C1", ThreadTS: "1.1", TS: "1.1", UserID: "U1", Payload: json.RawMessage(`{}`)})
	must(t, err)
	th, _, err := db.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: envelope, Thread: key, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "go"})
	must(t, err)
	th, _, err = storetest.Acquire(ctx, db, th.ID, "A")
	must(t, err)
	team := Budget{Scope: ledger.BudgetWorkspace, Period: ledger.BudgetDaily, LimitMicroUSD: limitMicroUSD}
	lease := threads.Lease{ThreadID: th.ID, Owner: "A", Epoch: th.LeaseEpoch}
	i := &inside{t: t, model: srv, url: url, env: map[string]string{}, id: uuid.NewString()}
	must(t, db.NewSession(ctx, lease, i.id, ""))
	epoch, err := db.BeginEpoch(ctx, lease, i.id, "2.1.329", 0)
	must(t, err)
	row, _, _, err := db.BeginTurn(ctx, lease, i.id, epoch)
	must(t, err)
	i.meter = New(Config{Store: db, Budgets: []Budget{team}}).NewMeter(Session{
		Project: Project{Name: "web", Named: gateway.Provider{}.Model}, Lease: lease, Thread: th, Log: zap.NewNop(), OnHeld: func() {}, OnStray: func(threads.ThreadKey) {},
	})
	i.running.Go(i.meter.Run)
	i.meter.MoveTo(i.id, epoch)
	i.meter.BeginTurn(row)
	environment := map[string]string{"ANTHROPIC_BASE_URL": web.URL, "ANTHROPIC_API_KEY": "sk-ant-test"}
	g, err := gateway.New(gateway.Options{Dir: filepath.Join(t.TempDir(), "g"), Getenv: func(name string) string { return environment[name] }})
	must(t, err)
	t.Cleanup(g.Close)
	i.Session, err = g.Open(ctx, gateway.Opening{Meter: i.meter})
	must(t, err)
	for _, entry := range i.Env() {
		name, value, _ := strings.Cut(entry, "=")
		i.env[name] = value
	}
	return i
}

// call asks the model, and hangs up when the answer has begun. It is false when the
// budget refused the call.
func (i *inside) call(n int) bool {
	body := fmt.Sprintf(`{"model":"claude-sonnet-4-5-20250929","max_tokens":8000,"stream":true,"messages":[{"role":"user","content":"call %d\nusage: {\"input_tokens\":1000,\"output_tokens\":3000}\nfill: 400"}]}`, n)
	ctx, hangUp := context.WithCancel(i.t.Context())
	defer hangUp()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, i.env["ANTHROPIC_BASE_URL"]+"/v1/messages", strings.NewReader(body))
	if err != nil {
		i.t.Error(err)
		return false
	}
	name, value, _ := strings.Cut(i.env["ANTHROPIC_CUSTOM_HEADERS"], ": ")
	r.Header.Set(name, value)
	r.Header.Set("X-Api-Key", i.env["ANTHROPIC_API_KEY"])
	r.Header.Set("X-Claude-Code-Session-Id", i.id)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", i.env["ANTHROPIC_UNIX_SOCKET"])
	}}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		i.t.Error(err)
		return false
	}
	defer resp.Body.Close() //nolint:errcheck // it is left
	if resp.StatusCode == http.StatusOK {
		_, _ = io.ReadFull(resp.Body, make([]byte, 64))
	}
	return resp.StatusCode != http.StatusPaymentRequired
}

// A session that hangs up on its own calls gets nothing by it: each counts as it is
// billed, also those that are read to their end when it has gone.
func TestABudgetHoldsAgainstWhoHangsUp(t *testing.T) {
	t.Parallel()
	const each, limit = 1000*3 + 3000*15, 500_000 // in micro-USD
	i := newInside(t, limit)
	var callers sync.WaitGroup
	for n := range 20 {
		callers.Go(func() {
			for i.call(n) {
				n += 20
			}
		})
	}
	callers.Wait()
	i.Close()
	i.meter.Close()
	<-i.meter.done
	conn, err := pgx.Connect(t.Context(), i.url)
	must(t, err)
	defer conn.Close(context.Background()) //nolint:errcheck // it only reads
	var spent, bounds int64
	must(t, conn.QueryRow(t.Context(), "SELECT sum(micro_usd), sum(bound_micro_usd) FROM ledger").Scan(&spent, &bounds))
	bill := i.model.Bill().Total.MeteredMicroUSD
	if spent != bill || bounds != 0 || spent < limit || spent > limit+each {
		t.Errorf("the model's bill is %d µ$, %d are counted and %d may come, of a limit of %d", bill, spent, bounds, limit)
	}
}
