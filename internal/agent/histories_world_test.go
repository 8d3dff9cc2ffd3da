package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/needtest"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/waittest"
)

// pinnedCLI is the version in deploy/claude/package.json.
const pinnedCLI = "2.1.329"

// cliOf finds a version of the CLI.
func cliOf(t testing.TB, version string) string {
	t.Helper()
	if version == pinnedCLI {
		return needtest.Claude(t)
	}
	return needtest.ClaudeOf(t, version)
}

// world is one thread with its bot, its model and its database.
type world struct {
	t       testing.TB
	version string
	store   *store.Store
	model   *countingModel
	config  botConfig
	bot     *botProcess
	thread  int64
	key     threads.ThreadKey
	prompts []sentPrompt

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when something was shown or called
	turns   map[int64]shownTurn
	order   []int64
	marks   map[int64]PromptMark
	asks    map[string]approvals.Status
	holding bool // asked calls stay undecided

	crashes int // processes and connections that were killed, in a turn or between two
}

type sentPrompt struct {
	inboxID            int64
	uuid, marker, user string
}

func newWorld(t testing.TB, version string) *world {
	t.Helper()
	cli := cliOf(t, version)
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	w := &world{
		t: t, version: version, store: s, model: newCountingModel(t), key: threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: "1.000001"},
		changed: make(chan struct{}), turns: map[int64]shownTurn{}, marks: map[int64]PromptMark{}, asks: map[string]approvals.Status{},
	}
	w.model.changed = w.signal
	web := httptest.NewServer(w.model)
	t.Cleanup(web.Close)
	w.config = botConfig{
		Database: url, DataDir: t.TempDir(), Workspace: t.TempDir(), CLI: cli, Version: version, Model: models[0], ModelURL: web.URL,
	}
	t.Cleanup(func() {
		if w.bot != nil {
			w.kill()
		}
	})
	w.start()
	return w
}

// models are those that the histories switch between.
var models = []string{"claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001", "claude-opus-4-5-20251101"}

func (w *world) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// await waits until cond holds; cond runs without any lock.
func (w *world) await(what string, cond func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waittest.Limit)
	defer cancel()
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		if cond() {
			return
		}
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond): // what lies in files changes without a signal
		case <-ctx.Done():
			w.t.Fatalf("waited in vain for %s\n%s", what, w.tell())
		}
	}
}

// tell is the state of the history, for failures.
func (w *world) tell() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, id := range w.order {
		fmt.Fprintf(&b, "turn %d: %s %s, %d µ$\n", id, w.turns[id].State, w.turns[id].Problem, w.turns[id].MicroUSD)
	}
	for _, p := range w.prompts {
		fmt.Fprintf(&b, "prompt %s: %s\n", p.marker, w.marks[p.inboxID])
	}
	for i, c := range w.model.all() {
		fmt.Fprintf(&b, "call %d: %s %s of %s, %s %s whole=%v blocks=%v %+v = %d µ$\n", i, c.RequestID, c.Marker, c.Session, c.Message, c.Model, c.Whole, c.blocks, c.Usage, c.micro(w.t))
	}
	return b.String()
}

// botProcess is the bot as a process that can be killed.
type botProcess struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	read  chan struct{} // closed when all that it wrote was read
}

func (w *world) start() {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	config, err := json.Marshal(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(self) //nolint:noctx // ended by kill and quit
	cmd.Env = append(os.Environ(), roleVariable+"=bot", botVariable+"="+string(config))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.bot = &botProcess{cmd: cmd, stdin: stdin, read: make(chan struct{})}
	ready := make(chan struct{})
	go w.listen(stdout, ready, w.bot.read)
	select {
	case <-ready:
	case <-w.bot.read:
		w.t.Fatalf("the bot did not start: %v", cmd.Wait())
	}
}

// listen takes in what the bot shows.
func (w *world) listen(out io.Reader, ready, read chan struct{}) {
	defer close(read)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var e botEvent
		if json.Unmarshal(line, &e) != nil {
			continue // cut by the bot's death
		}
		w.mu.Lock()
		switch {
		case e.Ready:
			close(ready)
		case e.Turn != nil:
			if _, known := w.turns[e.Turn.ID]; !known {
				w.order = append(w.order, e.Turn.ID)
			}
			w.turns[e.Turn.ID] = *e.Turn
		case e.Prompt != nil:
			w.marks[e.Prompt.InboxID] = e.Prompt.Mark
		case e.Approval != nil:
			w.asks[e.Approval.ID] = e.Approval.Status
		}
		decide := e.Approval != nil && e.Approval.Status == approvals.Pending && !w.holding
		w.mu.Unlock()
		if decide {
			w.decide(e.Approval.ID)
		}
		w.signal()
	}
}

func (w *world) decide(id string) {
	_, err := w.store.Decide(w.t.Context(), approvals.Decision{ApprovalID: id, Status: approvals.Allowed, By: "U9", Via: "button"})
	if err != nil && !errors.Is(err, pg.ErrEnded) {
		w.t.Error(err)
	}
}

// steal is another replica that takes the bot for dead: it takes the thread's lease,
// books what was under way, and has gone when the bot looks again.
func (w *world) steal() {
	w.t.Helper()
	query[struct{ ID int64 }](w, `
		WITH dead AS (UPDATE replicas SET alive = false WHERE alive RETURNING id)
		UPDATE threads SET lease_owner = NULL, lease_epoch = lease_epoch + 1 WHERE lease_owner IN (SELECT id FROM dead) OR lease_owner IS NULL RETURNING id`)
	if _, err := w.store.EndLostCalls(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) command(do string) {
	w.t.Helper()
	b, err := json.Marshal(botCommand{Do: do, Thread: w.thread})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.bot.stdin.Write(append(b, '\n')); err != nil {
		w.t.Fatal(err)
	}
}

// kill is the bot's death: SIGKILL, and its reaper removes the CLI.
func (w *world) kill() {
	cli := w.cliPIDs()
	_ = w.bot.cmd.Process.Kill()
	<-w.bot.read
	_ = w.bot.cmd.Wait()
	w.bot = nil
	w.mu.Lock()
	clear(w.asks)
	w.mu.Unlock()
	for _, pid := range cli {
		for syscall.Kill(pid, 0) == nil {
			time.Sleep(time.Millisecond)
		}
	}
}

// quit stops the bot in good order.
func (w *world) quit() {
	w.t.Helper()
	w.command("quit")
	<-w.bot.read
	if err := w.bot.cmd.Wait(); err != nil {
		w.t.Errorf("the bot ended with %v", err)
	}
	w.bot = nil
}

// cliPIDs are the CLI processes of this history, found as an outsider finds them.
func (w *world) cliPIDs() []int {
	var out []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.HasPrefix(string(args), w.config.CLI+"\x00") {
			continue
		}
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !strings.Contains(string(env), "HOME="+filepath.Join(w.config.DataDir, "home")+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// pending is an approval that waits, or empty.
func (w *world) pending() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, status := range w.asks {
		if status == approvals.Pending {
			return id
		}
	}
	return ""
}

// killCLI is a SIGKILL to the CLI alone.
func (w *world) killCLI() {
	w.t.Helper()
	pids := w.cliPIDs()
	if len(pids) == 0 {
		w.t.Fatal("there is no CLI to kill")
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	w.await("the CLI to be gone", func() bool {
		for _, pid := range pids {
			if syscall.Kill(pid, 0) == nil {
				return false
			}
		}
		return true
	})
}

// marker names the next prompt.
func (w *world) nextMarker() string { return fmt.Sprintf("#p%d", len(w.prompts)+1) }

// say posts a prompt as a person, as a post in the thread. %p in the text is the
// prompt's marker, by which the model's calls for it are known.
func (w *world) say(user, text string) sentPrompt {
	w.t.Helper()
	p := sentPrompt{uuid: uuid.NewString(), marker: w.nextMarker(), user: user}
	ts := fmt.Sprintf("1.%06d", len(w.prompts)+1)
	ctx := w.t.Context()
	id, _, err := w.store.Receive(ctx, inbox.Envelope{
		EventID: uuid.NewString(), Kind: inbox.Message, TeamID: w.key.TeamID, ChannelID: w.key.ChannelID, ThreadTS: w.key.ThreadTS,
		TS: ts, UserID: user, Payload: json.RawMessage(`{}`),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	p.inboxID = id
	w.mu.Lock()
	w.prompts = append(w.prompts, p)
	w.mu.Unlock()
	th, _, err := w.store.AcceptPrompt(ctx, inbox.NewPrompt{
		InboxID: id, Thread: w.key, Project: "web", UserID: user, UUID: p.uuid, Text: strings.NewReplacer("%p", p.marker, "%n", p.marker[1:]).Replace(text),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.thread = th.ID
	return p
}

// over reports whether a prompt has ended, in whatever way.
func (w *world) over(p sentPrompt) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.marks[p.inboxID]
	return m != "" && m != PromptQueued && m != PromptRunning
}

func (w *world) finish(prompts ...sentPrompt) {
	w.t.Helper()
	for _, p := range prompts {
		w.await("the end of "+p.marker, func() bool { return w.over(p) })
	}
}
