package egress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"
)

const (
	// maxMessage bounds a message to an MCP server, in bytes: a tool's input may be 16 MiB.
	maxMessage = 17 << 20
	// maxReading bounds the messages of a session that are read at once.
	maxReading = 4
)

// undecided are the methods that need no decision: they open a connection and keep it, and tell what a server offers.
// Any other does or returns something, or nobody knows what it does.
var undecided = []string{
	"initialize", "ping", "server/discover", "subscriptions/listen",
	"tools/list", "prompts/list", "resources/list", "resources/templates/list",
	"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
}

// readers are Claude Code's tools that read from the server in their input, with the method that each calls.
var readers = map[string]string{"ReadMcpResourceTool": "resources/read", "ReadMcpResourceDirTool": "resources/directory/read"}

// toolCalls are the calls of MCP servers that were decided about. That of a tool may be made once.
type toolCalls struct {
	reading chan struct{}

	mu      sync.Mutex
	allowed map[string]*toolCall // by tool use
}

// toolCall is a call of a server's tool by its name for the model, mcp__SERVER__TOOL, with canonical arguments, or of
// another method, METHOD of SERVER.
type toolCall struct {
	tool, arguments string
	made            bool
}

// AllowCall lets one call of an MCP server's tool, or one reading of a resource, through until [Session.EndCall]: call
// it before the tool use runs. tool is its name for the model. The call has to have exactly this input. Other tools and
// no session are ignored.
//
// Whoever has the session's token can make the call in Claude Code's place, as it was decided, and then Claude Code
// cannot. Names for the model have _ for what is neither a letter, a digit, _ nor -. Where two tools of a server have the
// same, nobody can tell which one was decided about, and either passes.
func (s *Session) AllowCall(toolUse, tool string, input json.RawMessage) {
	if s == nil {
		return
	}
	rest, ok := strings.CutPrefix(tool, "mcp__")
	server, _, _ := strings.Cut(rest, "__")
	if method := readers[tool]; method != "" {
		in, err := membersOf(jsontext.Value(input), "server", "uri")
		if err != nil {
			return
		}
		if server, err = str(in["server"], "server"); err != nil {
			return
		}
		tool, input, ok = method+" of "+server, json.RawMessage(`{"uri":`+string(in["uri"])+`}`), true
	}
	if _, known := s.options.Servers[server]; !ok || !known {
		return
	}
	arguments, err := canonical(jsontext.Value(input))
	if err != nil {
		return // no call that passes has such arguments
	}
	s.tools.mu.Lock()
	defer s.tools.mu.Unlock()
	if was := s.tools.allowed[toolUse]; was != nil && was.tool == tool && was.arguments == arguments {
		return // it is allowed again before it runs
	}
	s.tools.allowed[toolUse] = &toolCall{tool: tool, arguments: arguments}
}

// EndCall ends a tool use's permission; without a name, that of all.
func (s *Session) EndCall(toolUse string) {
	if s == nil {
		return
	}
	s.tools.mu.Lock()
	defer s.tools.mu.Unlock()
	if toolUse == "" {
		clear(s.tools.allowed)
	}
	delete(s.tools.allowed, toolUse)
}

// begin notes that calls are made. It reports false, and notes nothing, unless each of them is allowed.
func (c *toolCalls) begin(wanted []toolCall) (made []*toolCall, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range wanted {
		var found *toolCall
		for _, a := range c.allowed {
			if !a.made && *a == w {
				found = a
				break
			}
		}
		if found == nil {
			for _, m := range made {
				m.made = false
			}
			return nil, false
		}
		found.made = strings.HasPrefix(found.tool, "mcp__") // what is read may have pages
		made = append(made, found)
	}
	return made, true
}

// again notes that the server refused calls, as one does that has forgotten the client's session: they may be made
// once more.
func (c *toolCalls) again(made []*toolCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range made {
		m.made = false
	}
}

// admitMessages reads what is posted to a server, and lets it leave unless it calls something without a decision.
func (s *Session) admitMessages(w http.ResponseWriter, r *http.Request, server string) (body []byte, made []*toolCall, no *refusal) {
	select {
	case s.tools.reading <- struct{}{}:
		defer func() { <-s.tools.reading }()
	case <-r.Context().Done():
		return nil, nil, &refusal{http.StatusServiceUnavailable, "The session has ended."}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, nil, &refusal{http.StatusRequestEntityTooLarge, "The message is too large."}
	}
	var calls []toolCall
	if err == nil {
		calls, err = callsIn(body, server)
	}
	if err != nil {
		return nil, nil, &refusal{http.StatusBadRequest, "This is no message to an MCP server that can be judged: " + err.Error()}
	}
	made, ok := s.tools.begin(calls)
	if !ok {
		s.complain("an MCP server was called without a decision", zap.String("server", server), zap.String("call", strings.ToValidUTF8(calls[0].tool[:min(len(calls[0].tool), 100)], "")))
		return nil, nil, refuse("the MCP server %s is asked for nothing that nobody has decided about; have the agent use its tool", server)
	}
	return body, made, nil
}

// callsIn are the calls that need a decision in a message or a batch of them. What programs read in different ways is
// an error: the server has to find the calls that are found here.
func callsIn(body []byte, server string) (calls []toolCall, err error) {
	whole := jsontext.Value(body)
	if !whole.IsValid() { // a name twice, or text that decoders repair, too
		return nil, errors.New("it is not valid JSON, or holds a name twice")
	}
	messages := []jsontext.Value{whole}
	if whole.Kind() == '[' {
		if messages, err = elements(whole); err != nil {
			return nil, err
		}
	}
	for _, m := range messages {
		call, err := callIn(m, server)
		if err != nil {
			return nil, err
		}
		if call != nil {
			calls = append(calls, *call)
		}
	}
	return calls, nil
}

// callIn is the call in a message; nil if it needs no decision.
func callIn(message jsontext.Value, server string) (*toolCall, error) {
	in, err := membersOf(message, "jsonrpc", "id", "method", "params", "result", "error")
	if err != nil {
		return nil, err
	}
	raw, ok := in["method"]
	if !ok {
		return nil, nil //nolint:nilnil // an answer to the server
	}
	method, err := str(raw, "method")
	if err != nil || slices.Contains(undecided, method) {
		return nil, err
	}
	if slices.Contains(slices.Collect(maps.Values(readers)), method) {
		params, err := membersOf(in["params"], "uri")
		if err != nil {
			return nil, err
		}
		arguments, err := canonical(jsontext.Value(`{"uri":` + string(params["uri"]) + `}`))
		return &toolCall{tool: method + " of " + server, arguments: arguments}, err
	}
	if method != "tools/call" {
		return &toolCall{tool: method + " of " + server}, nil
	}
	params, err := membersOf(in["params"], "name", "arguments")
	if err != nil {
		return nil, err
	}
	name, err := str(params["name"], "name")
	if err != nil {
		return nil, err
	}
	arguments, err := canonical(params["arguments"])
	if err != nil {
		return nil, err
	}
	return &toolCall{tool: "mcp__" + server + "__" + forModel(name), arguments: arguments}, nil
}

// forModel is a tool's name as Claude Code has it for the model.
func forModel(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString("__") // two of JavaScript's
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// canonical is valid JSON in one spelling, and {} for nothing.
func canonical(v jsontext.Value) (string, error) {
	if len(bytes.TrimSpace(v)) == 0 {
		return "{}", nil
	}
	v = bytes.Clone(v)
	if err := v.Canonicalize(); err != nil {
		return "", err
	}
	return string(v), nil
}

func str(v jsontext.Value, name string) (string, error) {
	if v.Kind() != '"' {
		return "", fmt.Errorf("its %s is not text", name)
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err
}

// membersOf are an object's. Some programs take a name for another that differs from it in case; so nothing may
// stand for one of known but itself.
func membersOf(v jsontext.Value, known ...string) (map[string]jsontext.Value, error) {
	if v.Kind() != '{' {
		return nil, errors.New("an object is missing")
	}
	out := map[string]jsontext.Value{}
	d := jsontext.NewDecoder(bytes.NewBuffer(v))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		for _, k := range append(known, "__proto__") {
			if strings.EqualFold(name, k) && (name != k || k == "__proto__") {
				return nil, fmt.Errorf("programs differ in what its name %q means", name)
			}
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		out[name] = bytes.Clone(value)
	}
	return out, nil
}

func elements(v jsontext.Value) (out []jsontext.Value, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(v))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		out = append(out, bytes.Clone(value))
	}
	return out, nil
}
