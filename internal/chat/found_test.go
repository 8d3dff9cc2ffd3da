package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/agent/policy"
	"deckhand/internal/chat"
	"deckhand/internal/playground/slack"
	"deckhand/internal/slackui"
	"deckhand/internal/store"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

type object = map[string]any

// An outage is an app that hears nothing, a workspace in which people go on, and the real
// books.
type outage struct {
	t    *testing.T
	app  *slackui.App
	hand chat.ByHand
	db   *store.Store
	conn *pgx.Conn
	at   http.Handler // of the workspace
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	workspace, err := slack.New(slack.Options{NoRateLimits: true})
	o := &outage{t: t}
	o.must(err)
	o.at = workspace.Handler()
	server := httptest.NewServer(o.at)
	t.Cleanup(func() {
		server.Close()
		_ = workspace.Close(context.Background())
	})
	url := storetest.URL(t)
	o.db = storetest.Open(t, url, store.Options{})
	o.conn, err = pgx.Connect(t.Context(), url)
	o.must(err)
	t.Cleanup(func() { _ = o.conn.Close(context.Background()) })
	entered, err := slackui.Dial(t.Context(), slackui.Tokens{Bot: workspace.BotToken(), App: workspace.AppToken(), APIURL: server.URL + "/api/"})
	o.must(err)
	o.app = slackui.New(entered, slackui.Config{Config: chat.Config{
		Store: o.db,
		Access: access.Rules{
			Roles:  access.Roles{Admins: []string{slack.UserAda}, Approvers: []string{slack.GroupApprovers}, Users: []string{slack.GroupEngineers}},
			Places: access.Places{Channels: map[string]string{slack.ChannelEngineering: "web", slack.ChannelPrivate: "web"}, DirectMessages: "web"},
		},
		CatchUp: time.Hour,
	}, Costs: o.db})
	o.app.Begin(agent.New(agent.Config{Store: o.db, Frontend: o.app.Frontend(), Authoriser: o.app, Reminder: o.app, Policy: &policy.Policy{}, Replica: "replica-1"}))
	o.hand = chat.ByHand{Chat: o.app.Chat}
	o.hand.Listens()
	_, err = o.db.MoveCursor(t.Context(), slack.TeamID, 0) // the bot is installed
	o.must(err)
	return o
}

// event is what Slack delivers of a message.
func (o *outage) event(inner object) *chat.Incoming {
	o.t.Helper()
	inner["type"] = "message"
	payload, err := json.Marshal(object{"team_id": slack.TeamID, "event_id": uuid.NewString(), "event": inner})
	o.must(err)
	in, err := o.hand.Decode(inbox.Envelope{Kind: inbox.Message, Payload: payload})
	o.must(err)
	return in
}

func (o *outage) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// control has people do something.
func (o *outage) control(path string, in object) (ts string) {
	o.t.Helper()
	body, err := json.Marshal(in)
	o.must(err)
	ask := httptest.NewRequestWithContext(o.t.Context(), http.MethodPost, "http://127.0.0.1/_control/"+path, bytes.NewReader(body))
	ask.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	o.at.ServeHTTP(answer, ask)
	var out struct{ TS string }
	if answer.Code != http.StatusOK || json.Unmarshal(answer.Body.Bytes(), &out) != nil {
		o.t.Fatalf("%s %v: %d %s", path, in, answer.Code, answer.Body)
	}
	return out.TS
}

func (o *outage) post(user, channel, thread, text string) (ts string) {
	o.t.Helper()
	return o.control("messages", object{"user": user, "channel": channel, "thread_ts": thread, "text": text})
}

// delivered is what Slack delivers of a post; it reports whether it is anybody's business.
func (o *outage) delivered(user, channel, thread, ts, text string) bool {
	o.t.Helper()
	inner := object{"user": user, "channel": channel, "ts": ts, "text": strings.ReplaceAll(text, "@deckhand", mention)}
	if thread != "" {
		inner["thread_ts"] = thread
	}
	return o.take(o.event(inner))
}

// mention is how people write to the bot.
const mention = "<@" + slack.BotUser + ">"

// take takes what was delivered, and reports whether it became a row of the inbox.
func (o *outage) take(in *chat.Incoming) bool {
	o.t.Helper()
	before := len(o.inbox())
	o.app.Take(o.t.Context(), in, func(context.Context, map[string]string) {})
	o.app.Wait()
	return len(o.inbox()) > before
}

// heard is a post that the bot hears.
func (o *outage) heard(user, channel, thread, text string) (ts string) {
	o.t.Helper()
	ts = o.post(user, channel, thread, text)
	if !o.delivered(user, channel, thread, ts, text) {
		o.t.Fatalf("nobody's business: %s", text)
	}
	return ts
}

// back ends the outage: the bot looks through Slack, and works on what it finds.
func (o *outage) back() {
	o.t.Helper()
	o.app.Hears(false)
	o.app.Hears(true)
	o.hand.MoveCursor(o.t.Context())
	o.settle()
}

// settle has all looked through, and all done that is due.
func (o *outage) settle() {
	o.t.Helper()
	more := true
	for range 20 {
		for o.hand.ScanNext(o.t.Context()) {
		}
		o.hand.TakeDue(o.t.Context())
		o.app.Wait()
		o.must(o.conn.QueryRow(o.t.Context(), `SELECT EXISTS (SELECT FROM looks) OR EXISTS (SELECT FROM inbox WHERE state = 'received' AND next_try <= now())`).Scan(&more))
		if !more {
			return
		}
	}
	o.t.Fatal("there is no end to what is to be done")
}

// inbox is what became of each post, in the order of their coming.
func (o *outage) inbox() []string {
	o.t.Helper()
	rows, err := o.conn.Query(o.t.Context(), `SELECT user_id || ' ' || state || ' ' || CASE state WHEN 'done' THEN outcome ELSE regexp_replace(prompt, '^.*\n', '') END FROM inbox ORDER BY id`)
	o.must(err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	o.must(err)
	return out
}

func (o *outage) want(want ...string) {
	o.t.Helper()
	if diff := cmp.Diff(want, o.inbox()); diff != "" {
		o.t.Errorf("the inbox (-want +got):\n%s", diff)
	}
}

// TestWhatNobodyHeardIsFound: once, in its order, with everybody's rights, and what was
// nobody's business before is none now.
func TestWhatNobodyHeardIsFound(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	const ada, linus, grace, mallory = slack.UserAda, slack.UserLinus, slack.UserGrace, slack.UserMallory
	eng := slack.ChannelEngineering
	talk := o.post(grace, eng, "", "lunch?")
	o.post(ada, eng, talk, "before anybody called")
	served := o.heard(linus, eng, talk, "@deckhand served")
	o.back() // it hears: nothing was missed
	o.want(linus + " accepted served")

	mention := o.post(ada, eng, "", "@deckhand fix this")
	o.control("messages/edit", object{"user": ada, "channel": eng, "ts": mention, "text": "@deckhand fix that"})
	o.post(ada, eng, talk, "and in the thread")
	gone := o.post(ada, eng, talk, "taken back")
	o.control("messages/delete", object{"user": ada, "channel": eng, "ts": gone})
	o.post(grace, eng, talk, "<@"+linus+"> what do you say?")
	o.post(mallory, eng, "", "@deckhand me too")
	o.post(linus, eng, "", "nobody's business")
	o.post(linus, eng, mention, "wait for me")
	other := o.post(grace, eng, "", "another thread")
	o.post(ada, eng, other, "@deckhand look here")
	o.post(linus, slack.ChannelRandom, "", "@deckhand no project here")
	o.back()
	want := []string{linus + " accepted served", ada + " accepted fix that", mallory + " done refused", ada + " accepted and in the thread", linus + " accepted wait for me", ada + " accepted look here"}
	o.want(want...)
	o.back()
	o.want(want...)
	if o.delivered(ada, eng, "", mention, "@deckhand fix this"); len(o.inbox()) != len(want) {
		t.Errorf("delivered after it was found: %q", o.inbox())
	}
	if served == "" || slices.ContainsFunc(o.inbox(), func(s string) bool { return strings.Contains(s, "before anybody") }) {
		t.Error("what was said before the bot was called is work")
	}
}

// TestTheDatabaseIsAway: what Slack gives up meanwhile is found when it is back.
func TestTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.back()
	away, cancel := context.WithCancel(t.Context())
	cancel()
	o.hand.MoveCursor(away)
	o.post(slack.UserLinus, slack.ChannelEngineering, "", "@deckhand are you there?")
	o.hand.MoveCursor(t.Context())
	o.settle()
	o.want(slack.UserLinus + " accepted are you there?")
}

// TestTheMarkOfWhatWaits: whoever sets or ends it in the database has it shown.
func TestTheMarkOfWhatWaits(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	ctx := t.Context()
	words := func(want ...bool) {
		t.Helper()
		list, err := o.db.ClaimOutbox(ctx, slack.TeamID, 10)
		o.must(err)
		var got []bool
		for _, w := range list {
			post, err := o.db.PostWaits(ctx, w.InboxID)
			if err != nil || w.Kind != outbox.Waits || w.ChannelID != slack.ChannelEngineering || w.TS != "5.0" {
				t.Errorf("%+v, %v", w, err)
			}
			got = append(got, post.Waits)
			o.must(o.db.EndOutbox(ctx, nil, []outbox.Shown{{Kind: outbox.Waits, Subject: chat.FormatID(w.InboxID), UpTo: w.ID}}))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("words (-want +got):\n%s", diff)
		}
	}
	key := threads.ThreadKey{TeamID: slack.TeamID, ChannelID: slack.ChannelEngineering, ThreadTS: "5.0"}
	id, _, err := o.db.Receive(ctx, inbox.Envelope{
		EventID: "Ev5", Kind: inbox.Message, TeamID: key.TeamID, ChannelID: key.ChannelID, TS: "5.0", ThreadTS: "5.0", UserID: slack.UserLinus, Payload: json.RawMessage(`{}`), Holder: "A",
	})
	o.must(err)
	words()
	o.must(o.db.PutOff(ctx, id, time.Hour, "no answer", true, true))
	words(true)
	o.must(o.db.PutOff(ctx, id, time.Hour, "no answer", true, true))
	words()
	_, _, err = o.db.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: slack.UserLinus, UUID: uuid.NewString(), Text: "go"})
	o.must(err)
	words(false)
	o.must(o.db.ShowWaits(ctx, inbox.Post{TeamID: key.TeamID, ChannelID: key.ChannelID, TS: "5.0"}))
	words(false)
}

// TestWhatIsTooOldIsTold: it is not begun, and its author is told once.
func TestWhatIsTooOldIsTold(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.app.Settings().CatchUp = 0
	o.post(slack.UserLinus, slack.ChannelEngineering, "", "@deckhand fix this")
	o.post(slack.UserMallory, slack.ChannelEngineering, "", "@deckhand me too")
	o.back()
	o.back()
	o.want(slack.UserLinus+" done too old", slack.UserMallory+" done refused")
	var told string
	o.must(o.conn.QueryRow(t.Context(), `SELECT string_agg(user_id || ': ' || body, '; ') FROM outbox WHERE body LIKE '%while Deckhand did not listen%'`).Scan(&told))
	if !strings.HasPrefix(told, slack.UserLinus) || strings.Contains(told, ";") {
		t.Errorf("told: %q", told)
	}
}

// TestAReplyBeforeItsMention: Slack delivers the mention a minute after a reply to it.
func TestAReplyBeforeItsMention(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	eng := slack.ChannelEngineering
	root := o.post(slack.UserLinus, eng, "", "@deckhand first")
	reply := o.post(slack.UserAda, eng, root, "second")
	if o.delivered(slack.UserAda, eng, root, reply, "second") {
		t.Fatal("a reply in a thread that is none of ours was taken")
	}
	o.delivered(slack.UserLinus, eng, "", root, "@deckhand first")
	o.settle()
	o.want(slack.UserLinus+" accepted first", slack.UserAda+" accepted second")
}

// TestAMessageWaitsForWhatWasMissedBeforeIt: while the workspace is still looked through, a
// message that is delivered does not overtake an earlier one of its thread.
func TestAMessageWaitsForWhatWasMissedBeforeIt(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	eng := slack.ChannelEngineering
	root := o.heard(slack.UserLinus, eng, "", "@deckhand first")
	o.post(slack.UserAda, eng, root, "second")
	o.app.Hears(false)
	o.app.Hears(true)
	o.heard(slack.UserAda, eng, root, "third")
	o.hand.TakeDue(t.Context())
	o.app.Wait()
	o.want(slack.UserLinus+" accepted first", slack.UserAda+" received ", slack.UserAda+" accepted second")
	_, err := o.conn.Exec(t.Context(), `UPDATE inbox SET next_try = now() WHERE state = 'received'`)
	o.must(err)
	o.settle()
	o.want(slack.UserLinus+" accepted first", slack.UserAda+" accepted third", slack.UserAda+" accepted second")
}

// TestWhatWaitsIsChangedMeanwhile: edits and deletions that nobody heard count for posts
// that wait.
func TestWhatWaitsIsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	eng := slack.ChannelEngineering
	root := o.heard(slack.UserLinus, eng, "", "@deckhand first")
	edited, gone := o.heard(slack.UserLinus, eng, root, "second"), o.heard(slack.UserLinus, eng, root, "third")
	_, err := o.conn.Exec(t.Context(), `UPDATE inbox SET ts = ts`) // they wait for the turn that is not begun
	o.must(err)
	o.control("messages/edit", object{"user": slack.UserLinus, "channel": eng, "ts": edited, "text": "other"})
	o.control("messages/delete", object{"user": slack.UserLinus, "channel": eng, "ts": gone})
	waiting, err := o.db.WaitingPosts(t.Context(), slack.TeamID, 10)
	if err != nil || len(waiting) != 3 {
		t.Fatalf("%d posts wait, %v", len(waiting), err)
	}
	o.must(o.hand.Changes(t.Context(), inbox.Scan{TeamID: slack.TeamID}))
	o.settle()
	o.want(slack.UserLinus+" accepted first", slack.UserLinus+" accepted other", slack.UserLinus+" done deleted")
}

// TestALookOutlivesWhatSlackRefuses: a 429 is waited for, a channel that cannot be read
// keeps nothing else from being found, and all pages are read.
func TestALookOutlivesWhatSlackRefuses(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	eng := slack.ChannelEngineering
	root := o.heard(slack.UserLinus, eng, "", "@deckhand first")
	for i := range 200 {
		o.post(slack.UserLinus, eng, root, fmt.Sprintf("<@%s> %d", slack.UserAda, i))
	}
	o.post(slack.UserAda, eng, root, "the last")
	o.app.Settings().Access.Places.Channels["C0NONE"] = "web"
	o.control("faults", object{"method": "conversations.history", "status": 429, "retry_after": 1})
	o.control("faults", object{"method": "conversations.replies", "error": "internal_error"})
	o.back()
	o.want(slack.UserLinus+" accepted first", slack.UserAda+" accepted the last")
}

// TestALookIsOneReplicas: it is noted where posts may be missing, never before the first
// time, held, and noted again if it is wanted again.
func TestALookIsOneReplicas(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	ctx := t.Context()
	hear := func(deaf time.Duration, wanted bool) {
		t.Helper()
		since, err := o.db.MoveCursor(ctx, slack.TeamID, deaf)
		if err != nil || since.IsZero() == wanted {
			t.Errorf("since %v, %v", since, err)
		}
	}
	take := func(want bool) inbox.Scan {
		t.Helper()
		l, ok, err := o.db.TakeScan(ctx, slack.TeamID, time.Minute)
		if err != nil || ok != want {
			t.Errorf("a look: %+v, %v, %v", l, ok, err)
		}
		return l
	}
	hear(0, false)
	take(false)
	hear(time.Hour, true)
	l := take(true)
	if ago := time.Since(l.Since); ago < time.Hour || ago > 65*time.Minute {
		t.Errorf("it is looked since %s ago", ago)
	}
	take(false)
	hear(time.Second, true) // wanted again meanwhile
	o.must(o.db.EndScan(ctx, l))
	l = take(true)
	o.must(o.db.EndScan(ctx, l))
	hear(0, false)
	_, err := o.conn.Exec(ctx, `UPDATE heard SET until = now() - interval '10 minutes'`)
	o.must(err)
	hear(0, true)
	l = take(true)
	o.must(o.db.HoldScan(ctx, l, 0))
	take(true)
}

// TestAFaultEndsNoBot: an envelope on which the bot's own code fails is put off as one that has
// trouble, and given up in the end, with a word to its author; the bot goes on.
func TestAFaultEndsNoBot(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	working := o.app.Supervisor()
	o.app.Begin(nil) // whatever asks it fails
	o.heard(slack.UserLinus, slack.ChannelEngineering, "", "@deckhand mend this")
	var state string
	var attempts int
	o.must(o.conn.QueryRow(t.Context(), `SELECT state, attempts FROM inbox ORDER BY id DESC LIMIT 1`).Scan(&state, &attempts))
	if state == "done" || attempts != 1 {
		t.Fatalf("after a fault the message is %s after %d attempts", state, attempts)
	}
	o.app.Begin(working)
	o.heard(slack.UserLinus, slack.ChannelEngineering, "", "@deckhand mend that")
	o.must(o.conn.QueryRow(t.Context(), `SELECT state FROM inbox ORDER BY id DESC LIMIT 1`).Scan(&state))
	if state == "failed" {
		t.Error("the next message was not worked on")
	}
}

// The queue has the words of a message that waits, and the names of its files, made safe.
func TestTheQueueNamesFiles(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	files := []object{{"id": "F1", "name": "up/a\u202e\"b\".png"}, {"id": "F2", "name": "c.txt"}}
	for text, want := range map[string]string{
		" look <https://example.com|at example.com>": "look at example.com (https://example.com) 📎 \"a_b_.png\", \"c.txt\"",
		"": "📎 \"a_b_.png\", \"c.txt\"",
	} {
		in := o.event(object{"user": slack.UserLinus, "channel": slack.ChannelEngineering, "ts": "5.0", "text": "<@" + slack.BotUser + ">" + text, "files": files})
		if got := o.hand.Queued(in.Row.Payload); got != want {
			t.Errorf("the queue shows %q, want %q", got, want)
		}
	}
}
