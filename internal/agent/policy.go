package agent

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Verdict is what a policy rule says of a tool call.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow" // it runs
	Deny  Verdict = "deny"  // it does not, and the model is told why
	Ask   Verdict = "ask"   // a person decides
)

// Rule decides tool calls by the tool's name.
type Rule struct {
	Verdict Verdict
	// Tools are names with * as in path.Match: Bash, mcp__prod__*.
	Tools []string
}

// Policy says which tool calls run, which do not, and which are asked. The first
// rule that matches decides; where none does, reading inside the workspace and
// the agent's own bookkeeping are allowed and everything else is asked. A rule
// that allows a file tool covers the workspace only: a path that leads out of
// it, by .. or by a symbolic link, is asked whatever the rules say.
type Policy struct {
	Rules []Rule
	// RequesterMayApprove: the person whose prompt led to a tool call may approve
	// it, if they are an approver.
	RequesterMayApprove bool
	// Timeout is how long an approval waits before the turn is paused: 24 h.
	Timeout time.Duration
}

// filePaths are the inputs that hold the path a file tool works on. Empty or
// missing means the working directory.
var filePaths = map[string]string{
	"Read": "file_path", "NotebookRead": "notebook_path", "Glob": "path", "Grep": "path", "LS": "path",
	"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path",
}

var readers = map[string]bool{"Read": true, "NotebookRead": true, "Glob": true, "Grep": true, "LS": true}

// bookkeeping tools touch nothing but the agent's own state. Subagents are
// among them: what they do passes the policy call by call.
var bookkeeping = map[string]bool{
	"TodoWrite": true, "TodoRead": true, "TaskCreate": true, "TaskGet": true, "TaskUpdate": true, "TaskList": true,
	"TaskOutput": true, "TaskStop": true, "BashOutput": true, "KillShell": true, "Task": true, "Agent": true,
	"EnterPlanMode": true, "ToolSearch": true,
}

// always are asked whatever the rules say: a person's answer is their point.
var always = map[string]bool{"AskUserQuestion": true, "ExitPlanMode": true}

// Decide returns the verdict on a tool call and the rule it follows from, in
// words. It resolves symbolic links but changes nothing. Safe for concurrent use.
func (p Policy) Decide(tool string, input json.RawMessage, workspace string) (Verdict, string) {
	if always[tool] {
		return Ask, "default: it asks a person by its nature"
	}
	outside := outsideWorkspace(tool, input, workspace)
	for _, r := range p.Rules {
		for _, pattern := range r.Tools {
			if ok, err := path.Match(pattern, tool); err != nil || !ok {
				continue
			}
			rule := string(r.Verdict) + ": " + pattern
			if r.Verdict == Allow && outside {
				return Ask, rule + ", but the path is outside the workspace"
			}
			return r.Verdict, rule
		}
	}
	switch {
	case readers[tool] && outside:
		return Ask, "default: reading outside the workspace is asked"
	case readers[tool]:
		return Allow, "default: reading inside the workspace is allowed"
	case bookkeeping[tool]:
		return Allow, "default: the agent's own bookkeeping is allowed"
	}
	return Ask, "default: what no rule allows is asked"
}

// outsideWorkspace reports whether a file tool's path may lead out of the
// workspace. What cannot be read or resolved counts as outside.
func outsideWorkspace(tool string, input json.RawMessage, workspace string) bool {
	field, ok := filePaths[tool]
	if !ok {
		return false
	}
	var in map[string]any
	if json.Unmarshal(input, &in) != nil {
		return true
	}
	target, ok := in[field].(string)
	if !ok && in[field] != nil {
		return true
	}
	if target == "" {
		target = workspace
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(workspace, target)
	}
	root, err := filepath.EvalSymlinks(workspace)
	if err != nil || !inside(root, resolve(target)) {
		return true
	}
	if tool == "Glob" || tool == "Grep" {
		for _, f := range []string{"pattern", "glob"} {
			g, _ := in[f].(string)
			if tool == "Grep" && f == "pattern" {
				continue // a regular expression, not a path
			}
			if filepath.IsAbs(g) && !inside(root, filepath.Clean(g)) || strings.Contains(g, "..") {
				return true
			}
		}
	}
	return false
}

// resolve follows the symbolic links of the longest part of the path that
// exists.
func resolve(p string) string {
	p = filepath.Clean(p)
	rest := ""
	for {
		if r, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(r, rest)
		}
		if _, err := os.Lstat(p); err == nil {
			return "/" // a link that leads nowhere: it may lead anywhere later
		}
		parent := filepath.Dir(p)
		if parent == p {
			return p
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = parent
	}
}

func inside(root, p string) bool {
	rel, err := filepath.Rel(root, p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
