package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/price"
)

// check reads the body of a call: what determines its cost, and whether it contains only what the CLI sends.
// Anything else is an error: a member could buy another service or speed, or have the provider fetch or connect on
// the caller's behalf. The decoder is strict: what two readers could understand differently, such as a duplicate
// name, is an error.
//
// Allowed are tools that the caller runs, tool search, advice from another model, the web search of the CLI's
// WebSearch, and images and documents contained in the call.
func check(body []byte) (said terms, err error) {
	// JavaScript may cut a string inside a surrogate pair.
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return said, errors.New("it is not a JSON object")
	}
	err = members(d, func(name string) error {
		switch name {
		case "tools":
			return elements(d, said.readTool)
		case "messages", "system":
			return said.checkContent(d)
		case "mcp_servers":
			return elements(d, func(*jsontext.Decoder) error {
				return errors.New("mcp_servers lets the provider connect to other servers")
			})
		case "anthropic_beta":
			return elements(d, checkBeta)
		case "fallbacks":
			return elements(d, said.readFallback)
		case "model", "max_tokens", "stream":
			return said.read(d, name)
		}
		if !slices.Contains(harmlessMembers, name) {
			return fmt.Errorf("%s is not among what Claude Code sends", strconv.Quote(name))
		}
		return d.SkipValue()
	})
	if err != nil {
		return said, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return said, errors.New("data follows its JSON")
	}
	return said, nil
}

// terms is what the body of a call says about its cost.
type terms struct {
	model     string
	maxTokens int64
	stream    bool
	fallbacks []string // the models that may answer in the place of the first
	search    bool     // the provider may search the web
	tools     map[string]Tool
}

// readFallback reads a model that may answer instead.
func (t *terms) readFallback(d *jsontext.Decoder) error {
	if d.PeekKind() != '{' {
		return errors.New("a fallback names no model")
	}
	return members(d, func(name string) error {
		if name != "model" || d.PeekKind() != '"' {
			return fmt.Errorf("a fallback has a member besides its model: %s", strconv.Quote(name))
		}
		model, err := d.ReadToken()
		t.fallbacks = append(t.fallbacks, printableName(model.String()))
		return err
	})
}

// harmlessMembers are the other members of a body that the CLI sends or has sent. They change neither the price of
// a token nor who is asked.
var harmlessMembers = []string{
	"anthropic_version", "context_management", "diagnostics", "metadata", "output_config", "stop_sequences", "temperature", "thinking", "tool_choice",
}

// knownBetas are the betas that the CLI enables. Others are dropped from the header. None of these makes answers
// faster, or uses other servers or another account.
var knownBetas = []string{
	"advanced-tool-use-2025-11-20", "advisor-tool-2026-03-01", "cache-diagnosis-2026-04-07", "claude-code-20250219", "context-1m-2025-08-07",
	"context-management-2025-06-27", "effort-2025-11-24", "extended-cache-ttl-2025-04-11", "fallback-credit-2026-06-01",
	"fine-grained-tool-streaming-2025-05-14", "interleaved-thinking-2025-05-14", "mid-conversation-system-2026-04-07",
	"mid-conversation-system-clear-at-2026-08-21", "mid-conversation-tool-changes-2026-07-01", "oauth-2025-04-20", "per-turn-control-2026-07-01",
	"prompt-caching-scope-2026-01-05", "redact-thinking-2026-02-12", "server-side-fallback-2026-06-01", "server-side-fallback-2026-07-01",
	"structured-outputs-2025-12-15", "thinking-binding-controls-2026-08-01", "thinking-display-updates-2026-08-18", "thinking-token-count-2026-05-13",
	"token-counting-2024-11-01", "tool-provenance-2026-10-26", "tool-search-tool-2025-10-19", "web-search-2025-03-05",
}

func checkBeta(d *jsontext.Decoder) error {
	if d.PeekKind() != '"' {
		return errors.New("a beta is not a string")
	}
	beta, err := d.ReadToken()
	if err == nil && !slices.Contains(knownBetas, beta.String()) {
		err = fmt.Errorf("the beta %s is not known to be used by Claude Code", strconv.Quote(beta.String()))
	}
	return err
}

// read reads one member of the body, if it has the expected type.
func (t *terms) read(d *jsontext.Decoder, name string) error {
	kind := d.PeekKind()
	switch {
	case name == "model" && kind == '"', name == "max_tokens" && kind == '0', name == "stream" && kind == 't':
	default:
		return d.SkipValue()
	}
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	switch name {
	case "model":
		t.model = printableName(token.String())
	case "max_tokens":
		// The provider refuses what is no number of tokens.
		if n, err := token.Float(); err == nil && n >= 0 && n <= price.MaxCount {
			t.maxTokens = int64(n)
		}
	case "stream":
		t.stream = true
	}
	return nil
}

// members reads an object and calls member for each name's value. It skips anything else.
func members(d *jsontext.Decoder, member func(name string) error) error {
	if d.PeekKind() != '{' {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// elements reads an array. It skips anything else.
func elements(d *jsontext.Decoder, element func(*jsontext.Decoder) error) error {
	if d.PeekKind() != '[' {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		if err := element(d); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// kindOf reads the value of "type".
func kindOf(d *jsontext.Decoder) (string, error) {
	if d.PeekKind() != '"' {
		return "", d.SkipValue()
	}
	t, err := d.ReadToken()
	return t.String(), err
}

// harmlessTools are prefixes of tool types, without their dates.
var harmlessTools = []string{"advisor_", "bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_", "web_search_"}

func (t *terms) checkToolType(d *jsontext.Decoder) error {
	kind, err := kindOf(d)
	t.search = t.search || strings.HasPrefix(kind, "web_search_")
	if err != nil || kind == "" || kind == "custom" || slices.ContainsFunc(harmlessTools, func(p string) bool { return strings.HasPrefix(kind, p) }) {
		return err
	}
	return fmt.Errorf("the tool %q is run by the provider", kind)
}

// checkContent reads messages and what they contain, to any depth. A tool's input is not checked; tools that it
// adds are checked like others.
func (t *terms) checkContent(d *jsontext.Decoder) error {
	if d.PeekKind() == '[' {
		return elements(d, t.checkContent)
	}
	return members(d, func(name string) error {
		switch name {
		case "input":
			return d.SkipValue()
		case "source":
			return t.checkSource(d)
		case "tool", "tools":
			if d.PeekKind() == '[' {
				return elements(d, t.readTool)
			}
			return t.readTool(d)
		}
		return t.checkContent(d)
	})
}

// checkSource checks where an image or a document comes from.
func (t *terms) checkSource(d *jsontext.Decoder) error {
	return members(d, func(name string) error {
		if name != "type" {
			return t.checkContent(d)
		}
		kind, err := kindOf(d)
		if err != nil || slices.Contains([]string{"", "base64", "text", "content"}, kind) {
			return err
		}
		return fmt.Errorf("its source %q is fetched by the provider", kind)
	})
}
