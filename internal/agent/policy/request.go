package policy

import (
	"cmp"
	"path"
	"strings"
)

// request is a parsed call.
type request struct {
	call *Call
	kind kind // kindName for a tool of no family
	// bad keeps every rule from allowing the call: its input is malformed.
	bad string
	// leaves keeps the posture from allowing the call: it may have an effect outside the sandbox.
	leaves string
	root   root
	// odd keeps every rule from allowing the call except one that names the tool (tools.go). also are calls that it
	// amounts to.
	odd    string
	also   []*request
	script *script      // Bash
	target []target     // Read and Edit
	link   link         // WebFetch
	to     networkInput // of NetworkTool
}

// fileFields are the inputs with the path of a file tool.
var fileFields = map[string]string{
	"Read": "file_path", "NotebookRead": "notebook_path", "Glob": "path", "Grep": "path", "LS": "path",
	"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path",
}

// searches use a folder, the shell's own by default.
var searches = map[string]bool{"Glob": true, "Grep": true, "LS": true}

func readCall(c *Call) *request {
	var rt root
	switch families[c.Tool] {
	case kindBash, kindRead, kindEdit:
		rt = newRoot(c.Workspace)
	}
	return readIn(c, rt)
}

func readIn(c *Call, rt root) *request {
	req := &request{call: c, kind: families[c.Tool], root: rt}
	if req.kind == kindNone {
		req.kind = kindName
	}
	in, err := readInput(c.Input)
	if err != "" {
		req.setBad(err)
	}
	switch req.kind {
	case kindBash:
		req.bash(in)
	case kindRead, kindEdit:
		req.files(in)
	case kindWeb:
		s, ok := in.str("url")
		if !ok {
			req.setBad("it names no address")
		}
		req.link = readLink(s)
	case kindNet:
		req.host(in)
	}
	req.judge(in)
	for _, other := range actsAs(c, in) {
		req.also = append(req.also, readCall(&other))
	}
	return req
}

func (req *request) setBad(why string) {
	req.bad, req.leaves = first(req.bad, why), first(req.leaves, why)
}

// start is the folder that relative paths begin in.
func (req *request) start() string {
	if req.call.Dir != "" {
		return req.call.Dir
	}
	return req.root.written
}

func (req *request) bash(in input) {
	cmd, ok := in.str("command")
	if !ok {
		req.setBad("it holds no command")
	}
	var dirs []string
	if t := req.root.lexical("/", req.start()); t.resolved != "" {
		dirs = []string{t.resolved}
	}
	req.script = readScript(cmd, req.root, dirs)
	if dirs != nil {
		if _, in := below(req.root.resolved, dirs[0]); !in {
			req.script.setHard("the shell stands outside the workspace")
		}
	}
}

func (req *request) files(in input) {
	field := fileFields[req.call.Tool]
	p, ok := in.str(field)
	_, given := in[field]
	folder := searches[req.call.Tool]
	switch {
	case given && !ok && string(in[field]) == "null" && folder:
	case given && !ok, !given && !folder, ok && p == "" && !folder:
		req.setBad("it names no file")
	}
	if why := oddPath(p); why != "" {
		req.setBad(why)
	}
	t := req.root.lexical(req.start(), strings.TrimSpace(p))
	t.folder = folder
	t.written = cmp.Or(t.written, "the folder it works in")
	switch req.call.Tool {
	case "Glob":
		pattern, ok := in.str("pattern")
		if !ok {
			req.setBad("it names no pattern")
		}
		req.globbed(&t, pattern)
	case "Grep":
		typ, _ := in.str("type")
		t.source = sourceTypes[typ]
		if g, ok := in.str("glob"); ok {
			t.filter = g
			if strings.Contains(g, "..") {
				req.setBad("the filter " + g + " leads upwards")
			}
		} else if in["glob"] != nil && string(in["glob"]) != "null" {
			req.setBad("the filter is no text")
		}
	}
	req.target = []target{t}
}

// globbed narrows the folder to the start of a Glob pattern.
func (req *request) globbed(t *target, pattern string) {
	if why := oddPath(pattern); why != "" {
		req.setBad(why)
	}
	if strings.Contains(pattern, "..") || strings.Contains(pattern, "{/") || strings.Contains(pattern, ",/") || strings.Contains(pattern, `\`) {
		req.setBad("the pattern " + pattern + " may lead out of the folder")
	}
	t.filter, t.listed = path.Base(pattern), true
	dir := pattern
	if i := strings.IndexAny(pattern, "*?[{"); i >= 0 {
		dir = pattern[:strings.LastIndexByte(pattern[:i], '/')+1]
	}
	if dir == "" {
		return
	}
	from := t.abs
	u := req.root.lexical(from, dir)
	u.folder, u.filter, u.listed = true, t.filter, true
	u.written = pattern
	*t = u
}

// parts counts what the rules decide separately.
func (req *request) parts() int {
	if req.script != nil {
		return max(len(req.script.units), 1)
	}
	return 1
}
