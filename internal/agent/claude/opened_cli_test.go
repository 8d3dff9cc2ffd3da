package claude_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/agent/claude"
	"deckhand/internal/needtest"
)

// TestCLIOpens runs a rich session of the pinned CLI under strace and looks at every path
// that it and its children open, or look for, below HOME, the configuration folder and the
// workspace, or anywhere that is named for it. Each must have been judged: see
// opened_judged_test.go. A version that opens another one is red until somebody has found
// out whether it obeys what it reads there. make test has a shorter session, of one turn
// and one resumption with what every session does; make test-cli-versions the rich one.
func TestCLIOpens(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("strace is Linux's")
	}
	strace := needtest.Program(t, "strace")
	cli := theCLI(t)
	if cli.version != pinned {
		t.Skip("the list is that of the pinned version")
	}
	r := &rich{session: prepare(t, cli), trace: filepath.Join(t.TempDir(), "trace"), strace: strace}
	least := 150
	if *update || os.Getenv("DECKHAND_TEST_CLI_VERSIONS") != "" {
		r.run()
	} else {
		least = 100
		r.short()
	}
	judgedEntries(t, r.home)
	opened := r.opened()
	by := map[string]map[string]bool{} // programs by pattern
	for _, o := range opened {
		pattern := judgedBy(o.path, o.program)
		if pattern == "" {
			t.Errorf("nobody has judged %s, which %s opens (%s)", o.path, o.program, o.call)
			continue
		}
		if by[pattern] == nil {
			by[pattern] = map[string]bool{}
		}
		by[pattern][o.program] = true
	}
	if len(opened) < least || by["~/.claude/projects/*/*.jsonl"] == nil || by["~/.gitconfig"] == nil || by["~/.{bashrc,bash_profile,bash_login,profile}"] == nil {
		t.Errorf("only %d paths were seen: is the trace read?", len(opened))
	}
	checkOpened(t, by)
}

// checkOpened compares the judgements with the document; who opens what is written with
// -update, and differs between machines and runs.
func checkOpened(t *testing.T, by map[string]map[string]bool) {
	t.Helper()
	if *update {
		compareWithDoc(t, "opened", openedTable(by))
		return
	}
	doc, err := os.ReadFile(protocolDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range judged {
		if before, after := j.cells(); !slices.ContainsFunc(strings.Split(string(doc), "\n"), func(line string) bool {
			return strings.HasPrefix(line, before) && strings.HasSuffix(line, after)
		}) {
			t.Errorf("docs/protocol.md has no row for %s as it is judged: run with -update and look at the difference", j.path)
		}
	}
}

func openedTable(by map[string]map[string]bool) string {
	var b strings.Builder
	b.WriteString("| path | opened by | what it is | what becomes of it |\n|---|---|---|---|\n")
	for _, j := range judged {
		programs := slices.Sorted(maps.Keys(by[j.path]))
		before, after := j.cells()
		fmt.Fprintf(&b, "%s%s%s\n", before, strings.Join(programs, ", "), after)
	}
	return b.String()
}

func (j judgement) cells() (before, after string) {
	return "| `" + strings.ReplaceAll(j.path, "|", `\|`) + "` | ", " | " + j.what + " | " + j.becomes + " |"
}

// judgedBy is the first pattern that a path fits; empty if none does.
func judgedBy(path, program string) string {
	for _, j := range judged {
		if ok, _ := doublestar.Match(j.path, path); ok && !(j.children && program == "claude") { // a test holds that the patterns are right
			return j.path
		}
	}
	return ""
}

func TestJudgedPatterns(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, j := range judged {
		if !doublestar.ValidatePattern(j.path) || seen[j.path] || j.what == "" || j.becomes == "" {
			t.Errorf("%+v", j)
		}
		seen[j.path] = true
	}
}

// rich is a session that uses all that the CLI has.
type rich struct {
	*session
	trace, strace string
}

func (r *rich) setup(s *session, o *claude.Options, req *claude.InitializeRequest) {
	o.Command = append([]string{
		r.strace, "-f", "--seccomp-bpf", "-y", "-qq", "-s", "4096", "-A", "-o", r.trace, "-e", "trace=%file,clone,clone3,fork,vfork", "-e", "signal=none",
	}, o.Command...)
	o.Env = withEnv(o.Env, "SHELL=/bin/bash", "CLAUDE_CODE_SHELL=/bin/bash", "CLAUDE_CODE_DISABLE_FILE_MENTIONS=1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY=1", "CLAUDE_CODE_DISABLE_CRON=1", "GIT_TERMINAL_PROMPT=0", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GOPROXY=off")
	req.PreToolUse = true
	server := addServer()
	addTool(server, "greet", func(_ context.Context, name string) string { return "Hello, " + name })
	req.MCPServers = map[string]*mcp.Server{"house": server}
	o.MCPConfig = mustJSON(s.t, map[string]any{"mcpServers": map[string]any{"outside": mcpProgram(s.t)}})
	s.onHook = func(m *claude.HookCallback) { s.must(s.p.AnswerPreToolUse(m.RequestID, claude.HookAsk, "")) }
}

// short is what every session does: a turn with a command, the tools that are about files
// and a subagent, and another one after it was resumed.
func (r *rich) short() {
	s := r.session
	r.repository()
	file := filepath.Join(s.dir, "a.txt")
	s.start(r.setup)
	s.try(bash(s.t, "git status && git log --oneline"),
		"tool: Read "+mustJSON(s.t, map[string]string{"file_path": file}),
		"tool: Edit "+mustJSON(s.t, map[string]string{"file_path": file, "old_string": "two", "new_string": "three"}),
		`tool: Glob {"pattern":"**/*.txt"}`, `tool: Grep {"pattern":"three"}`, `tool: mcp__house__greet {"name":"Ada"}`,
		"tool: Task "+mustJSON(s.t, map[string]any{
			"description": "a job", "prompt": "say: from the subagent", "subagent_type": "general-purpose", "run_in_background": false,
		}), "say: done")
	s.must(s.p.Stop(s.ctx))
	s.ended()
	s.start(r.setup, resumed)
	s.try("say: resumed")
	s.must(s.p.Stop(s.ctx))
	s.ended()
}

// run goes through the tools, the requests and the lives of a session.
func (r *rich) run() {
	s := r.session
	r.repository()
	file := func(name string) string { return filepath.Join(s.dir, name) }
	s.start(r.setup)
	s.try(bash(s.t, "git status && git log --oneline && git diff && git commit -qam change"), "say: git")
	for _, program := range []struct{ name, command string }{
		{"node", "node -e 1; node index.js"},
		{"npm", "npm --version; npm test --silent || true"},
		{"go", "go env GOMOD; go list ./... || true"},
		{"python3", "python3 -c 1"},
		{"make", "make -n || true"},
	} {
		if _, err := exec.LookPath(program.name); err == nil {
			s.try(bash(s.t, program.command), "say: "+program.name)
		}
	}
	s.try("tool: Read "+mustJSON(s.t, map[string]string{"file_path": file("a.txt")}),
		"tool: Edit "+mustJSON(s.t, map[string]string{"file_path": file("a.txt"), "old_string": "two", "new_string": "three"}),
		"tool: Write "+mustJSON(s.t, map[string]string{"file_path": file("sub/new.txt"), "content": "x"}),
		"tool: Read "+mustJSON(s.t, map[string]string{"file_path": file("n.ipynb")}),
		"tool: NotebookEdit "+mustJSON(s.t, map[string]string{"notebook_path": file("n.ipynb"), "new_source": "2", "cell_id": "a"}),
		`tool: Glob {"pattern":"**/*.txt"}`, `tool: Grep {"pattern":"three"}`, `tool: LS {"path":"."}`, "say: files")
	s.try("tool: Task "+mustJSON(s.t, map[string]any{
		"description": "a job", "prompt": bash(s.t, "touch by-the-sub") + "\nsay: from the subagent", "subagent_type": "general-purpose", "run_in_background": false,
	}), "say: subagent")
	s.try(`tool: TodoWrite {"todos":[{"content":"x","status":"pending","activeForm":"x"}]}`, `tool: TaskCreate {"subject":"x","description":"y","activeForm":"z"}`, "say: todo")
	s.try(`tool: Skill {"skill":"nothing"}`, `tool: mcp__house__greet {"name":"Ada"}`, `tool: WebFetch {"url":"http://127.0.0.1:9/","prompt":"x"}`, `tool: ToolSearch {"query":"x"}`, "say: others")
	s.try(bash(s.t, "seq 1 100000"), bash(s.t, "cd sub && pwd"), "say: large")
	r.plan()
	r.interrupt()
	_, err := s.p.Baseline(s.ctx)
	s.must(err)
	s.try(`tool: mcp__outside__echo {"name":"y"}`, "say: servers")
	s.must(s.p.Stop(s.ctx))
	s.ended()
	s.start(r.setup, resumed)
	s.try("say: resumed")
	s.try("/compact")
	s.try(bash(s.t, "ls -a ~"), "say: on")
	s.try("/clear")
	s.try("say: anew")
	s.must(s.p.Stop(s.ctx))
	s.ended()
}

// try runs a turn, whatever becomes of it.
func (s *session) try(lines ...string) {
	s.t.Helper()
	s.run(lines...)
}

func (r *rich) plan() {
	s := r.session
	s.must(s.p.SetPermissionMode(s.ctx, "plan"))
	s.try("tool: Write "+`{"file_path":"{{plan_file}}","content":"# Plan\n1. do it"}`, `tool: ExitPlanMode {"plan":"# Plan\n1. do it"}`, "say: planned")
	s.must(s.p.SetPermissionMode(s.ctx, "default"))
	question := map[string]any{"questions": []map[string]any{{
		"question": "Which?", "header": "x", "multiSelect": false, "options": []map[string]string{{"label": "Red", "description": "x"}, {"label": "Blue", "description": "y"}},
	}}}
	ask := s.onAsk
	defer func() { s.onAsk = ask }()
	s.onAsk = func(m *claude.CanUseTool) {
		var in map[string]any
		s.must(json.Unmarshal(m.Input, &in))
		in["answers"] = map[string]string{"Which?": "Blue"}
		s.must(s.p.Allow(m.RequestID, json.RawMessage(mustJSON(s.t, in))))
	}
	s.try("tool: AskUserQuestion "+mustJSON(s.t, question), "say: asked")
}

func (r *rich) interrupt() {
	s := r.session
	s.must(s.p.Prompt(uuid.NewString(), claude.Text("slow: 20\nsay: "+strings.Repeat("slowly ", 50))))
	s.until("the first delta", isDelta)
	s.must(s.p.Interrupt(s.ctx))
	s.result()
}

// repository makes the workspace one with something for every program.
func (r *rich) repository() {
	s := r.session
	for name, text := range map[string]string{
		"CLAUDE.md": "Be good.\n", "a.txt": "one\n", "index.js": "1\n", "package.json": `{"name":"x","scripts":{"test":"true"}}`, "go.mod": "module x\n\ngo 1.21\n",
		"main.go": "package main\n\nfunc main() {}\n", "Makefile": "all:\n\ttrue\n", "sub/keep": "",
		"n.ipynb": `{"cells":[{"cell_type":"code","id":"a","source":["1"],"metadata":{},"outputs":[],"execution_count":null}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
	} {
		s.must(os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o700))
		s.must(os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	git(s.t, s.dir, "init", "-q")
	git(s.t, s.dir, "config", "user.name", "t")
	git(s.t, s.dir, "config", "user.email", "t@example.com")
	git(s.t, s.dir, "add", ".")
	git(s.t, s.dir, "commit", "-qm", "first")
	s.must(os.WriteFile(filepath.Join(s.dir, "a.txt"), []byte("two\n"), 0o600))
}

// open is one path that a program has opened or looked for.
type open struct{ path, program, call string }

var (
	traceLine = regexp.MustCompile(`^(\d+) +(\w+)\((.*)$`)
	resumed2  = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>.* = (-?\d+)`)
	answered  = regexp.MustCompile(` = (-?\d+)`)
	pathWord  = regexp.MustCompile(`(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"`)
)

// opened reads the trace. Paths begin with ~ for HOME, with . for the workspace.
func (r *rich) opened() []open {
	f, err := os.Open(r.trace)
	r.must(err)
	defer f.Close() //nolint:errcheck // it is only read
	t := tracer{program: map[string]string{}, cwd: map[string]string{}, pending: map[string]string{}, at: map[string]open{}, home: r.home, dir: r.dir, cli: filepath.Dir(r.cli.path)}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		t.line(lines.Text())
	}
	r.must(lines.Err())
	return slices.SortedFunc(maps.Values(t.at), func(a, b open) int { return strings.Compare(a.path+" "+a.program, b.path+" "+b.program) })
}

// tracer follows the processes of a trace.
type tracer struct {
	program, cwd   map[string]string // by process
	pending        map[string]string // a program that is about to take a process over
	at             map[string]open
	home, dir, cli string
}

func (t *tracer) line(line string) {
	if m := resumed2.FindStringSubmatch(line); m != nil {
		t.returned(m[1], m[2], m[3])
		return
	}
	m := traceLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	pid, call, rest := m[1], m[2], m[3]
	result := answered.FindStringSubmatch(rest)
	if call == "execve" {
		if p := pathWord.FindStringSubmatch(rest); p != nil {
			t.pending[pid] = filepath.Base(p[2])
			rest = p[0] // its arguments are no paths
		}
	}
	if call != "symlink" {
		for _, p := range pathWord.FindAllStringSubmatch(rest, 2) {
			t.opened(pid, call, p[1], p[2])
		}
	}
	if result != nil {
		if call == "chdir" && result[1] == "0" {
			if p := pathWord.FindStringSubmatch(rest); p != nil {
				t.cwd[pid] = t.absolute(pid, "", p[2])
			}
		}
		t.returned(pid, call, result[1])
	}
}

func (t *tracer) returned(pid, call, result string) {
	switch {
	case call == "execve" && result == "0":
		t.program[pid] = t.pending[pid]
	case strings.HasPrefix(call, "clone") || strings.HasSuffix(call, "fork"):
		if t.program[result] == "" {
			t.program[result] = t.program[pid]
		}
		if t.cwd[result] == "" {
			t.cwd[result] = t.cwd[pid]
		}
	}
}

func (t *tracer) absolute(pid, dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	if dir == "" {
		dir = t.cwd[pid]
	}
	if dir == "" {
		dir = t.dir
	}
	return filepath.Join(dir, path)
}

func (t *tracer) opened(pid, call, dir, word string) {
	if word == "" {
		return
	}
	path := t.absolute(pid, dir, word)
	switch {
	case path == t.home || strings.HasPrefix(path, t.home+"/"):
		path = "~" + path[len(t.home):]
	case path == t.dir || strings.HasPrefix(path, t.dir+"/"):
		path = "." + path[len(t.dir):]
	case strings.HasPrefix(path, t.cli):
		return
	default:
		if name, ok := strings.CutPrefix(path, filepath.Clean(os.TempDir())+"/"); ok {
			path = "/tmp/" + name // it is judged as if it lay there
		}
		if !strings.Contains(path, "claude") && !strings.Contains(path, "/cc-") {
			return
		}
	}
	program := t.program[pid]
	if program == "" {
		program = "claude"
	}
	key := path + " " + program
	if _, known := t.at[key]; !known {
		t.at[key] = open{path, program, call}
	}
}
