// Package deckhand_test holds what is true of the whole house.
package deckhand_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rules say which of our packages a room must not import, and why. A rule covers
// the room's subpackages; tests are free.
var rules = []struct {
	room   string
	not    []string
	except []string
	reason string
}{
	{
		room: "internal/access", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/access"},
		reason: "who may do what follows from the roles and from facts that it is given: it can be read, and tested, without Slack or a database",
	},
	{
		room: "internal/money", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/money"},
		reason: "everybody writes amounts by the same rule",
	},
	{
		room: "internal/price", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/price"},
		reason: "what a call costs follows from its usage and the list: the ledger and the bill of the playground count by the same",
	},
	{
		room: "internal/agent/claude", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/agent/claude", "internal/price"},
		reason: "the CLI's protocol is a library of its own: it knows nothing of Slack, Postgres or threads",
	},
	{
		room: "internal/workspace", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/workspace", "internal/gateway/gitway", "internal/scratch"},
		reason: "where threads work follows from folders and git: it can be tried without Slack, Postgres or the CLI",
	},
	{
		room: "internal/workspace/gitdata", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/workspace/gitdata"},
		reason: "what a repository holds follows from its files alone",
	},
	{
		room: "internal/transcript", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/transcript", "internal/agent/claude", "internal/store"},
		reason: "what is kept of a conversation follows from its files and their copies: it can be tried without Slack, workers or a process",
	},
	{
		room: "internal/attachment", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/attachment"},
		reason: "what a file is follows from its bytes: it can be attacked in a test without Slack, threads or a process",
	},
	{
		room: "internal/agent", not: []string{"internal/chat", "internal/slackui", "internal/playground", "cmd"},
		reason: "the agent shows turns through its Frontend interface and must run without Slack",
	},
	{
		room: "internal/agent/policy", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/agent/policy", "internal/hostname", "internal/spelling"},
		reason: "what the rules say of a call follows from the call and the rules alone",
	},
	{
		room: "internal/agent/ask", not: []string{"internal", "migrations", "cmd"},
		except: []string{"internal/agent/ask", "internal/agent/claude", "internal/agent/policy", "internal/agent/tools", "internal/gateway", "internal/price", "internal/store"},
		reason: "what is asked about a call, and how it is answered, follows from the call, the policy and the decision: it knows nothing of workers, leases or Slack",
	},
	{
		room: "internal/agent/place", not: []string{"internal", "migrations", "cmd"},
		except: []string{"internal/agent/place", "internal/agent/claude", "internal/agent/policy", "internal/agent/trust", "internal/attachment", "internal/forge", "internal/gateway", "internal/price", "internal/redact", "internal/sandbox", "internal/scratch", "internal/store", "internal/transcript", "internal/workspace"},
		reason: "where a session runs follows from its thread and its project: it knows nothing of workers, turns, approvals or Slack",
	},
	{
		room: "internal/agent/tools", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/agent/tools", "internal/store"},
		reason: "what lets a tool of the bot's run is a decision in the database: it can be reviewed without knowing what the tools do",
	},
	{
		room: "internal/agent/trust", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/agent/trust"},
		reason: "what a repository brings for agents follows from its files' texts alone",
	},
	{
		room: "internal/agent/threadtools", not: []string{"internal", "migrations", "cmd"},
		except: []string{"internal/agent/threadtools", "internal/agent/tools", "internal/attachment", "internal/store"},
		reason: "what a session can do in its own thread knows no chat: whoever is one posts and reads",
	},
	{
		room: "internal/agent/pulls", not: []string{"internal", "migrations", "cmd"},
		except: []string{"internal/agent/pulls", "internal/agent/tools", "internal/agent/place", "internal/agent/policy", "internal/forge", "internal/gateway/gitway", "internal/jobs", "internal/store", "internal/workspace"},
		reason: "pull requests are opened and followed beside the workers: it knows nothing of turns or Slack",
	},
	{
		room: "internal/agent/spend", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/agent/spend", "internal/gateway", "internal/money", "internal/price", "internal/store"},
		reason: "what a call costs, and which budget admits it, follows from the call and the ledger: it knows nothing of workers, the CLI or Slack",
	},
	{
		room: "internal/sandbox", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/sandbox", "internal/beginning", "internal/scratch"},
		reason: "what a session can see and do follows from what it is given: it can be reviewed without Slack, the database or the CLI's protocol",
	},
	{
		room: "internal/gateway", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/gateway", "internal/beginning", "internal/hostname", "internal/price", "internal/redact"},
		reason: "what may leave a sandbox follows from the call and from the session's environment: it knows nothing of threads, Slack or Postgres",
	},
	{
		room: "internal/accounts", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/accounts", "internal/forge", "internal/gateway/egress", "internal/store"},
		reason: "who has people's tokens can be reviewed without Slack, sessions or git",
	},
	{
		room: "internal/forge", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/forge"},
		reason: "it speaks to forges and knows nothing of threads, Slack or the database",
	},
	{
		room: "internal/report", not: []string{"internal/slackui", "internal/agent", "internal/playground", "cmd"},
		reason: "the same questions are asked in Slack and in a terminal",
	},
	{
		room: "internal/anthropicadmin", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/anthropicadmin"},
		reason: "it speaks to Anthropic and knows nothing of the ledger",
	},
	{
		room: "internal/settings", not: []string{"internal/doctor", "internal/playground", "migrations", "cmd"},
		reason: "what is set is checked by itself, before anything is connected to",
	},
	{
		room: "internal/doctor", not: []string{"internal/playground", "internal/report", "migrations", "cmd"},
		reason: "it looks at what the bot needs, by the same rooms as the bot",
	},
	{
		room: "internal/beginning", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/beginning"},
		reason: "it keeps the beginning of anything and knows nothing of it",
	},
	{
		room: "internal/hostname", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/hostname"},
		reason: "it reads names of hosts",
	},
	{
		room: "internal/spelling", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/spelling"},
		reason: "it compares words",
	},
	{
		room: "internal/store", not: []string{"internal"}, except: []string{"internal/store", "internal/upkeep"},
		reason: "the database is below everybody who uses it; what inserts jobs in its transactions is handed to it",
	},
	{
		room: "internal/store/pg", not: []string{"internal"}, except: []string{"internal/store/pg", "internal/upkeep"},
		reason: "the connection knows no subject: every subject stands on it",
	},
	{
		room: "internal/store/audit", not: []string{"internal", "migrations"},
		except: []string{"internal/store/audit", "internal/store/pg"},
		reason: "every subject appends to it in its own transactions, so it needs none of them",
	},
	{
		room: "internal/store/threads", not: []string{"internal", "migrations"},
		except: []string{"internal/store/threads", "internal/store/pg", "internal/store/audit"},
		reason: "whoever writes for a thread holds its lease first, so every other subject stands on it",
	},
	{
		room: "internal/store/transcripts", not: []string{"internal", "migrations"},
		except: []string{"internal/store/transcripts", "internal/store/pg", "internal/store/threads"},
		reason: "a copy belongs to a thread, and to nothing that is said or decided there",
	},
	{
		room: "internal/store/outbox", not: []string{"internal", "migrations"},
		except: []string{"internal/store/outbox", "internal/store/pg", "internal/store/threads"},
		reason: "whoever has something to show writes it here, in the transaction that causes it",
	},
	{
		room: "internal/store/work", not: []string{"internal", "migrations"},
		except: []string{"internal/store/work", "internal/store/pg", "internal/store/threads", "internal/store/outbox"},
		reason: "what is kept of a folder belongs to a thread, and the thread is told of it",
	},
	{
		room: "internal/store/forges", not: []string{"internal", "migrations"},
		except: []string{"internal/store/forges", "internal/store/pg", "internal/store/threads", "internal/store/audit", "internal/store/outbox"},
		reason: "what a forge has belongs to a thread or a person; approvals and turns keep what a push would bring",
	},
	{
		room: "internal/store/inbox", not: []string{"internal", "migrations"},
		except: []string{"internal/store/inbox", "internal/store/pg", "internal/store/threads", "internal/store/outbox", "internal/store/audit"},
		reason: "a message comes before the turn that answers it",
	},
	{
		room: "internal/store/turns", not: []string{"internal", "migrations"},
		except: []string{"internal/store/turns", "internal/store/pg", "internal/store/threads", "internal/store/outbox", "internal/store/audit", "internal/store/inbox", "internal/store/forges"},
		reason: "a turn takes prompts, and does not know what is asked in it or what it costs",
	},
	{
		room: "internal/store/approvals", not: []string{"internal", "migrations"},
		except: []string{"internal/store/approvals", "internal/store/pg", "internal/store/threads", "internal/store/outbox", "internal/store/audit", "internal/store/forges", "internal/store/turns"},
		reason: "people decide about calls of a turn; what calls of the model cost does not matter to that",
	},
	{
		room: "internal/store/ledger", not: []string{"internal", "migrations"},
		except: []string{"internal/store/ledger", "internal/store/pg", "internal/store/threads", "internal/store/outbox", "internal/store/audit"},
		reason: "what a call costs does not depend on what people say or decide, but for budgets",
	},
	{
		room: "internal/jobs", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/store", "internal/upkeep"},
		reason: "the queue does not know what its jobs are about: handlers are handed to it",
	},
	{
		room: "internal/upkeep", not: []string{"internal", "migrations", "cmd"},
		reason: "it keeps anything running and knows nothing of it",
	},
	{
		room: "internal/redact", not: []string{"internal", "migrations", "cmd"},
		reason: "what is a secret follows from the text alone, for Slack and for the logs",
	},
	{
		room: "internal/chat", not: []string{"internal/slackui", "internal/playground", "cmd"},
		reason: "cmd/bot → slackui → chat → agent: what people want and are told is the same in every chat, and another one would be a room beside slackui",
	},
	{
		room: "internal/chat/view", not: []string{"internal/chat"}, except: []string{"internal/chat/view"},
		reason: "views are plain values: they do nothing",
	},
	{
		room: "internal/plaintext", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/plaintext"},
		reason: "what people see of a text follows from the text alone",
	},
	{
		room: "internal/slackui", not: []string{"internal/playground", "cmd"},
		reason: "the bot cannot tell the playground from Slack",
	},
	{
		room: "internal/slackui/render", not: []string{"internal/slackui/publish"},
		reason: "rendering is pure: it neither sends nor waits",
	},
	{
		room: "internal/slackui/render/mrkdwn", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/slackui/render/mrkdwn", "internal/plaintext"},
		reason: "what is safe to show follows from the text alone",
	},
	{
		room: "internal/slackui/costs", not: []string{"internal", "migrations", "cmd"},
		except: []string{"internal/slackui/costs", "internal/slackui/publish", "internal/slackui/render", "internal/chat/view", "internal/report"},
		reason: "an answer about costs is shown as it is: who asks, and what they may see, is decided before",
	},
	{
		room: "internal/chat", not: []string{"internal/slackui", "internal/playground", "internal/settings", "internal/doctor", "cmd"},
		reason: "what people want and are told is the same in every chat: whoever is the chat program implements its Screen",
	},
	{
		room: "internal/chat/costs", not: []string{"internal", "migrations", "cmd"},
		except: []string{"internal/chat/costs", "internal/chat/view", "internal/access", "internal/jobs", "internal/report", "internal/store"},
		reason: "questions about costs are answered beside the rest of a chat, and no work of the agent's depends on it",
	},
	{
		room: "internal/chat/view", not: []string{"internal/chat", "internal/slackui"}, except: []string{"internal/chat/view"},
		reason: "what is shown is plain values",
	},
	{
		room: "internal/slackui/directory", not: []string{"internal", "migrations", "cmd"}, except: []string{"internal/slackui/directory", "internal/access"},
		reason: "who somebody is does not depend on what is done with it; the terminal looks names up, too",
	},
	{
		room: "internal/judge", not: []string{"internal", "migrations", "cmd"},
		reason: "whoever judges the bot sees what people and providers see, and shares none of its mistakes",
	},
	{
		room: "internal/playground", not: []string{"internal/slackui", "internal/agent", "internal/store", "internal/forge", "migrations", "cmd"},
		reason: "the playground is the outside world: it must not know what it is used by",
	},
	{
		room: "migrations", not: []string{"internal", "cmd"},
		reason: "the schema is data",
	},
}

// forbidden are package names that say nothing of what they hold.
var forbidden = map[string]bool{"util": true, "utils": true, "common": true, "models": true, "types": true, "helpers": true, "config": true}

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	for dir, files := range packages(t) {
		if forbidden[filepath.Base(dir)] {
			t.Errorf("%s: a package is named for what it is responsible for", dir)
		}
		for _, r := range rules {
			if !within(dir, r.room) {
				continue
			}
			for file, imports := range files {
				for _, path := range imports {
					if within(path, r.not...) && !within(path, r.except...) && !(within(path, r.room) && within(r.room, path)) {
						t.Errorf("%s imports %s: %s", file, path, r.reason)
					}
				}
			}
		}
	}
}

// within reports whether path is one of the rooms or lies in one.
func within(path string, rooms ...string) bool {
	for _, r := range rooms {
		if path == r || strings.HasPrefix(path, r+"/") {
			return true
		}
	}
	return false
}

// packages lists our own imports by folder and file, without the module's name
// and without tests and the packages that only tests use.
func packages(t *testing.T) map[string]map[string][]string {
	t.Helper()
	out := map[string]map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "node_modules" || n == "testdata" || strings.HasSuffix(n, "test") || (strings.HasPrefix(n, ".") && n != ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if out[dir] == nil {
			out[dir] = map[string][]string{}
		}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(p, "deckhand/"); ok {
				out[dir][path] = append(out[dir][path], own)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 8 {
		t.Fatalf("found only %d packages: the test runs in the wrong folder", len(out))
	}
	return out
}

// A chat knows no other: the Slack SDK is what slackui and the playground speak.
func TestTheChatKnowsNoSlack(t *testing.T) {
	t.Parallel()
	for dir, files := range packages(t) {
		for file := range files {
			if within(dir, "internal/chat") && strings.Contains(read(t, file), `"github.com/slack-go/`) {
				t.Errorf("%s imports the Slack SDK: what people want and are told is the same in every chat", file)
			}
		}
	}
}

// The screen shows what was said and done in a turn. It needs the value that says so,
// and neither the process nor its protocol.
func TestTheScreenNeedsOnlyATurnsOutput(t *testing.T) {
	t.Parallel()
	for dir, files := range packages(t) {
		if !within(dir, "internal/slackui", "internal/chat") {
			continue
		}
		for file, imports := range files {
			if !slices.Contains(imports, "internal/agent/claude") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				name := s.Sel.Name
				of, ok := s.X.(*ast.Ident)
				if ok && of.Name == "claude" && name != "Output" && name != "Todo" && !strings.HasPrefix(name, "Item") && !strings.HasPrefix(name, "Tool") {
					t.Errorf("%s uses claude.%s: people are shown a turn's claude.Output, its items, tools and to-dos", file, name)
				}
				return true
			})
		}
	}
}

// TestTheSeamIsAsItIsDrawn: docs/architecture.md counts and names what agent, its ask and place, and
// transcript take of agent/claude.
func TestTheSeamIsAsItIsDrawn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("internal/agent/*.go")
	if err != nil {
		t.Fatal(err)
	}
	places, err := filepath.Glob("internal/agent/place/*.go")
	if err != nil {
		t.Fatal(err)
	}
	asks, err := filepath.Glob("internal/agent/ask/*.go")
	if err != nil {
		t.Fatal(err)
	}
	transcripts, err := filepath.Glob("internal/transcript/*.go")
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string]bool{}
	for _, name := range slices.Concat(files, asks, places, transcripts) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "claude" {
					taken[s.Sel.Name] = true
				}
			}
			return true
		})
	}
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, seam, _ := strings.Cut(string(text), "What `agent` and `transcript` take of `claude`, ")
	seam, _, _ = strings.Cut(seam, "**Between `chat` and `slackui`**")
	if want := fmt.Sprintf("%d names:", len(taken)); !strings.HasPrefix(seam, want) {
		t.Errorf("docs/architecture.md: it counts otherwise; they take %s", want)
	}
	for name := range taken {
		if !strings.Contains(seam, "`"+name+"`") {
			t.Errorf("docs/architecture.md: the table does not name `%s`", name)
		}
	}
}

// What stands at the beginning of every session is this same binary. It begins in the init
// of these packages, and Go initializes them before the many others only if they import
// little: zap, a parser or a table of system calls would cost each start ten milliseconds.
func TestWhatStartsWithASessionIsLight(t *testing.T) {
	t.Parallel()
	light := map[string][]string{
		"internal/agent/claude/reaper": {"bufio", "bytes", "errors", "fmt", "os", "os/signal", "runtime", "strconv", "strings", "syscall", "time", "golang.org/x/sys/unix"},
		"internal/sandbox/stage":       {"encoding/json", "errors", "fmt", "os", "runtime", "strconv", "strings", "syscall", "unsafe", "golang.org/x/sys/unix"},
		"internal/sandbox/forward":     {"context", "errors", "fmt", "io", "net", "os", "os/exec", "runtime", "slices", "strings", "sync", "syscall", "deckhand/internal/sandbox/stage"},
	}
	for dir, allowed := range light {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_other.go") || strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				if p, err := strconv.Unquote(i.Path.Value); err != nil || !slices.Contains(allowed, p) {
					t.Errorf("%s imports %s, and starts with every session", file, i.Path.Value)
				}
			}
		}
	}
}

// TestWhatIsTestedAloneHasNoRaces: what make race leaves out begins no goroutine
// and shares nothing that would need a lock.
func TestWhatIsTestedAloneHasNoRaces(t *testing.T) {
	t.Parallel()
	_, list, ok := strings.Cut(read(t, ".ci/test"), "\nsingle='")
	list, _, closed := strings.Cut(list, "'")
	if !ok || !closed {
		t.Fatal(".ci/test names no packages as single='…'")
	}
	for room := range strings.FieldsSeq(list) {
		dir, deep := strings.CutSuffix(room, "/...")
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && path != dir && !deep {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, spec := range file.Imports {
				if name, _ := strconv.Unquote(spec.Path.Value); strings.HasPrefix(name, "sync") || strings.HasSuffix(name, "/errgroup") {
					t.Errorf("%s imports %s: test %s with the race detector, in .ci/test", path, name, room)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if _, found := n.(*ast.GoStmt); found {
					t.Errorf("%s begins a goroutine: test %s with the race detector, in .ci/test", path, room)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestNothingKnowsEverything: in the rooms of chats a type has a subject, so that a reader can know
// all of it. Values of which every field is for others to see are filled in at one place, and
// may have more.
func TestNothingKnowsEverything(t *testing.T) {
	t.Parallel()
	const fieldsMost, valuesMost, methodsMost = 12, 20, 40
	for dir, files := range packages(t) {
		if !within(dir, "internal/chat", "internal/slackui") {
			continue
		}
		methods := map[string]int{}
		for name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv != nil {
						methods[strings.TrimPrefix(types.ExprString(n.Recv.List[0].Type), "*")]++
					}
				case *ast.TypeSpec:
					s, ok := n.Type.(*ast.StructType)
					if !ok {
						break
					}
					fields, most := 0, valuesMost
					for _, f := range s.Fields.List {
						if fields += max(1, len(f.Names)); len(f.Names) == 0 || !f.Names[0].IsExported() {
							most = fieldsMost
						}
					}
					if fields > most {
						t.Errorf("%s: %s has %d fields, and %d are the most", name, n.Name.Name, fields, most)
					}
				}
				return true
			})
		}
		for of, n := range methods {
			if n > methodsMost {
				t.Errorf("%s: %s has %d methods, and %d are the most: which of them have a subject of their own?", dir, of, n, methodsMost)
			}
		}
	}
}
