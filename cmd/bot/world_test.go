package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/attachment"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/needtest"
	"deckhand/internal/playground/postgres"
	"deckhand/internal/store/storetest"
	"deckhand/internal/waittest"
)

// asBot makes the test binary be the program itself: the end-to-end tests run
// `bot demo` as people do, in a process of its own.
const asBot = "TEST_AS_BOT"

// otherBot names another version of the bot, which the demo then starts in the place of this one:
// what it told people is compared with what they are told now.
const otherBot = "TEST_OTHER_BOT"

// asInit makes it the first process of a container, or what is to be tried there.
const asInit = "TEST_AS_INIT"

func TestMain(m *testing.M) {
	gitway.RunHelper()
	attachment.RunHelper()
	if os.Getenv(asBot) == "1" {
		if program := os.Getenv(otherBot); program != "" && slices.Equal(os.Args[1:], []string{"run"}) {
			panic(syscall.Exec(program, []string{program, "run"}, os.Environ()))
		}
		os.Exit(process())
	}
	if role := os.Getenv(asInit); role != "" {
		os.Exit(firstProcess(role))
	}
	beforeTimeout()
	storetest.Main(m, whatWasSentFits)
}

// world is a running demo, seen through its control API.
type world struct {
	t        testing.TB
	dir      string
	database string        // as the bot's role, or empty for one of the demo's own
	owner    string        // the same database, as its owner
	patience time.Duration // the bot's with the CLI
	env      []string      // further variables of the bot
	program  string        // the bot; empty for this test's binary, which is it too
	cmd      *exec.Cmd
	ended    <-chan error // what waiting for cmd returned
	thread   string       // that a story goes on in; empty where it begins one
	look     *look        // nil where the database may hang, and each look is one of its own
	demoState
}

// newWorld starts a demo in a folder of its own, as fast as it goes.
func newWorld(t testing.TB, flags ...string) *world {
	t.Helper()
	w := unstartedWorld(t)
	w.start(flags...)
	return w
}

// ownPostgres starts a demo with a PostgreSQL of its own, as people have it. The other
// worlds are databases of one server, which costs a tenth.
func ownPostgres(t testing.TB) *world {
	t.Helper()
	w := unstartedWorld(t)
	w.database, w.owner = "", ""
	w.start()
	return w
}

// unstartedWorld is a world whose folder can be furnished before its start.
func unstartedWorld(t testing.TB) *world {
	t.Helper()
	if _, err := postgres.Find(); err != nil {
		needtest.Missing(t, err.Error())
	}
	owner := storetest.URL(t)
	// Not t.TempDir: PostgreSQL drops to another user when the test runs as root.
	dir, err := os.MkdirTemp("", "deckhand-world-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, database: storetest.Bot(owner), owner: owner, patience: waittest.Limit, look: &look{}}
	w.configure(sandboxHere(), "")
	botLogs.Store(filepath.Join(dir, "bot.log"), nil)
	t.Cleanup(func() {
		botLogs.Delete(filepath.Join(dir, "bot.log"))
		w.look.close()
		w.stop()
		if t.Failed() {
			w.dumpLog()
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) start(flags ...string) {
	w.t.Helper()
	self := w.program
	if self == "" {
		var err error
		if self, err = os.Executable(); err != nil {
			w.t.Fatal(err)
		}
	}
	args := append([]string{"demo", "--json", "--listen", "127.0.0.1:0", "--pace", "0", "--data", w.dir, "--claude", needtest.Claude(w.t)}, flags...)
	w.cmd = exec.Command(self, args...) //nolint:noctx // stopped in stop
	w.cmd.Env = w.environ()
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if w.ended, err = startWithTest(w.cmd); err != nil {
		w.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		w.dumpLog()
		w.t.Fatalf("the demo did not get ready: %v", err)
	}
	if err := json.Unmarshal(line, &w.demoState); err != nil {
		w.t.Fatalf("the demo's line is not JSON: %v: %s", err, line)
	}
}

func (w *world) environ() []string {
	env := append([]string{asBot + "=1", "DECKHAND_CLI_TIMEOUT=" + w.patience.String()}, w.env...)
	if w.database != "" {
		env = append(env, "DATABASE_URL="+w.database)
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "SLACK_"), strings.HasPrefix(name, "ANTHROPIC_"), name == "DATABASE_URL", name == "CLAUDE_COMMAND":
		case name == "SSL_CERT_FILE", name == "NODE_EXTRA_CA_CERTS": // nothing outside is reached; to read them is a quarter of a start
		default:
			env = append(env, kv)
		}
	}
	return env
}

// stop ends the demo as Ctrl-C does.
func (w *world) stop() {
	if w.cmd == nil {
		return
	}
	if os.Getenv(otherBot) == "" {
		w.usable()
		w.keepSent()
	}
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-w.ended:
		if err != nil {
			w.t.Errorf("the demo ended with %v", err)
		}
	case <-time.After(waittest.Limit):
		said := w.stacks()
		_ = w.cmd.Process.Signal(syscall.SIGQUIT) // it writes what it does to stderr
		w.t.Errorf("the demo did not stop, and was ended: %v%s", <-w.ended, said)
	}
	w.cmd = nil
}

// usable holds that everybody could use what the bot has sent: pictures have words, blocks a
// text beside them, buttons of a message names of their own, and signs a word that says the same.
func (w *world) usable() {
	var got struct {
		Unfit []struct{ Method, What, Text string } `json:"unfit"`
	}
	if w.do(http.MethodGet, "/_control/accessibility", nil, &got) != nil {
		return // a story has ended the workspace
	}
	for _, u := range got.Unfit {
		w.t.Errorf("%s: %s: %q", u.Method, u.What, u.Text)
	}
}

func (w *world) dumpLog() {
	b, err := os.ReadFile(filepath.Join(w.dir, "bot.log"))
	if err != nil {
		return
	}
	if len(b) > 20_000 {
		b = b[len(b)-20_000:]
	}
	w.t.Logf("the bot's log:\n%s", b)
}

// renewed is the demo's state after a part of it was started again.
func (w *world) renewed(part string, oldPID int) {
	w.t.Helper()
	w.eventually("a new process of "+part, func() bool {
		b, err := os.ReadFile(filepath.Join(w.dir, "demo.json"))
		var s demoState
		if err != nil || json.Unmarshal(b, &s) != nil || s.PIDs[part] == oldPID {
			return false
		}
		w.demoState = s
		return true
	})
}

// connected waits for a bot that takes clicks: Slack does not deliver one again.
func (w *world) connected() {
	w.t.Helper()
	w.eventually("the bot to be connected", func() bool {
		var state struct{ Ready bool }
		w.must(http.MethodGet, "/_control/state", nil, &state)
		return state.Ready
	})
}

func (w *world) do(method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.URL+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // the body is read whole
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

func (w *world) must(method, path string, in, out any) {
	w.t.Helper()
	if err := w.do(method, path, in, out); err != nil {
		w.t.Fatal(err)
	}
}

// message is a message as it stands in the workspace.
type message struct {
	TS          string          `json:"ts"`
	User        string          `json:"user"`
	Text        string          `json:"text"`
	ThreadTS    string          `json:"thread_ts"`
	Blocks      json.RawMessage `json:"blocks"`
	EphemeralTo string          `json:"ephemeral_to"`
	Edits       int             `json:"edits"`
	Reactions   []struct {
		Name  string   `json:"name"`
		Users []string `json:"users"`
	} `json:"reactions"`
	Files []struct {
		Name string `json:"name"`
		Alt  string `json:"alt_txt"`
	} `json:"files"`
	Status  string `json:"status"` // of a thread's first message: what is being done
	Session struct {
		Status string `json:"status"`
		Title  string `json:"title"`
	} `json:"session"`
}

// all is everything a person can read in the message.
func (m message) all() string { return m.Text + "\n" + string(m.Blocks) }

func (m message) has(action string) bool {
	return bytes.Contains(m.Blocks, []byte(`"action_id":"`+action+`"`)) || m.entry(action) != ""
}

// entry is the value of an action in the menu beside a card's buttons; empty for none.
func (m message) entry(action string) string {
	found := regexp.MustCompile(`"value":"(` + action + ` [^"]+)"`).FindSubmatch(m.Blocks)
	if found == nil {
		return ""
	}
	return string(found[1])
}

func (m message) reacted(name string) bool {
	for _, r := range m.Reactions {
		if r.Name == name {
			return true
		}
	}
	return false
}

// post posts as a person and returns the message's ts.
func (w *world) post(user, channel, thread, text string) string {
	w.t.Helper()
	var out struct {
		TS string `json:"ts"`
	}
	in := map[string]any{"user": user, "channel": channel, "text": text}
	if thread != "" {
		in["thread_ts"] = thread
	}
	w.must(http.MethodPost, "/_control/messages", in, &out)
	return out.TS
}

// begin posts the first prompt of a story: it begins a thread, or goes on in that of the
// story before it.
func (w *world) begin(user, channel, text string) (thread, prompt string) {
	w.t.Helper()
	prompt = w.post(user, channel, w.thread, text)
	if w.thread == "" {
		w.thread = prompt
	}
	return w.thread, prompt
}

func (w *world) messages(channel, thread string) []message {
	w.t.Helper()
	var out struct {
		Messages []message `json:"messages"`
	}
	q := url.Values{"channel": {channel}}
	if thread != "" {
		q.Set("thread_ts", thread)
	}
	w.must(http.MethodGet, "/_control/messages?"+q.Encode(), nil, &out)
	return out.Messages
}

// message is a message by its ts, in a thread or not; the zero value if it is not there.
func (w *world) message(channel, ts string) message {
	w.t.Helper()
	for _, root := range w.messages(channel, "") {
		if root.EphemeralTo != "" {
			continue
		}
		for _, m := range append(w.messages(channel, root.TS), root) {
			if m.TS == ts {
				return m
			}
		}
	}
	return message{}
}

// agentIs waits until a thread's session is shown as told, and returns its first message.
func (w *world) agentIs(channel, thread, status string) message {
	w.t.Helper()
	return w.find(channel, thread, "the session to be "+status, func(m message) bool { return m.TS == thread && m.Session.Status == status })
}

// click clicks as a person.
func (w *world) click(user, channel, ts, action string) {
	w.t.Helper()
	w.must(http.MethodPost, "/_control/actions", map[string]any{
		"user": user, "channel": channel, "message_ts": ts, "action_id": action, "stale": true,
	}, nil)
}

// told waits for what only one person sees.
func (w *world) told(user, channel, thread, text string) {
	w.t.Helper()
	w.find(channel, thread, user+" to be told “"+text+"”", func(m message) bool {
		return m.EphemeralTo == user && strings.Contains(m.all(), text)
	})
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for wait := beginWait(); !ok(); wait.pause() {
		if wait.vain() {
			w.t.Fatalf("waited in vain for %s%s", what, w.stacks())
		}
	}
}

// wait is a wait by looking again and again. The longer it has lasted the rarer the
// looks: together they take a tenth longer than what is waited for, and not half of the
// machine on which it is to happen.
type wait struct{ since time.Time }

func beginWait() wait { return wait{time.Now()} }

func (w wait) vain() bool { return time.Since(w.since) > waittest.Limit }

func (w wait) pause() {
	time.Sleep(min(max(time.Since(w.since)/10, 20*time.Millisecond), 300*time.Millisecond))
}

// find waits for a message in the thread that fits.
func (w *world) find(channel, thread, what string, fits func(message) bool) message {
	w.t.Helper()
	var found message
	for wait := beginWait(); ; wait.pause() {
		all := w.messages(channel, thread)
		for _, m := range all {
			if fits(m) {
				found = m
			}
		}
		if found.TS != "" {
			return found
		}
		if wait.vain() {
			var b strings.Builder
			for _, m := range all {
				fmt.Fprintf(&b, "\n— %s %s to=%s %s", m.TS, m.User, m.EphemeralTo, m.all())
			}
			w.t.Fatalf("waited in vain for %s; the thread:%s%s", what, b.String(), w.stacks())
		}
	}
}

// card waits for an open approval card.
func (w *world) card(channel, thread string) message {
	w.t.Helper()
	// Below the last call that was wanted: an earlier card may still show its buttons
	// for a moment.
	wanted := ""
	for _, m := range w.messages(channel, thread) {
		if m.User != w.BotUser && strings.Contains(m.Text, "tool: ") {
			wanted = m.TS
		}
	}
	return w.find(channel, thread, "an approval card", func(m message) bool { return m.TS > wanted && (m.has("approve") || m.has("approve_ticked")) })
}

// says waits for a message of the bot's that contains text.
func (w *world) says(channel, thread, text string) message {
	w.t.Helper()
	return w.find(channel, thread, "the bot to say "+text, func(m message) bool {
		return m.User == w.BotUser && strings.Contains(m.all(), text)
	})
}

// done waits until the prompt is marked as done.
func (w *world) done(channel, thread, promptTS string) {
	w.t.Helper()
	w.find(channel, thread, "the prompt to be done", func(m message) bool { return m.TS == promptTS && m.reacted("white_check_mark") })
}

func (m message) blocks(t testing.TB) []map[string]any {
	t.Helper()
	var out []map[string]any
	if err := json.Unmarshal(m.Blocks, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
