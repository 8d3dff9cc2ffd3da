package slackui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/agent/booktest"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
)

// A desk is the app with the agent's books in memory and a Slack that answers by a
// script, on a synthetic clock: the scheduler, the renderer and the supervisor are the
// real ones.

// fault is how Slack answers a call. The zero value is well, after 50 ms.
type fault struct {
	slow time.Duration // besides the 50 ms
	err  error         // instead of an effect
	deaf bool          // it has its effect, and no answer comes
}

// slackCall is a call that Slack got.
type slackCall struct {
	at     time.Time
	method string
	args   url.Values
	body   string // as it was sent
	ts     string // posted or edited
	ok     bool
}

// shownMessage is a message as people see it.
type shownMessage struct {
	channel, thread, text, blocks string
	metadata                      string // as it was posted
	deleted                       bool
	actions                       bool // has a button that changes something
}

// scripted is a Slack.
type scripted struct {
	answer func(n int, c slackCall) fault // n counts calls from 1; may be nil

	mu       sync.Mutex
	calls    []slackCall
	messages map[string]*shownMessage
	posted   []string
	flying   map[string]int
	problems []string
	files    []sharedIn
}

// sharedIn is a file in a thread.
type sharedIn struct{ id, name, thread string }

func newScripted() *scripted {
	return &scripted{messages: map[string]*shownMessage{}, flying: map[string]int{}}
}

// answers has calls answered by fn from now on.
func (s *scripted) answers(fn func(n int, c slackCall) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = fn
}

// Do answers a request of a real slack.Client.
func (s *scripted) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if err := req.ParseForm(); err != nil {
		return nil, err
	}
	c := slackCall{at: time.Now(), method: path.Base(req.URL.Path), args: req.Form, body: string(body), ts: req.Form.Get("ts")}
	s.mu.Lock()
	n := len(s.calls)
	s.calls = append(s.calls, c)
	var f fault
	if s.answer != nil {
		f = s.answer(n+1, c)
	}
	if c.ts != "" && c.method == "chat.update" {
		if s.flying[c.ts]++; s.flying[c.ts] > 1 {
			s.problems = append(s.problems, "two edits of "+c.ts+" at once")
		}
	}
	if f.deaf {
		c.ok = s.effect(&c, map[string]any{}) == nil
		s.calls[n] = c
		s.mu.Unlock()
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	s.mu.Unlock()
	select {
	case <-req.Context().Done():
		f.err = req.Context().Err()
	case <-time.After(50*time.Millisecond + f.slow):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ts != "" && c.method == "chat.update" {
		s.flying[c.ts]--
	}
	out := map[string]any{"ok": true}
	if f.err == nil {
		f.err = s.effect(&c, out)
	}
	c.ok = f.err == nil
	s.calls[n] = c
	rec := httptest.NewRecorder()
	switch err := f.err.(type) { //nolint:errorlint // the test made it, unwrapped
	case nil:
		_ = json.NewEncoder(rec).Encode(out)
	case *slack.RateLimitedError:
		rec.Header().Set("Retry-After", strconv.Itoa(int(err.RetryAfter.Seconds())))
		rec.WriteHeader(http.StatusTooManyRequests)
	case slack.StatusCodeError:
		rec.WriteHeader(err.Code)
	case *slack.SlackErrorResponse:
		_ = json.NewEncoder(rec).Encode(map[string]any{"ok": false, "error": err.Err})
	default:
		return nil, err
	}
	return rec.Result(), nil
}

// effect does what a call asks for. s.mu is held.
func (s *scripted) effect(c *slackCall, out map[string]any) error {
	arg := c.args.Get
	switch c.method {
	case "chat.postMessage", "chat.update":
		m := s.messages[c.ts]
		if c.method == "chat.postMessage" {
			c.ts = fmt.Sprintf("%d.%06d", 1000+len(s.posted), len(s.posted))
			m = &shownMessage{channel: arg("channel"), thread: arg("thread_ts"), metadata: arg("metadata")}
			s.messages[c.ts] = m
			s.posted = append(s.posted, c.ts)
		}
		if m == nil || m.deleted {
			return &slack.SlackErrorResponse{Err: "message_not_found"}
		}
		m.text, m.blocks = arg("text"), canonical(arg("blocks"))
		m.actions = strings.Count(m.blocks, `"type":"button"`) > strings.Count(m.blocks, `"action_id":"steps"`)
		out["ts"], out["channel"] = c.ts, m.channel
	case "chat.delete":
		m := s.messages[arg("ts")]
		if m == nil || m.deleted {
			return &slack.SlackErrorResponse{Err: "message_not_found"}
		}
		m.deleted = true
	case "users.info":
		out["user"] = map[string]any{"id": arg("user"), "team_id": deskTeam, "name": strings.ToLower(arg("user"))}
	case "conversations.info":
		out["channel"] = map[string]any{"id": arg("channel"), "is_private": arg("channel") == deskPrivate, "is_im": access.IsDirect(arg("channel"))}
	case "users.conversations":
		if arg("user") == "UGRACE" {
			out["channels"] = []any{map[string]any{"id": deskPrivate}}
		}
	case "conversations.open":
		out["channel"] = map[string]any{"id": "D" + arg("users")}
	case "conversations.history":
		var found []any
		for _, ts := range s.posted {
			if m := s.messages[ts]; m.channel == arg("channel") && m.thread == "" && !m.deleted {
				found = append(found, map[string]any{"ts": ts, "user": "UBOT", "text": m.text, "metadata": json.RawMessage(cmp.Or(m.metadata, "{}"))})
			}
		}
		out["messages"] = found
	case "conversations.replies":
		var found []any
		if m := s.messages[arg("latest")]; m != nil && !m.deleted {
			found = append(found, map[string]any{"ts": arg("latest"), "text": m.text, "blocks": json.RawMessage(cmp.Or(m.blocks, "[]"))})
		}
		for _, ts := range s.posted {
			if m := s.messages[ts]; arg("include_all_metadata") != "" && m.thread == c.ts && !m.deleted {
				found = append(found, map[string]any{"ts": ts, "user": "UBOT", "text": m.text, "metadata": json.RawMessage(cmp.Or(m.metadata, "{}"))})
			}
		}
		for i, f := range s.files {
			if f.thread == c.ts && f.thread != "" && arg("include_all_metadata") != "" {
				found = append(found, map[string]any{"ts": fmt.Sprintf("9.%06d", i), "user": "UBOT", "files": []any{map[string]any{"id": f.id, "name": f.name}}})
			}
		}
		out["messages"] = found
	case "files.getUploadURLExternal":
		id := "F" + strconv.Itoa(len(s.files)+1)
		s.files = append(s.files, sharedIn{id: id, name: arg("filename")})
		out["upload_url"], out["file_id"] = "https://slack.invalid/upload", id
	case "files.completeUploadExternal":
		for i := range s.files {
			if strings.Contains(arg("files"), `"`+s.files[i].id+`"`) {
				s.files[i].thread = arg("thread_ts")
			}
		}
		out["files"] = []any{map[string]any{"id": "F1", "title": "x"}}
	}
	return nil
}

// canonical is JSON in one form.
func canonical(raw string) string {
	var v any
	if json.Unmarshal([]byte(raw), &v) != nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil || string(b) == "[]" || string(b) == "null" {
		return ""
	}
	return string(b)
}

// delete takes the n-th message away, as a person may.
func (s *scripted) delete(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < len(s.posted) {
		s.messages[s.posted[n]].deleted = true
	}
}

// inThread are the messages that stand in a thread, in their order.
func (s *scripted) inThread(thread string) []shownMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []shownMessage
	for _, ts := range s.posted {
		if m := s.messages[ts]; m.thread == thread && !m.deleted {
			out = append(out, *m)
		}
	}
	return out
}

// filesIn are the names of the files in a thread.
func (s *scripted) filesIn(thread string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.thread == thread {
			names = append(names, f.name)
		}
	}
	return names
}

// postedIn are the texts of what was posted in a channel.
func (s *scripted) postedIn(channel string) (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ts := range s.posted {
		if m := s.messages[ts]; m.channel == channel {
			texts = append(texts, m.text)
		}
	}
	return texts
}

// whispers are what people were told alone, in their order.
func (s *scripted) whispers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, c := range s.calls {
		if c.method == "chat.postEphemeral" && c.ok {
			out = append(out, c.args.Get("user")+": "+c.args.Get("text"))
		}
	}
	return out
}

func (s *scripted) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c.method == method {
			n++
		}
	}
	return n
}

// slackAllows are calls a minute, as Slack documents them.
var slackAllows = map[string]int{"chat.update": 50, "chat.postEphemeral": 100, "reactions.add": 50}

// check says what is wrong with what Slack has seen, whatever was to be shown.
func (s *scripted) check() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	problems := slices.Clone(s.problems)
	for method, most := range slackAllows {
		var at []time.Time
		for _, c := range s.calls {
			if c.method == method {
				at = append(at, c.at)
			}
		}
		for i := range at {
			if i+most < len(at) && at[i+most].Sub(at[i]) < time.Minute {
				problems = append(problems, fmt.Sprintf("more than %d calls of %s in a minute", most, method))
				break
			}
		}
	}
	return problems
}

// screenBooks are the agent's books and what was posted.
type screenBooks struct {
	*booktest.Books
	rest

	saveTakes, readTakes time.Duration

	mu     sync.Mutex
	turns  map[int64]map[int]store.PostedMessage
	cards  map[string]string
	copies map[string]store.CardCopy
	rated  store.FeedbackReport // what people think of answers
}

// rest is what no desk needs; what the agent's books have goes before it.
type rest struct{ Books }

func newScreenBooks() *screenBooks {
	return &screenBooks{Books: &booktest.Books{}, turns: map[int64]map[int]store.PostedMessage{}, cards: map[string]string{}, copies: map[string]store.CardCopy{}}
}

func (b *screenBooks) withCard(a store.Approval) store.Approval {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.MessageTS = b.cards[a.CardID]
	return a
}

func (b *screenBooks) ApprovalByID(ctx context.Context, id string) (store.Approval, error) {
	a, err := b.Books.ApprovalByID(ctx, id)
	return b.withCard(a), err
}

func (b *screenBooks) CardApprovals(ctx context.Context, cardID string) ([]store.Approval, error) {
	var out []store.Approval
	for _, row := range b.Approvals() {
		if row.CardID != cardID {
			continue
		}
		a, err := b.ApprovalByID(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	if b.readTakes > 0 { // what changes meanwhile is not in it
		time.Sleep(b.readTakes)
	}
	return out, nil
}

func (b *screenBooks) save(ctx context.Context, write func()) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.saveTakes):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	write()
	return nil
}

func (b *screenBooks) SaveTurnMessage(ctx context.Context, turnID int64, m store.PostedMessage) error {
	return b.save(ctx, func() {
		if b.turns[turnID] == nil {
			b.turns[turnID] = map[int]store.PostedMessage{}
		}
		b.turns[turnID][m.Page] = m
	})
}

func (b *screenBooks) SaveApprovalMessage(ctx context.Context, cardID string, m store.PostedMessage) error {
	return b.save(ctx, func() { b.cards[cardID] = m.TS })
}

func (b *screenBooks) PendingApprovals(ctx context.Context, k store.ThreadKey) (out []store.Approval, _ error) {
	for _, row := range b.Approvals() {
		a, err := b.ApprovalByID(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		if a.Thread == k && a.Status == store.ApprovalPending {
			out = append(out, a)
		}
	}
	return out, nil
}

func (b *screenBooks) Concerns(ctx context.Context, k store.ThreadKey, _ string) (served, begins bool, err error) {
	_, err = b.ThreadByKey(ctx, k)
	if errors.Is(err, store.ErrNotFound) {
		return false, false, nil
	}
	return err == nil, false, err
}

func (b *screenBooks) StalePlaces(context.Context, string) ([]store.ThreadKey, error) {
	return nil, nil // nobody waits for a slot here
}

func (b *screenBooks) AddCardCopies(ctx context.Context, copies []store.CardCopy) error {
	return b.save(ctx, func() {
		for _, c := range copies {
			if _, known := b.copies[c.CardID+c.UserID]; !known {
				c.CreatedAt = time.Now()
				b.copies[c.CardID+c.UserID] = c
			}
		}
	})
}

func (b *screenBooks) CardCopies(_ context.Context, cardID string) (out []store.CardCopy, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(b.copies)) {
		if b.copies[key].CardID == cardID {
			out = append(out, b.copies[key])
		}
	}
	return out, nil
}

func (b *screenBooks) SaveCardCopy(ctx context.Context, c store.CardCopy) error {
	return b.save(ctx, func() {
		known := b.copies[c.CardID+c.UserID]
		known.TS = c.TS
		b.copies[c.CardID+c.UserID] = known
	})
}

func (b *screenBooks) TurnMessages(_ context.Context, turnID int64) ([]store.PostedMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []store.PostedMessage
	for _, page := range slices.Sorted(maps.Keys(b.turns[turnID])) {
		out = append(out, b.turns[turnID][page])
	}
	return out, nil
}

const (
	deskTeam    = "T1"
	deskChannel = "C1"
	deskPrivate = "C2" // UGRACE is in it
	deskThread  = "1.0"
)

// process is one process of the bot: when it is killed nothing that it does has an
// effect any more.
type process struct {
	app     *App
	dead    atomic.Bool
	stop    context.CancelFunc
	stopped chan struct{}
}

// Do implements slack-go's HTTP client.
func (p *process) do(s *scripted) httpClient {
	return func(r *http.Request) (*http.Response, error) {
		if p.dead.Load() {
			return nil, errors.New("killed")
		}
		return s.Do(r)
	}
}

type httpClient func(*http.Request) (*http.Response, error)

func (f httpClient) Do(r *http.Request) (*http.Response, error) { return f(r) }

// mortalBooks are the books of a process.
type mortalBooks struct {
	*screenBooks
	p *process
}

func (b mortalBooks) save(ctx context.Context, write func(context.Context) error) error {
	if b.p.dead.Load() {
		return errors.New("killed")
	}
	return write(ctx)
}

func (b mortalBooks) ClaimWords(ctx context.Context, teamID string, limit int) (out []store.Word, err error) {
	err = b.save(ctx, func(ctx context.Context) error { out, err = b.screenBooks.ClaimWords(ctx, teamID, limit); return err })
	return out, err
}

func (b mortalBooks) HoldWords(ctx context.Context, ids []int64) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.HoldWords(ctx, ids) })
}

func (b mortalBooks) PutBackWords(ctx context.Context, ids []int64) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.PutBackWords(ctx, ids) })
}

func (b mortalBooks) EndWords(ctx context.Context, ids []int64, shown []store.Shown) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.EndWords(ctx, ids, shown) })
}

func (b mortalBooks) LetWordsGo(ctx context.Context) error {
	return b.save(ctx, b.screenBooks.LetWordsGo)
}

func (b mortalBooks) SaveTurnMessage(ctx context.Context, turnID int64, m store.PostedMessage) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.SaveTurnMessage(ctx, turnID, m) })
}

func (b mortalBooks) AddCardCopies(ctx context.Context, copies []store.CardCopy) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.AddCardCopies(ctx, copies) })
}

func (b mortalBooks) SaveCardCopy(ctx context.Context, c store.CardCopy) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.SaveCardCopy(ctx, c) })
}

func (b mortalBooks) SaveApprovalMessage(ctx context.Context, cardID string, m store.PostedMessage) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.SaveApprovalMessage(ctx, cardID, m) })
}

// desk is one thread in a workspace, with a bot that works there.
type desk struct {
	t     testing.TB
	slack *scripted
	books *screenBooks
	bot   *process
	all   []*process

	lease   store.Lease
	session string
	epoch   int
	calls   access.Call      // how the project calls people
	turn    agent.TurnView   // the one that runs
	shown   []agent.TurnView // as each turn was shown last
	asked   int
}

// atDesk runs a test at a desk, and holds what Slack has seen against the rules that
// always hold.
func atDesk(t *testing.T, test func(d *desk)) {
	t.Helper()
	var problems []string
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer func() {
			d.close()
			problems = d.slack.check()
		}()
		test(d)
	})
	for _, p := range problems {
		t.Error(p)
	}
}

func newDesk(t testing.TB) *desk {
	d := &desk{t: t, slack: newScripted(), books: newScreenBooks()}
	d.start()
	ctx := context.Background()
	d.session = uuid.NewString()
	d.prompt()
	th, _, err := storetest.Acquire(ctx, d.books, d.books.Threads()[0].ID, "replica-1")
	d.must(err)
	d.lease = store.Lease{ThreadID: th.ID, Owner: "replica-1", Epoch: th.LeaseEpoch}
	d.must(d.books.NewSession(ctx, d.lease, d.session, ""))
	d.epoch, err = d.books.BeginEpoch(ctx, d.lease, d.session, "2.1.329", 0)
	d.must(err)
	d.begin()
	return d
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// start starts a process of the bot.
func (d *desk) start() {
	p := &process{stopped: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	client := slack.New("xoxb-test", slack.OptionHTTPClient(p.do(d.slack)), slack.OptionAPIURL("https://slack.invalid/api/"))
	p.app = newApp(Config{
		Store: mortalBooks{d.books, p}, Log: zap.NewNop(), Replica: "replica-1", Calls: map[string]access.Call{"web": d.calls}, Reminders: [][]string{{"thread"}, {"thread", "approvers", "C0OPS"}}, Redact: func(s string) string { return s },
		Access: access.Rules{Roles: access.Roles{Admins: []string{"UADA"}, Approvers: []string{"UGRACE", "UHEIDI"}, Users: []string{"ULINUS"}}},
	}, client, identity{TeamID: deskTeam, UserID: "UBOT", TeamURL: "https://t.slack.com/"})
	p.app.agent = agent.New(agent.Config{Store: d.books, Frontend: p.app.Frontend(), Authoriser: p.app, Reminder: p.app, Policy: &policy.Policy{}, Replica: "replica-1"})
	go func() {
		defer close(p.stopped)
		p.app.publish(ctx)
	}()
	d.bot, d.all = p, append(d.all, p)
}

// kill ends the process at once; another one is started.
func (d *desk) kill() {
	d.bot.dead.Store(true)
	d.start()
}

// close ends all processes.
func (d *desk) close() {
	for _, p := range d.all {
		p.stop()
		<-p.stopped
		p.app.envelopes.Wait()
	}
	time.Sleep(time.Minute) // look-ups that nobody waits for any more end by themselves
}

// rest waits until there is nothing left to send.
func (d *desk) rest() {
	d.t.Helper()
	for range 100_000 {
		synctest.Wait()
		if d.bot.app.publisher.Pending() == 0 && !d.bot.app.frontend.busy() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	d.t.Fatal("it does not come to rest")
}

// over waits until nothing is left in the outbox, either.
func (d *desk) over() {
	d.t.Helper()
	for range 10_000 {
		if d.rest(); len(d.books.Words()) == 0 {
			return
		}
		time.Sleep(time.Second)
	}
	d.t.Fatal("something is left to be said")
}

// prompt puts a prompt into the inbox.
func (d *desk) prompt() {
	ctx := context.Background()
	key := store.ThreadKey{TeamID: deskTeam, ChannelID: deskChannel, ThreadTS: deskThread}
	id, _, err := d.books.Receive(ctx, store.Envelope{EventID: uuid.NewString(), Kind: store.KindMessage, TeamID: deskTeam, ChannelID: deskChannel, TS: "1.0", ThreadTS: deskThread, UserID: "ULINUS", Payload: json.RawMessage(`{}`)})
	d.must(err)
	_, _, err = d.books.AcceptPrompt(ctx, store.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "ULINUS", UUID: uuid.NewString(), Text: "go"})
	d.must(err)
}

// begin begins the next turn.
func (d *desk) begin() {
	if len(d.shown) > 0 {
		d.prompt()
	}
	turn, _, ok, err := d.books.BeginTurn(context.Background(), d.lease, d.session, d.epoch)
	d.must(err)
	if !ok {
		d.t.Fatal("there is no prompt")
	}
	d.turn = agent.TurnView{
		ID: turn.ID, Thread: store.ThreadKey{TeamID: deskTeam, ChannelID: deskChannel, ThreadTS: deskThread},
		Project: "web", Workspace: "/w", RequestedBy: "ULINUS", State: agent.TurnRunning, StartedAt: time.Now(),
	}
	d.shown = append(d.shown, d.turn)
}

func (d *desk) front() agent.Frontend { return d.bot.app.Frontend() }

// show shows the turn as it stands.
func (d *desk) show() {
	t := d.turn
	t.Content.Items, t.Breaks = slices.Clone(t.Content.Items), slices.Clone(t.Breaks)
	d.shown[len(d.shown)-1] = t
	d.front().ShowTurn(t)
}

// say adds to the text that is being written.
func (d *desk) say(text string) {
	items := d.turn.Content.Items
	last := len(items) - 1
	from := 0
	if n := len(d.turn.Breaks); n > 0 {
		from = d.turn.Breaks[n-1]
	}
	if last >= from && items[last].Kind == claude.ItemText && !items[last].Final {
		items[last].Text += text
	} else {
		d.turn.Content.Items = append(items, claude.Item{Kind: claude.ItemText, ID: strconv.Itoa(len(items)), Text: text})
	}
	d.show()
}

// add adds an item of another kind.
func (d *desk) add(it claude.Item) {
	d.settle()
	it.ID = strconv.Itoa(len(d.turn.Content.Items))
	d.turn.Content.Items = append(d.turn.Content.Items, it)
	d.show()
}

// settle makes all that was said final.
func (d *desk) settle() {
	d.turn.Content.Items = slices.Clone(d.turn.Content.Items)
	for i := range d.turn.Content.Items {
		d.turn.Content.Items[i].Final = true
	}
}

// ask asks for a tool, on a new card or on that of an approval.
func (d *desk) ask(card string, terms store.Terms) store.Approval {
	d.settle()
	d.show() // what led to the question, as a worker does
	d.asked++
	terms.Rule = cmp.Or(terms.Rule, "default")
	a, err := d.books.Ask(context.Background(), d.lease, store.Approval{
		ID: newID(), CardID: card, SessionID: d.session, TurnID: d.turn.ID, Kind: store.ApprovalTool, RequestID: uuid.NewString(), ToolUseID: "toolu_" + strconv.Itoa(d.asked),
		ToolName: "Bash", Input: json.RawMessage(fmt.Sprintf(`{"command":"make %d"}`, d.asked)), RequestedBy: "ULINUS", Terms: terms, ExpiresAt: time.Now().Add(time.Hour),
	})
	d.must(err)
	if card == "" {
		d.turn.Breaks = append(d.turn.Breaks, len(d.turn.Content.Items))
	}
	d.turn.Waiting++
	d.front().ShowApproval(a)
	d.show()
	return a
}

// end ends the turn, as a worker does: the books first, then the screen.
func (d *desk) end(state agent.TurnState, problem string) {
	d.settle()
	d.turn.State, d.turn.EndedAt, d.turn.Problem, d.turn.Waiting = state, time.Now(), problem, 0
	words := d.commit()
	d.turn.Word = words[0].ID
	d.show()
	d.front().Tell(words[1:]...)
	d.front().CloseCards(d.cardsOf(d.turn.ID))
}

// commit commits the end of the turn, and shows nothing.
func (d *desk) commit() []store.Word {
	joined := d.front().Joined(d.turn.ID)
	d.turn.Breaks = slices.DeleteFunc(slices.Clone(d.turn.Breaks), func(at int) bool { return slices.Contains(joined, at) })
	_, words, err := d.books.FinishTurn(context.Background(), d.lease, store.FinishedTurn{
		ID: d.turn.ID, State: string(d.turn.State), Approvals: store.ApprovalCancelled, View: agent.EncodeTurn(d.turn), Mark: string(agent.PromptDone),
	})
	d.must(err)
	return words
}

func (d *desk) cardsOf(turn int64) []string {
	var out []string
	for _, a := range d.books.Approvals() {
		if a.TurnID == turn && !slices.Contains(out, a.CardID) {
			out = append(out, a.CardID)
		}
	}
	return out
}

// click is a click on a card's button, with what comes of it.
func (d *desk) click(user, action string, a store.Approval) string {
	synctest.Wait() // until all is posted that Slack takes at once: nobody clicks on what is not there
	return d.clickOn(d.books.withCard(a).MessageTS, user, action, a)
}

// clickOn is a click on a button of the message at ts.
func (d *desk) clickOn(ts, user, action string, a store.Approval) string {
	return d.clickIn(deskChannel, ts, user, action, a)
}

func (d *desk) clickIn(channel, ts, user, action string, a store.Approval) string {
	in, err := decode(envelope{ID: uuid.NewString(), Type: "interactive", Payload: mustJSON(object{
		"type": "block_actions", "team": object{"id": deskTeam}, "user": object{"id": user, "team_id": deskTeam}, "channel": object{"id": channel},
		"container": object{"type": "message", "message_ts": ts, "thread_ts": deskThread, "channel_id": channel}, "trigger_id": "t",
		"actions": []any{object{"type": "button", "action_id": action, "value": render.Ref(a), "block_id": "b"}},
	})})
	d.must(err)
	return d.bot.app.act(context.Background(), in)
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// page is a page as it is to be seen; plain, where Slack refused its blocks.
func seen(p render.Page) (text, blocks string) { return p.Text, canonical(string(mustJSON(p.Blocks))) }

// page is a card as it is to be seen in the thread.
func (d *desk) page(list []store.Approval) render.Page {
	copies, err := d.books.CardCopies(context.Background(), list[0].CardID)
	d.must(err)
	v, _ := d.bot.app.frontend.viewCard(context.Background(), list, copies)
	return d.bot.app.frontend.cardPage(v, false)
}

// worded are the texts of a page as they are to be seen where Slack takes no blocks.
func worded(p render.Page) []string {
	all, _ := p.Worded()
	return []string{all.Text, p.Least().Text, p.Bare().Text}
}

// lesser are the blocks of a page as they are to be seen where Slack refuses some: any of
// the types that are younger than the others, or all but sections.
func lesser(p render.Page) (out []string) {
	var young []string
	for _, b := range p.Blocks {
		kind := string(b.BlockType())
		if !slices.Contains([]string{"section", "context", "actions", "divider", "header", "image", "input"}, kind) && !slices.Contains(young, kind) {
			young = append(young, kind)
		}
	}
	for set := range 1 << len(young) {
		less, _ := p.Lesser(func(kind string) bool {
			i := slices.Index(young, kind)
			return i >= 0 && set>>i&1 == 1
		})
		_, blocks := seen(less)
		out = append(out, blocks)
	}
	told, _ := p.Lesser(func(string) bool { return true })
	_, blocks := seen(told)
	return append(out, blocks)
}

// expected is a message as it is to be seen.
type expected struct {
	what, text, blocks string
	turn               int64    // of a page; else 0
	worded             []string // what it is where Slack takes no blocks
	lesser             []string // and where it takes some
}

// is reports whether a message shows it, or what is left of it where Slack refused some.
func (w expected) is(m shownMessage) bool {
	return m.text == w.text && (m.blocks == w.blocks || slices.Contains(w.lesser, m.blocks)) || m.blocks == "" && slices.Contains(w.worded, m.text)
}

// assign says which message shows what is wanted, -1 for none. Messages may look alike, and
// more so where Slack refused some of them: one is left out only if it must be, and pages
// are in the order of their turns if they can be.
func assign(want []expected, got []shownMessage) []int {
	of, at := make([]int, len(got)), make([]int, len(want))
	for i := range of {
		of[i] = -1
	}
	var put func(w int, tried []bool) bool
	put = func(w int, tried []bool) bool {
		for i, m := range got {
			if tried[i] || !want[w].is(m) {
				continue
			}
			tried[i] = true
			if of[i] < 0 || put(of[i], tried) {
				of[i], at[w] = w, i
				return true
			}
		}
		return false
	}
	for w := range want {
		at[w] = -1
		put(w, make([]bool, len(got)))
	}
	for a := range want {
		for b := range want[:a] {
			if want[a].turn != 0 && want[b].turn != 0 && at[b] > at[a] && at[a] >= 0 && want[a].is(got[at[b]]) && want[b].is(got[at[a]]) {
				at[a], at[b] = at[b], at[a]
			}
		}
	}
	return at
}

// wrong says how the thread differs from what was shown last: of each turn its pages,
// of each card its approvals as they stand, nothing else, and nothing twice.
func (d *desk) wrong() []string {
	var want []expected
	for _, t := range d.shown {
		for _, p := range render.Turn(t, d.bot.app.frontend.rendering(t)) {
			text, blocks := seen(p)
			want = append(want, expected{fmt.Sprintf("page %d of turn %d", p.Number, t.ID), text, blocks, t.ID, worded(p), lesser(p)})
		}
		for _, id := range d.cardsOf(t.ID) {
			list, err := d.books.CardApprovals(context.Background(), id)
			d.must(err)
			page := d.page(list)
			text, blocks := seen(page)
			want = append(want, expected{"the card " + id, text, blocks, 0, worded(page), lesser(page)})
		}
	}
	got := d.slack.inThread(deskThread)
	var problems []string
	last := map[int64]int{}
	at := assign(want, got)
	for i, w := range want {
		if at[i] < 0 {
			problems = append(problems, w.what+" is not as it was shown last")
			continue
		}
		if before, more := last[w.turn]; w.turn != 0 && more && before > at[i] {
			problems = append(problems, w.what+" stands above an earlier one")
		}
		last[w.turn] = at[i]
	}
	for i, m := range got {
		if !slices.Contains(at, i) {
			problems = append(problems, "a message that is left over: "+m.text)
		}
	}
	return problems
}
