package gateway

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Tool is a tool of an MCP server, as a call tells the model of it. Description and Schema, its
// input's in JSON, are cut where they are long; Sum is of the whole of both.
type Tool struct {
	Sum                 [sha256.Size]byte
	Description, Schema string
}

const (
	mcpPrefix = "mcp__"
	// toolTextMost bounds what is kept of a description, and of a schema, in bytes.
	toolTextMost = 8 << 10
	// toolsMost bounds the tools of a session that are kept, toldMost the ways in which one is told of.
	toolsMost, toldMost = 1000, 8
)

// readTool reads one tool of a call.
func (t *terms) readTool(d *jsontext.Decoder) error {
	var name, description string
	var schema jsontext.Value
	err := members(d, func(member string) (err error) {
		switch {
		case member == "name" && d.PeekKind() == '"':
			name, err = text(d)
		case member == "description" && d.PeekKind() == '"':
			description, err = text(d)
		case member == "input_schema":
			var v jsontext.Value
			if v, err = d.ReadValue(); err == nil {
				schema = bytes.Clone(v)
			}
		case member == "type":
			err = t.checkToolType(d)
		default:
			err = d.SkipValue()
		}
		return err
	})
	if err != nil || !strings.HasPrefix(name, mcpPrefix) {
		return err
	}
	_ = schema.Canonicalize() // what cannot be is taken as it is
	if t.tools == nil {
		t.tools = map[string]Tool{}
	}
	t.tools[name] = Tool{
		Sum:         sha256.Sum256(append([]byte(description+"\x00"), schema...)),
		Description: shown(description), Schema: shown(string(schema)),
	}
	return nil
}

func text(d *jsontext.Decoder) (string, error) {
	token, err := d.ReadToken()
	return token.String(), err
}

// shown is a text as it can be stored and shown.
func shown(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s[:min(len(s), toolTextMost)], "�"), "\x00", "�")
}

// offered are the tools of MCP servers that a session's calls have told the model of.
type offered struct {
	mu    sync.Mutex
	tools map[string][]Tool
	full  bool // there were more tools
}

func (o *offered) note(tools map[string]Tool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, t := range tools {
		told, known := o.tools[name]
		same := func(x Tool) bool { return x.Sum == t.Sum }
		switch {
		case slices.ContainsFunc(told, same):
		case !known && len(o.tools) >= toolsMost:
			o.full = true
		case len(told) > toldMost: // that is said already
		case len(told) == toldMost:
			o.tools[name] = append(told, Tool{Description: "(It is not known: the session tells the model of this tool in too many ways.)"})
		case o.tools == nil:
			o.tools = map[string][]Tool{name: {t}}
		default:
			o.tools[name] = append(told, t)
		}
	}
}

// Offered is how the session's calls have told the model of an MCP server's tool so far, in the
// order in which that was first seen. What runs in the session can make calls, too: it can add to
// this, and take nothing from it. What is not known has no Sum.
func (s *Session) Offered(tool string) []Tool {
	s.offered.mu.Lock()
	defer s.offered.mu.Unlock()
	if told := s.offered.tools[tool]; len(told) > 0 || !s.offered.full {
		return slices.Clone(told)
	}
	return []Tool{{Description: "(It is not known: the session tells the model of too many tools.)"}}
}
