package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// workspace is a folder with a file, a link that leads out of it, and one that
// leads nowhere.
func workspace(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "ws")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "src"), 0o755),
		os.WriteFile(filepath.Join(dir, "src", "a.go"), nil, 0o644),
		os.WriteFile(filepath.Join(root, "secret"), nil, 0o644),
		os.Symlink(root, filepath.Join(dir, "out")),
		os.Symlink("/nowhere/at/all", filepath.Join(dir, "dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	rules := Policy{Rules: []Rule{
		{Verdict: Deny, Tools: []string{"mcp__prod__*", "WebFetch"}},
		{Verdict: Allow, Tools: []string{"Edit", "Read", "mcp__*"}},
		{Verdict: Ask, Tools: []string{"Read", "Glob"}}, // Read never gets here
	}}
	tests := []struct {
		name   string
		policy Policy
		tool   string
		input  any
		want   Verdict
	}{
		{"reading in the workspace", Policy{}, "Read", map[string]any{"file_path": ws + "/src/a.go"}, Allow},
		{"reading a relative path", Policy{}, "Read", map[string]any{"file_path": "src/a.go"}, Allow},
		{"reading what is not there yet", Policy{}, "Read", map[string]any{"file_path": ws + "/src/new/b.go"}, Allow},
		{"reading the workspace's neighbour by ..", Policy{}, "Read", map[string]any{"file_path": ws + "/../secret"}, Ask},
		{"reading a folder whose name only begins alike", Policy{}, "Read", map[string]any{"file_path": ws + "-other/x"}, Ask},
		{"reading through a link that leads out", Policy{}, "Read", map[string]any{"file_path": ws + "/out/secret"}, Ask},
		{"reading through a link that leads nowhere", Policy{}, "Read", map[string]any{"file_path": ws + "/dangling"}, Ask},
		{"reading the root", Policy{}, "Read", map[string]any{"file_path": "/etc/passwd"}, Ask},
		{"reading a path that is no string", Policy{}, "Read", map[string]any{"file_path": []string{"/etc/passwd"}}, Ask},
		{"reading with an input that is no object", Policy{}, "Read", []int{1}, Ask},
		{"searching without a path", Policy{}, "Grep", map[string]any{"pattern": "/etc/../x"}, Allow},
		{"searching elsewhere", Policy{}, "Grep", map[string]any{"pattern": "x", "path": "/etc"}, Ask},
		{"globbing upwards", Policy{}, "Glob", map[string]any{"pattern": "../**"}, Ask},
		{"globbing from the root", Policy{}, "Glob", map[string]any{"pattern": "/etc/*"}, Ask},
		{"globbing inside", Policy{}, "Glob", map[string]any{"pattern": "**/*.go"}, Allow},
		{"editing", Policy{}, "Edit", map[string]any{"file_path": ws + "/src/a.go"}, Ask},
		{"a command", Policy{}, "Bash", map[string]any{"command": "ls"}, Ask},
		{"bookkeeping", Policy{}, "TodoWrite", map[string]any{}, Allow},
		{"a subagent", Policy{}, "Agent", map[string]any{"prompt": "x"}, Allow},
		{"a tool that nobody knows", Policy{}, "Teleport", map[string]any{}, Ask},
		{"a rule that allows", rules, "Edit", map[string]any{"file_path": ws + "/src/a.go"}, Allow},
		{"a rule that allows, outside", rules, "Edit", map[string]any{"file_path": "/etc/passwd"}, Ask},
		{"a rule that allows, through a link", rules, "Edit", map[string]any{"file_path": ws + "/out/secret"}, Ask},
		{"the first rule wins", rules, "mcp__prod__drop", map[string]any{}, Deny},
		{"a later rule", rules, "mcp__dev__list", map[string]any{}, Allow},
		{"a rule that denies", rules, "WebFetch", map[string]any{"url": "https://x"}, Deny},
		{"a rule that asks for what is allowed by default", rules, "Glob", map[string]any{"pattern": "*"}, Ask},
		{"no rule answers a question", Policy{Rules: []Rule{{Verdict: Allow, Tools: []string{"*"}}}}, "AskUserQuestion", map[string]any{}, Ask},
		{"no rule accepts a plan", Policy{Rules: []Rule{{Verdict: Allow, Tools: []string{"*"}}}}, "ExitPlanMode", map[string]any{}, Ask},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			input, err := json.Marshal(tt.input)
			if err != nil {
				t.Fatal(err)
			}
			if got, rule := tt.policy.Decide(tt.tool, input, ws); got != tt.want || rule == "" {
				t.Errorf("Decide(%s, %s) = %s by %q, want %s", tt.tool, input, got, rule, tt.want)
			}
		})
	}
}

// Whatever a file tool is given, it is allowed inside the workspace only.
func FuzzPolicyPaths(f *testing.F) {
	ws := workspace(f)
	for _, p := range []string{"", "a", "../x", "/", "out/..", "out/../secret", "./dangling/x", "src/../../secret", "\x00", "src//a.go"} {
		f.Add(p)
	}
	root, err := filepath.EvalSymlinks(ws)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string) {
		input, err := json.Marshal(map[string]string{"file_path": path})
		if err != nil {
			t.Skip("no JSON")
		}
		if v, _ := (Policy{}).Decide("Read", input, ws); v != Allow || path == "" {
			return
		}
		var decoded map[string]string // what the CLI reads: invalid UTF-8 is replaced
		if err := json.Unmarshal(input, &decoded); err != nil {
			t.Fatal(err)
		}
		target := decoded["file_path"]
		if !filepath.IsAbs(target) {
			target = filepath.Join(ws, target)
		}
		if leads, err := filepath.EvalSymlinks(target); err == nil && !inside(root, leads) {
			t.Errorf("%q was allowed and leads to %s", path, leads)
		}
	})
}

func BenchmarkPolicy(b *testing.B) {
	ws := workspace(b)
	p := Policy{}
	for range 200 {
		p.Rules = append(p.Rules, Rule{Verdict: Deny, Tools: []string{"mcp__some_server__*"}})
	}
	input := json.RawMessage(`{"command":"go test ./..."}`)
	for b.Loop() {
		p.Decide("Bash", input, ws)
	}
}

func TestAReplicaHasItsFolderAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := OpenReplica(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReplica(dir); err == nil {
		t.Error("two replicas have one folder")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := OpenReplica(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close() //nolint:errcheck // the test is over
	if first.ID != second.ID {
		t.Error("the replica's id changed with a restart, so it would wait for its own leases")
	}
}

func TestSlotsGoToWhoWaitsLongest(t *testing.T) {
	t.Parallel()
	s := newSlots(1)
	a, b := &worker{box: newMailbox()}, &worker{box: newMailbox()}
	if err := s.acquire(t.Context(), a, func() { t.Error("nobody was busy") }); err != nil {
		t.Fatal(err)
	}
	busy := make(chan struct{})
	got := make(chan error, 1)
	go func() { got <- s.acquire(t.Context(), b, func() { close(busy) }) }()
	<-busy // a works, so b is told to wait
	s.rest(a, true)
	for a.box.empty() {
		time.Sleep(time.Millisecond)
	}
	if l := a.box.take(); len(l) != 1 || l[0].kind != letterHibernate {
		t.Errorf("the idle session got %v", l)
	}
	s.release(a)
	if err := <-got; err != nil {
		t.Error(err)
	}
	if s.used() != 1 {
		t.Errorf("%d slots are in use", s.used())
	}
}

func (b *mailbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.letters) == 0
}
