// Package slacktypes holds what is sent to Slack against the types that Slack publishes for
// its Node SDK: every distinct shape of a call, of a block and of the manifest is a constant of
// the type that the SDK has for it, and the TypeScript compiler says what does not fit. It is
// for tests.
//
// Texts make no shape: two calls that differ in what they say are one. What the types do not
// say, such as how long a text may be, the playground's Slack checks.
package slacktypes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Shapes are distinct shapes of what was sent. The zero value is empty; its methods are safe
// for concurrent use.
type Shapes struct {
	mu    sync.Mutex
	lines map[string]bool // TypeScript: a type and a value of it
}

// Add adds a call of the Web API with its arguments, those of forms as text.
func (s *Shapes) Add(method string, args map[string]any) error {
	sent := map[string]any{}
	for key, v := range args {
		if key == "token" {
			continue
		}
		if key == "alt_txt" { // as Slack's reference has it
			key = "alt_text"
		}
		read, err := argument(key, v)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", method, key, err)
		}
		sent[key] = read
	}
	if view, ok := sent["view"].(map[string]any); ok {
		s.addBlocks(view)
	}
	s.addBlocks(sent)
	s.add("api."+typeOf(method), sent)
	return nil
}

// newer are what Slack documents and its types have not got yet: a type of block, a scope and
// an event. They are left out; the playground's Slack knows them.
var newer = []any{"data_visualization", "assistant:write", "agent_session_stopped"}

// AddManifest adds an app's manifest.
func (s *Shapes) AddManifest(manifest map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put("Manifest", known(manifest)) // its texts are names, and those of scopes and events are types
}

// known is v without what is newer than the types.
func known(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = known(x)
		}
		return out
	case []any:
		out := []any{}
		for _, x := range v {
			if s, isText := x.(string); !isText || !slices.Contains(newer, any(s)) {
				out = append(out, known(x))
			}
		}
		return out
	}
	return v
}

// Len is how many shapes there are.
func (s *Shapes) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines)
}

// addBlocks takes blocks out of what holds them, one by one.
func (s *Shapes) addBlocks(from map[string]any) {
	list, ok := from["blocks"].([]any)
	if !ok {
		return
	}
	from["blocks"] = []any{}
	for _, b := range list {
		if o, ok := b.(map[string]any); !ok || !slices.Contains(newer, o["type"]) {
			s.add("types.KnownBlock", b)
		}
	}
}

func (s *Shapes) add(kind string, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(kind, shape("", v))
}

func (s *Shapes) put(kind string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // it came from JSON
	}
	if s.lines == nil {
		s.lines = map[string]bool{}
	}
	s.lines[kind+" = "+string(raw)] = true
}

// typeOf is the SDK's name for a method's arguments: chat.postMessage has
// ChatPostMessageArguments.
func typeOf(method string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(method, ".") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String() + "Arguments"
}

// numbers and truths are arguments that forms have as text.
var (
	numbers = regexp.MustCompile(`^(limit|length|count|page)$`)
	truths  = regexp.MustCompile(`^(inclusive|include_.*|exclude_.*)$`)
)

// argument reads an argument as a program would have it.
func argument(key string, v any) (any, error) {
	text, ok := v.(string)
	switch {
	case !ok:
		return v, nil
	case text == "true" || text == "false":
		return text == "true", nil
	case truths.MatchString(key):
		return text == "1", nil
	case numbers.MatchString(key):
		return json.Number(text), nil
	case text != "" && (text[0] == '{' || text[0] == '[') && key != "text":
		var out any
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return nil, err
		}
		return out, nil
	}
	return text, nil
}

// words are fields whose texts are part of the shape.
var words = []string{"type", "style", "status", "align", "level", "parse", "session_status", "task_display_mode", "range", "name", "include"}

// shape is v without its texts, and with each shape of a list once.
func shape(key string, v any) any {
	switch v := v.(type) {
	case string:
		if slices.Contains(words, key) {
			return v
		}
		return "x"
	case float64:
		return 1
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = shape(k, x)
		}
		return out
	case []any:
		kept, out := map[string]bool{}, []any{}
		for _, x := range v {
			one := shape(key, x)
			if raw, err := json.Marshal(one); err == nil && !kept[string(raw)] {
				kept[string(raw)] = true
				out = append(out, one)
			}
		}
		return out
	}
	return v
}

// Folder is where Slack's Node SDK and the compiler are; script is the path of
// ../bolt/install.sh, which fetches what is locked beside it if install says so.
func Folder(ctx context.Context, script string, install bool) (string, error) {
	path, err := filepath.Abs(script)
	if err != nil {
		return "", err
	}
	args := []string{path}
	if !install {
		args = append(args, "--cached")
	}
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("slack's node sdk is not there: %w: %s", err, errs.String())
	}
	return strings.TrimSpace(string(out)), nil
}

const tsconfig = `{"compilerOptions": {"strict": true, "noEmit": true, "module": "nodenext", "target": "es2022", "skipLibCheck": true, "types": []}, "files": ["sent.ts"]}`

// place is where the compiler found something.
var place = regexp.MustCompile(`(?m)^sent\.ts\((\d+),\d+\): error`)

// Check compiles all shapes against the SDK in folder, and returns what the compiler says of
// those that do not fit, each with its shape.
func (s *Shapes) Check(ctx context.Context, folder string) (problems []string, err error) {
	s.mu.Lock()
	lines := slices.Sorted(maps.Keys(s.lines))
	s.mu.Unlock()
	dir, err := os.MkdirTemp("", "slacktypes-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	modules := filepath.Join(folder, "node_modules")
	head := []string{
		`import type * as api from "./node_modules/@slack/web-api/dist/types/request/index.js";`,
		`import type { Manifest } from "./node_modules/@slack/web-api/dist/types/request/manifest.js";`,
		`import type * as types from "./node_modules/@slack/types/dist/index.js";`,
	}
	var source strings.Builder
	source.WriteString(strings.Join(head, "\n") + "\n")
	for i, line := range lines {
		_, _ = fmt.Fprintf(&source, "export const x%d: %s;\n", i, line)
	}
	for name, text := range map[string]string{"sent.ts": source.String(), "tsconfig.json": tsconfig, "package.json": `{"type":"module"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", filepath.Join(modules, "typescript/bin/tsc"), "-p", ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil, nil
	}
	said := strings.TrimSpace(string(out))
	at := place.FindAllStringSubmatchIndex(said, -1)
	if len(at) == 0 {
		return nil, fmt.Errorf("tsc: %w: %s", err, said)
	}
	for i, m := range at {
		end := len(said)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		n := 0
		_, _ = fmt.Sscan(said[m[2]:m[3]], &n)
		if n -= len(head) + 1; n < 0 || n >= len(lines) {
			return nil, fmt.Errorf("tsc: %s", said)
		}
		problems = append(problems, strings.TrimSpace(said[m[0]:end])+"\n"+lines[n])
	}
	return problems, nil
}
