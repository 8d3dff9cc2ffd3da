package claude_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
)

// toolTable is what the policy judges: every built-in tool of the pinned CLI with
// each of its parameters, as the CLI itself tells the model and the hook of them.
const toolTable = "../policy/testdata/tools.json"

// offered is the table.
type offered struct {
	Version string                 `json:"version"`
	Tools   map[string]offeredTool `json:"tools"`
}

type offeredTool struct {
	// Seen is the first way of starting the CLI that offers the tool.
	Seen string `json:"seen"`
	// Parameters are the types in the schemas: several where the CLI takes several,
	// or ways differ.
	Parameters map[string][]string `json:"parameters"`
	// Added are those that only the hook is told of: the CLI adds them itself.
	Added []string `json:"added,omitempty"`
}

// ofTheBot is how many of toolWays are how the bot starts the CLI.
const ofTheBot = 2

// toolWays are the ways of starting the CLI between which its tools differ. The
// first two are how the bot starts it; the others take a variable that a project
// would have to name, or a flag that the bot does not give.
func toolWays(t *testing.T) []toolWay {
	env := func(more ...string) setup {
		return func(_ *session, o *claude.Options, _ *claude.InitializeRequest) { o.Env = withEnv(o.Env, more...) }
	}
	flags := func(more ...string) setup {
		return func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
			o.Command = append(o.Command, more...)
		}
	}
	agent := "tool: Agent " + mustJSON(t, map[string]any{"description": "look", "prompt": "say: Found it.", "run_in_background": false})
	return []toolWay{
		{name: "deferred tools", setup: env("ENABLE_TOOL_SEARCH=true")},
		{name: "every tool at once", setup: env()},
		{name: "a subagent", setup: env(), prompt: agent},
		{name: "plan mode", setup: func(_ *session, o *claude.Options, _ *claude.InitializeRequest) { o.PermissionMode = "plan" }},
		{name: "background tasks", setup: env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=")},
		{name: "an MCP server with resources", setup: withResources(t)},
		{name: "a list of tasks", setup: env("CLAUDE_CODE_ENABLE_TODO_TOOLS=1")},
		{name: "a list of todos", setup: env("CLAUDE_CODE_ENABLE_TODO_TOOLS=1", "CLAUDE_CODE_ENABLE_TASKS=0")},
		{name: "--tools", setup: flags("--tools", "Bash,Read,Glob,Grep")},
		{name: "PowerShell", setup: env("CLAUDE_CODE_USE_POWERSHELL_TOOL=1", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=")},
		{name: "brief", setup: env("CLAUDE_CODE_BRIEF=1")},
		{name: "a language server", setup: withLanguageServer(t)},
		{name: "agent teams", setup: env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1")},
		{name: "forks", setup: env("CLAUDE_CODE_FORK_SUBAGENT=1")},
		{name: "in the cloud", setup: env("CLAUDE_CODE_REMOTE=1")},
		{name: "in the desktop's app", setup: env("CLAUDE_CODE_ENTRYPOINT=local-agent")},
		{name: "a result by schema", setup: flags("--json-schema", `{"type":"object","properties":{}}`)},
		{name: "an old model", setup: func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
			o.Model = "claude-3-5-haiku-20241022"
		}},
	}
}

type toolWay struct {
	name   string
	setup  setup
	prompt string
}

func withResources(t *testing.T) setup {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddResource(&mcp.Resource{URI: "test://a", Name: "a"}, nil)
	return func(_ *session, _ *claude.Options, r *claude.InitializeRequest) {
		r.MCPServers = map[string]*mcp.Server{"house": server}
	}
}

func withLanguageServer(t *testing.T) setup {
	dir := filepath.Join(t.TempDir(), ".claude-plugin")
	manifest := `{"name":"lsp","version":"1.0.0","lspServers":{"go":{"command":"cat","extensionToLanguage":{".go":"go"}}}}`
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
		o.Env = withEnv(o.Env, "ENABLE_LSP_TOOL=1")
		o.Command = append(o.Command, "--plugin-dir", filepath.Dir(dir))
	}
}

// TestCLITools drives the pinned CLI in each of the ways and compares the tools that
// it offers with the table that the policy's judgements are held against. A new CLI
// fails here first; with -update the table is written, and the policy's own test is
// red until each new tool and parameter is judged. make test drives it in the ways of
// the bot, and holds that the table is of the pinned version; make test-cli-versions in
// all of them.
func TestCLITools(t *testing.T) {
	cli := theCLI(t)
	if cli.version != pinned {
		t.Skipf("the table is about %s, and this is %s", pinned, cli.version)
	}
	got := offered{Version: cli.version, Tools: map[string]offeredTool{}}
	ways := toolWays(t)
	whole := *update || os.Getenv("DECKHAND_TEST_CLI_VERSIONS") != ""
	if !whole {
		ways = ways[:ofTheBot]
	}
	seen := make([]map[string]toolSchema, len(ways))
	var added map[string][]string
	t.Run("ways", func(t *testing.T) {
		for i, w := range ways {
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				seen[i] = toolsOffered(t, cli, w)
			})
		}
		t.Run("hook", func(t *testing.T) {
			t.Parallel()
			added = toolsHooked(t, cli, "", toolCalls)
			maps.Copy(added, toolsHooked(t, cli, "plan", planCalls))
		})
	})
	if t.Failed() {
		return
	}
	for i, w := range ways {
		for name, schema := range seen[i] {
			got.add(w.name, name, schema)
		}
	}
	for name, keys := range added {
		tool, ok := got.Tools[name]
		if !ok && whole {
			t.Errorf("the hook is told of %s, which nobody offers", name)
		}
		if !ok {
			continue
		}
		for _, k := range keys {
			if _, ok := tool.Parameters[k]; !ok {
				tool.Added = append(tool.Added, k)
			}
		}
		got.Tools[name] = tool
	}
	compareWithTable(t, got, whole)
}

// TestWithheldToolsAreNotOffered, as the bot starts the CLI; all others are.
func TestWithheldToolsAreNotOffered(t *testing.T) {
	t.Parallel()
	cli := theCLI(t)
	for _, search := range []string{"true", "false"} {
		t.Run("deferred "+search, func(t *testing.T) {
			t.Parallel()
			offer := func(not ...string) []string {
				return slices.Sorted(maps.Keys(toolsOffered(t, cli, toolWay{setup: func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
					o.Env, o.DisallowedTools = withEnv(o.Env, "ENABLE_TOOL_SEARCH="+search), not
				}})))
			}
			want := slices.DeleteFunc(offer(), func(name string) bool { return slices.Contains(policy.Withheld(), name) })
			if diff := cmp.Diff(want, offer(policy.Withheld()...)); diff != "" {
				t.Errorf("it offers others (-want +got):\n%s", diff)
			}
		})
	}
}

// compareWithTable compares what the CLI offers with the table: all of it, or only the
// tools that were offered.
func compareWithTable(t *testing.T, got offered, whole bool) {
	t.Helper()
	if *update {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "\t")
		if err := e.Encode(got); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(toolTable, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	raw, err := os.ReadFile(toolTable)
	if err != nil {
		t.Fatal(err)
	}
	var want offered
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if !whole {
		compareTheBots(t, want, got)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the CLI offers other tools than %s says (run with -update, then judge them in internal/agent/policy/tools.go; -table +CLI):\n%s", toolTable, diff)
	}
}

// compareTheBots compares what was offered in the ways of the bot alone: nothing that the
// table does not have, and all that it says is seen there.
func compareTheBots(t *testing.T, want, got offered) {
	t.Helper()
	if want.Version != got.Version {
		t.Errorf("%s is about %s, and this is %s: run with -update", toolTable, want.Version, got.Version)
	}
	for name, tool := range got.Tools {
		known, ok := want.Tools[name]
		if !ok {
			t.Errorf("nobody has judged the tool %s: run with -update", name)
			continue
		}
		for p, kinds := range tool.Parameters {
			for _, kind := range kinds {
				if !slices.Contains(known.Parameters[p], kind) {
					t.Errorf("nobody has judged the parameter %s of %s as %s: run with -update", p, name, kind)
				}
			}
		}
		for _, p := range tool.Added {
			if known.Parameters[p] == nil && !slices.Contains(known.Added, p) {
				t.Errorf("nobody has judged the parameter %s of %s, which the hook is told of: run with -update", p, name)
			}
		}
	}
	for name, tool := range want.Tools {
		if _, ok := got.Tools[name]; !ok && slices.ContainsFunc(toolWays(t)[:ofTheBot], func(w toolWay) bool { return w.name == tool.Seen }) {
			t.Errorf("the CLI does not offer %s any more: run with -update", name)
		}
	}
}

func (o *offered) add(way, name string, s toolSchema) {
	tool, ok := o.Tools[name]
	if !ok {
		tool = offeredTool{Seen: way, Parameters: map[string][]string{}}
	}
	for p, schema := range s.Properties {
		for _, kind := range schema.kinds() {
			if !slices.Contains(tool.Parameters[p], kind) {
				tool.Parameters[p] = append(tool.Parameters[p], kind)
			}
		}
	}
	o.Tools[name] = tool
}

// toolSchema is a JSON schema, as far as tools use it.
type toolSchema struct {
	Type       any                   `json:"type"`
	Enum       []any                 `json:"enum"`
	Const      any                   `json:"const"`
	AnyOf      []toolSchema          `json:"anyOf"`
	Items      *toolSchema           `json:"items"`
	Properties map[string]toolSchema `json:"properties"`
}

// kinds are the types that a value may have.
func (s toolSchema) kinds() []string {
	if s.AnyOf == nil {
		return []string{s.String()}
	}
	var kinds []string
	for _, x := range s.AnyOf {
		kinds = append(kinds, x.String())
	}
	return kinds
}

// String is the schema in a word or two: string, {a,b}, [string], {name: string}.
func (s toolSchema) String() string {
	switch {
	case s.AnyOf != nil:
		return strings.Join(s.kinds(), " | ")
	case s.Enum != nil:
		return "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Enum), " ", ","), "[]") + "}"
	case s.Const != nil:
		return fmt.Sprintf("{%v}", s.Const)
	case s.Items != nil:
		return "[" + s.Items.String() + "]"
	case s.Properties != nil:
		var members []string
		for _, k := range slices.Sorted(maps.Keys(s.Properties)) {
			members = append(members, k+": "+s.Properties[k].String())
		}
		return "{" + strings.Join(members, ", ") + "}"
	case s.Type == nil:
		return "any"
	}
	return fmt.Sprint(s.Type)
}

// toolsOffered are the tools of all calls of the model in one session.
func toolsOffered(t *testing.T, cli program, w toolWay) map[string]toolSchema {
	t.Helper()
	s := prepare(t, cli)
	listen := recordTools(t, s)
	s.start(func(s *session, o *claude.Options, r *claude.InitializeRequest) {
		o.Env = withEnv(o.Env, "ANTHROPIC_BASE_URL="+listen.url, "ENABLE_TOOL_SEARCH=false", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1")
		w.setup(s, o, r)
	})
	s.run(w.prompt, "say: Done.")
	listen.mu.Lock()
	defer listen.mu.Unlock()
	if len(listen.tools) == 0 {
		t.Error("it offers no tools")
	}
	return listen.tools
}

// recorder stands before the scripted model and keeps the tools of its calls.
type recorder struct {
	url   string
	mu    sync.Mutex
	tools map[string]toolSchema
}

func recordTools(t *testing.T, s *session) *recorder {
	t.Helper()
	r := &recorder{tools: map[string]toolSchema{}}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var call struct {
			Tools []struct {
				Name   string      `json:"name"`
				Schema *toolSchema `json:"input_schema"`
			} `json:"tools"`
		}
		if json.Unmarshal(body, &call) == nil {
			r.mu.Lock()
			for _, tool := range call.Tools {
				// A tool without a schema is the provider's own, such as its search.
				if tool.Schema != nil && !strings.HasPrefix(tool.Name, "mcp__") {
					r.tools[tool.Name] = *tool.Schema
				}
			}
			r.mu.Unlock()
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		s.model.ServeHTTP(w, req)
	}))
	t.Cleanup(web.Close)
	r.url = web.URL
	return r
}

// toolCalls are calls that the CLI takes for good, of tools that it offers to the
// bot: only then does the hook hear of them.
var toolCalls = []toolCall{
	{"Agent", `{"description":"x","prompt":"x","isolation":"worktree","name":"a","team_name":"b","mode":"plan","cwd":"/"}`},
	{"AskUserQuestion", `{"questions":[{"question":"A?","header":"a","multiSelect":false,"options":[{"label":"b","description":"b"},{"label":"c","description":"c"}]}]}`},
	{"Bash", `{"command":"touch x","description":"x","timeout":1000}`},
	{"CronCreate", `{"cron":"* * * * *","prompt":"x","recurring":false,"durable":false}`},
	{"CronList", `{}`},
	{"Edit", `{"file_path":"{{cwd}}/x","old_string":"","new_string":"y"}`},
	{"EnterPlanMode", `{}`},
	{"EnterWorktree", `{"name":"x"}`},
	{"ListAgents", `{}`},
	{"Monitor", `{"command":"true","description":"x"}`},
	{"Read", `{"file_path":"{{cwd}}/there"}`},
	{"ReportFindings", `{"level":"low","findings":[]}`},
	{"ScheduleWakeup", `{"delaySeconds":60,"reason":"x","prompt":"x","noop":true}`},
	{"SendMessage", `{"to":"x","summary":"x","message":"x"}`},
	{"Skill", `{"skill":"security-review"}`},
	{"WebFetch", `{"url":"http://example.org/","prompt":"x"}`},
	{"WebSearch", `{"query":"xyz"}`},
	{"Workflow", `{"script":"export const meta = { name: 'x', description: 'y', phases: [] };"}`},
	{"Write", `{"file_path":"{{cwd}}/y","content":"x"}`},
}

// planCalls are those that take plan mode.
var planCalls = []toolCall{{"ExitPlanMode", `{}`}}

type toolCall struct{ tool, input string }

// toolsHooked are the inputs' members that the hook is told of, by tool.
func toolsHooked(t *testing.T, cli program, mode string, calls []toolCall) map[string][]string {
	t.Helper()
	s := prepare(t, cli)
	for _, name := range []string{"there", "x.ipynb"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(`{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, s.dir, "init", "-q")
	keys := map[string][]string{}
	s.onHook = func(m *claude.HookCallback) {
		var in map[string]json.RawMessage
		if err := json.Unmarshal(m.ToolInput, &in); err != nil {
			t.Errorf("%s: %v", m.ToolName, err)
		}
		keys[m.ToolName] = slices.Sorted(maps.Keys(in))
		s.must(s.p.AnswerPreToolUse(m.RequestID, claude.HookDeny, "it is only looked at"))
	}
	s.start(func(_ *session, o *claude.Options, r *claude.InitializeRequest) {
		o.Env = withEnv(o.Env, "ENABLE_TOOL_SEARCH=false", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1")
		o.PermissionMode = mode
		r.PreToolUse = true
	})
	var lines []string
	for _, c := range calls {
		lines = append(lines, "tool: "+c.tool+" "+c.input)
	}
	s.run(append(lines, "say: Done.")...)
	for _, c := range calls {
		if _, ok := keys[c.tool]; !ok {
			t.Errorf("the hook was not told of %s: the call is none that the CLI takes", c.tool)
		}
	}
	return keys
}
