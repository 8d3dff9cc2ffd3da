package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude/reaper"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/jobs"
	"deckhand/internal/sandbox"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
	"deckhand/internal/waittest"
	"deckhand/internal/workspace"
)

// The bot of a history: a real Supervisor in a process of its own, so that it can
// really die. It reads commands from stdin and writes what its frontend was shown
// to stdout, both a JSON object to a line.

const botVariable = "DECKHAND_TEST_BOT"

type botConfig struct {
	Database, DataDir, Workspace, CLI, Version, Model, CheaperModel, ModelURL string
}

// botCommand is what the history has the bot do.
type botCommand struct {
	Do     string // hibernate, stop, sever or quit
	Thread int64
}

// botEvent is what people would have been shown; one of its fields is set.
type botEvent struct {
	Ready    bool       `json:",omitempty"`
	Turn     *shownTurn `json:",omitempty"`
	Approval *shownAsk  `json:",omitempty"`
	Prompt   *shownMark `json:",omitempty"`
	Budget   string     `json:",omitempty"` // the notice's id
	Said     string     `json:",omitempty"`
}

type shownTurn struct {
	ID       int64
	State    TurnState
	Problem  string
	MicroUSD int64
}

type shownAsk struct {
	ID     string
	Status approvals.Status
}

type shownMark struct {
	InboxID int64
	Mark    PromptMark
}

// recorder is the frontend that writes down what it is shown.
type recorder struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (r *recorder) write(e botEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Encode(e) // nobody reads any more when the test is over
}

func (r *recorder) ShowTurn(t TurnView) {
	r.write(botEvent{Turn: &shownTurn{ID: t.ID, State: t.State, Problem: t.Problem, MicroUSD: t.CostMicroUSD}})
}

func (r *recorder) ShowApproval(a approvals.Approval) {
	r.write(botEvent{Approval: &shownAsk{a.ID, a.Status}})
}

func (r *recorder) Show(kind outbox.PostKind, id string) {
	if kind == outbox.BudgetPost {
		r.write(botEvent{Budget: id})
	}
}

func (r *recorder) MarkPrompt(p inbox.Prompt, m PromptMark) {
	r.write(botEvent{Prompt: &shownMark{p.InboxID, m}})
}

func (r *recorder) ShowQueue(int64, *StartWait)       {}
func (r *recorder) CloseOffer(int64)                  {}
func (r *recorder) Changed(string)                    {}
func (r *recorder) SetShare(Share)                    {}
func (r *recorder) ShowPlace(threads.Thread, int)     {}
func (r *recorder) Say(_ threads.ThreadKey, s string) { r.write(botEvent{Said: s}) }
func (r *recorder) Leave(int64)                       {}
func (r *recorder) Tell(rows ...outbox.Row) {
	for _, w := range rows {
		if w.Kind == outbox.Mark {
			r.write(botEvent{Prompt: &shownMark{w.InboxID, PromptMark(w.Body)}})
			continue
		}
		r.write(botEvent{Said: w.Body})
	}
}
func (r *recorder) Hides(string) bool { return false }

func (r *recorder) OfferConnection(threads.ThreadKey, string, string, string) {}
func (r *recorder) Attach(threads.ThreadKey, string, string)                  {}
func (r *recorder) Abandon(_ int64, s string)                                 { r.write(botEvent{Said: s}) }
func (r *recorder) Remind(context.Context, approvals.Approval, int) error     { return nil }

func (r *recorder) MayDecide(context.Context, string, approvals.Approval) bool { return true }

var _ Frontend = (*recorder)(nil)

// playBot is the bot's process.
func playBot(in io.Reader, out io.Writer) error {
	var c botConfig
	if err := json.Unmarshal([]byte(os.Getenv(botVariable)), &c); err != nil {
		return fmt.Errorf("read %s: %w", botVariable, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	replica, err := place.OpenReplica(c.DataDir)
	if err != nil {
		return err
	}
	defer replica.Close() //nolint:errcheck // the process ends
	reaper.Orphans()
	s, err := store.Open(ctx, c.Database, store.Options{Jobs: jobs.Inserter{}})
	if err != nil {
		return err
	}
	defer s.Close()
	rules, err := policy.New([]policy.Rule{
		{Verdict: policy.Ask, Patterns: []policy.Pattern{policy.MustParsePattern("Bash(echo please *)")}},
		{Verdict: policy.Allow, Patterns: []policy.Pattern{policy.MustParsePattern("Bash"), policy.MustParsePattern("Task"), policy.MustParsePattern("Agent")}},
	}, policy.Terms{})
	if err != nil {
		return err
	}
	log := zap.NewNop()
	if os.Getenv("DECKHAND_TEST_LOG") != "" {
		log = zap.Must(zap.NewDevelopment())
	}
	environment := map[string]string{"ANTHROPIC_BASE_URL": c.ModelURL, "ANTHROPIC_API_KEY": "sk-ant-test"}
	way, err := gateway.New(gateway.Options{Dir: filepath.Join(c.DataDir, "gateway"), Getenv: func(name string) string { return environment[name] }, Log: log})
	if err != nil {
		return err
	}
	defer way.Close()
	rec := &recorder{out: json.NewEncoder(out)}
	sup := New(Config{
		Store: s, Frontend: rec, Authoriser: rec, Reminder: rec, Replica: replica.ID, DataDir: c.DataDir, Policy: rules,
		Projects: map[string]place.Project{"web": {Name: "web", Dir: c.Workspace, Workspace: workspace.Shared, Model: c.Model, Sandbox: sandbox.Spec{Network: sandbox.Open}}},
		Command:  []string{c.CLI}, CLIVersion: c.Version, Log: log,
		Gateway: way,
		Limits:  Limits{Poll: 500 * time.Millisecond, AnswerTimeout: waittest.Limit, StopTimeout: waittest.Limit, IdleTimeout: time.Hour, Silence: time.Hour},
	})
	ran := make(chan error, 1)
	go func() { ran <- sup.Run(ctx) }()
	rec.write(botEvent{Ready: true})
	commands := bufio.NewScanner(in)
	for commands.Scan() {
		var cmd botCommand
		if err := json.Unmarshal(commands.Bytes(), &cmd); err != nil {
			return fmt.Errorf("read a command: %w", err)
		}
		switch cmd.Do {
		case "hibernate":
			sup.send(cmd.Thread, message{kind: messageHibernate})
		case "stop":
			if _, err := sup.Stop(ctx, threads.Thread{ID: cmd.Thread}, "U1"); err != nil {
				return err
			}
		case "sever":
			sever(filepath.Join(c.DataDir, "gateway"))
		case "quit":
			stop()
			return <-ran
		}
	}
	return commands.Err()
}

// sever shuts down the connections of the gateway's sessions in this process.
func sever(dir string) {
	open, _ := filepath.Glob("/proc/self/fd/*")
	for _, path := range open {
		fd, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		local, err := syscall.Getsockname(fd)
		if at, ok := local.(*syscall.SockaddrUnix); err != nil || !ok || !strings.HasPrefix(at.Name, dir) {
			continue
		}
		if _, err := syscall.Getpeername(fd); err == nil { // not the listener
			_ = syscall.Shutdown(fd, syscall.SHUT_RDWR)
		}
	}
}
