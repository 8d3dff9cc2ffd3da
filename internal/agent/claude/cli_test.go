package claude_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/needtest"
	"deckhand/internal/playground/model"
	"deckhand/internal/waittest"
)

// pinned is the version in deploy/claude/package.json.
const pinned = "2.1.329"

// program is a CLI to drive.
type program struct {
	path, version string
	plain, hooked *pool // of sessions to share; nil where each row starts its own
}

// theCLI finds the pinned CLI: DECKHAND_TEST_CLAUDE, or the cache that
// deploy/claude/install.sh fills.
func theCLI(tb testing.TB) program {
	tb.Helper()
	path := needtest.Claude(tb)
	version, err := claude.Version(tb.Context(), []string{path})
	if err != nil {
		tb.Fatal(err)
	}
	return program{path: path, version: version}
}

// session is a CLI process under test with its model, and what it has said.
type session struct {
	t     *testing.T
	cli   program
	p     *claude.Process
	ctx   context.Context
	model *model.Server
	url   string
	home  string
	dir   string
	id    string

	init  json.RawMessage
	turn  claude.Output
	turns []claude.Output
	log   []claude.Message

	// onAsk and onHook answer the CLI's requests; the defaults allow.
	onAsk  func(*claude.CanUseTool)
	onHook func(*claude.HookCallback)
}

type setup func(*session, *claude.Options, *claude.InitializeRequest)

// prepare makes a model, a home and a working directory without a process.
func prepare(t *testing.T, cli program) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	t.Cleanup(cancel)
	srv, err := model.New(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	s := &session{t: t, cli: cli, ctx: ctx, model: srv, url: web.URL, home: t.TempDir(), dir: t.TempDir(), id: uuid.NewString()}
	s.answersAll()
	return s
}

// answersAll allows what is asked.
func (s *session) answersAll() {
	s.onAsk = func(m *claude.CanUseTool) { s.must(s.p.Allow(m.RequestID, m.Input)) }
	s.onHook = func(m *claude.HookCallback) { s.must(s.p.AnswerHook(m.RequestID, nil)) }
}

// begin starts a CLI and initializes it.
func begin(t *testing.T, cli program, with ...setup) *session {
	t.Helper()
	s := prepare(t, cli)
	s.start(with...)
	return s
}

func (s *session) options() claude.Options {
	return claude.Options{
		Command: []string{s.cli.path}, Version: s.cli.version, Dir: s.dir, SessionID: s.id,
		Env:               s.env(nil),
		InitializeTimeout: waittest.Limit, RequestTimeout: waittest.Limit,
		// On a busy machine a CLI takes its time to save its session.
		StopGrace: claude.StopGrace{Close: waittest.Limit, Term: waittest.Limit, Kill: waittest.Limit},
	}
}

func (s *session) env(more map[string]string) []string {
	set := map[string]string{
		"HOME": s.home, "CLAUDE_CONFIG_DIR": filepath.Join(s.home, ".claude"),
		"ANTHROPIC_BASE_URL": s.url, "ANTHROPIC_API_KEY": "sk-ant-test",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
		"DECKHAND_TEST_ROLE": "",
		// It begins the first turn without an MCP server that has not answered after 5 s, and
		// gives it up after 30 s: on a busy machine that is too early.
		"MCP_CONNECT_TIMEOUT_MS": "600000", "MCP_TIMEOUT": "600000",
	}
	maps.Copy(set, more)
	return claude.Environ(nil, set)
}

// start starts a process for the session and initializes it.
func (s *session) start(with ...setup) {
	s.t.Helper()
	o, r := s.options(), claude.InitializeRequest{}
	for _, f := range with {
		f(s, &o, &r)
	}
	p, err := claude.Start(s.ctx, o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.p = p
	s.t.Cleanup(func() {
		p.Kill()
		waitDone(s.t, p)
	})
	if s.init, err = p.Initialize(s.ctx, r); err != nil {
		s.t.Fatalf("initialize: %v\n%s", err, stderrOf(p))
	}
	note(s.t, "→ initialize")
}

func stderrOf(p *claude.Process) string {
	if e := p.Exit(); e != nil {
		return e.Stderr
	}
	return ""
}

func (s *session) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// prompt sends text as a prompt and returns its uuid.
func (s *session) prompt(lines ...string) string {
	s.t.Helper()
	id := uuid.NewString()
	s.must(s.p.Prompt(id, claude.Text(strings.Join(lines, "\n"))))
	return id
}

// next takes one message, answers what is asked, and folds it.
func (s *session) next() (claude.Message, error) {
	m, err := s.p.Next(s.ctx)
	if err != nil {
		return nil, err
	}
	s.log = append(s.log, m)
	note(s.t, kindOf(m))
	if s.turn.Result != nil && startsTurn(m) {
		s.turn = s.turn.Next()
	}
	s.turn = s.turn.Fold(m)
	switch m := m.(type) {
	case *claude.CanUseTool:
		note(s.t, "→ answer to can_use_tool")
		s.onAsk(m)
	case *claude.HookCallback:
		note(s.t, "→ answer to hook "+m.Event)
		s.onHook(m)
	case *claude.Result:
		s.turns = append(s.turns, s.turn)
	}
	return m, nil
}

// until takes messages up to one that is wanted.
func (s *session) until(what string, wanted func(claude.Message) bool) claude.Message {
	s.t.Helper()
	for {
		m, err := s.next()
		if err != nil {
			s.t.Fatalf("waiting for %s: %v\nso far: %s", what, err, s.said())
		}
		if wanted(m) {
			return m
		}
	}
}

// result takes messages up to the next result.
func (s *session) result() *claude.Result {
	s.t.Helper()
	m := s.until("a result", func(m claude.Message) bool { _, ok := m.(*claude.Result); return ok })
	return m.(*claude.Result)
}

// run prompts and returns the turn.
func (s *session) run(lines ...string) claude.Output {
	s.t.Helper()
	s.prompt(lines...)
	s.result()
	return s.turn
}

// exit takes messages to the end of the process.
func (s *session) exit() *claude.ExitError {
	s.t.Helper()
	for {
		if _, err := s.next(); err != nil {
			var exit *claude.ExitError
			if !errors.As(err, &exit) {
				s.t.Fatalf("waiting for the end: %v", err)
			}
			return exit
		}
	}
}

// ended waits for the end, however it came.
func (s *session) ended() {
	s.t.Helper()
	_ = s.exit() // that it came is enough here
}

// transcribed waits until the session can be resumed: old versions write their
// transcript bit by bit, and its end a moment after the result.
func (s *session) transcribed() {
	s.t.Helper()
	eventually(s.ctx, s.t, func() bool {
		found, err := filepath.Glob(filepath.Join(s.home, ".claude", "projects", "*", s.id+".jsonl"))
		if err != nil || len(found) != 1 {
			return false
		}
		b, err := os.ReadFile(found[0])
		return err == nil && bytes.Contains(b, []byte(`"type":"assistant"`))
	})
}

// said lists the kinds of messages so far, for failures.
func (s *session) said() string {
	var kinds []string
	for _, m := range s.log {
		kinds = append(kinds, kindOf(m))
	}
	return strings.Join(slices.Compact(kinds), ", ")
}

// tool returns the turn's only call of a tool.
func (s *session) tool(turn claude.Output, name string) claude.ToolUse {
	s.t.Helper()
	for _, item := range turn.Items {
		if item.Tool != nil && item.Tool.Name == name {
			return *item.Tool
		}
	}
	s.t.Fatalf("no call of %s in %s", name, show(turn))
	return claude.ToolUse{}
}

// last reads a member of the last event of the CLI's own that has it.
func last[T any](s *session, member string) (v T) {
	s.t.Helper()
	for _, m := range slices.Backward(s.log) {
		var members map[string]json.RawMessage
		if m.Head().Type != "system" {
			continue
		}
		s.must(json.Unmarshal(m.Head().Raw, &members))
		if members[member] != nil {
			s.must(json.Unmarshal(members[member], &v))
			return v
		}
	}
	return v
}

// show prints a turn for failures and golden files.
func show(turn claude.Output) string {
	var b strings.Builder
	for _, item := range turn.Items {
		fmt.Fprintf(&b, "%s", item.Kind)
		if item.ParentID != "" {
			fmt.Fprintf(&b, " below %s", item.ParentID)
		}
		if item.Tool != nil {
			fmt.Fprintf(&b, " %s %s %s → %q (%d bytes)", item.Tool.Name, item.Tool.Input, item.Tool.State, item.Tool.Result, item.Tool.ResultBytes)
		}
		if item.Text != "" {
			fmt.Fprintf(&b, " %q", item.Text)
		}
		if !item.Final {
			b.WriteString(" (open)")
		}
		if item.Error {
			b.WriteString(" (error)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// kindOf names a message as docs/protocol.md does.
func kindOf(m claude.Message) string {
	h := m.Head()
	switch m := m.(type) {
	case *claude.StreamEvent:
		if m.Delta != "" {
			return "stream_event " + m.Delta
		}
		return "stream_event " + m.Event
	case *claude.HookCallback:
		return "hook_callback " + m.Event
	case *claude.CommandLifecycle:
		return "command_lifecycle " + m.State
	case *claude.Result, *claude.System:
		return h.Type + " " + h.Subtype
	case *claude.Assistant:
		if len(m.Content) == 1 {
			return "assistant " + m.Content[0].Type
		}
	case *claude.User:
		if len(m.Content) > 0 {
			return "user " + m.Content[0].Type
		}
	}
	if h.Type == "control_request" {
		return h.Subtype
	}
	return h.Type
}

// witnessed is what was seen, by kind and test.
var witnessed = struct {
	sync.Mutex
	by map[string]map[string]bool
}{by: make(map[string]map[string]bool)}

// note records that a test has seen or sent something.
func note(t *testing.T, kind string) {
	witnessed.Lock()
	defer witnessed.Unlock()
	if witnessed.by[kind] == nil {
		witnessed.by[kind] = make(map[string]bool)
	}
	witnessed.by[kind][t.Name()] = true
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// startsTurn reports whether m can be the first message of a turn: a host that
// holds a finished turn then goes on with [claude.Output.Next]. Turns also begin without
// a prompt, as when a subagent in the background has finished; what such a
// subagent says before still belongs to the finished turn.
func startsTurn(m claude.Message) bool {
	switch m := m.(type) {
	case *claude.System:
		return m.Subtype == "init"
	case *claude.CommandLifecycle:
		return m.State == "started"
	case *claude.StreamEvent:
		return m.ParentToolUseID == "" && m.Event == "message_start"
	case *claude.Assistant:
		return m.ParentToolUseID == ""
	case *claude.CanUseTool:
		return m.AgentID == ""
	case *claude.HookCallback:
		return m.Event == "UserPromptSubmit"
	}
	return false
}
