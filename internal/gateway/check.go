package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/price"
)

// check reads a call: what it says of its cost, and what in it would make the provider
// fetch or connect on the caller's behalf, which is an error. The decoder is strict: what two readers could understand in two ways,
// such as a name that occurs twice, is an error.
//
// Known to be harmless are tools that the caller runs, the search for tools, the advice
// of another model, the web search of the CLI's WebSearch, and images and documents that are in the call.
func check(body []byte) (said terms, err error) {
	// JavaScript cuts texts in the middle of a letter.
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return said, errors.New("it is no JSON object")
	}
	err = members(d, func(name string) error {
		switch name {
		case "tools":
			return elements(d, checkTool)
		case "messages", "system":
			return checkContent(d)
		case "mcp_servers":
			return elements(d, func(*jsontext.Decoder) error {
				return errors.New("mcp_servers lets the provider connect to other servers")
			})
		}
		return said.read(d, name)
	})
	if err != nil {
		return said, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return said, errors.New("there is something behind its JSON")
	}
	return said, nil
}

// terms are what the body of a call says of its cost.
type terms struct {
	model     string
	maxTokens int64
	stream    bool
	fast      bool
}

// read reads a member of the body if it is one of them, and skips the others.
func (t *terms) read(d *jsontext.Decoder, name string) error {
	kind := d.PeekKind()
	switch {
	case name == "model" && kind == '"', name == "speed" && kind == '"', name == "max_tokens" && kind == '0', name == "stream" && kind == 't':
	default:
		return d.SkipValue()
	}
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	switch name {
	case "model":
		t.model = word(token.String())
	case "speed":
		t.fast = token.String() == "fast"
	case "max_tokens":
		// What is no number of tokens is the provider's to refuse.
		if n := token.Float(); n >= 0 && n <= price.MaxCount {
			t.maxTokens = int64(n)
		}
	case "stream":
		t.stream = true
	}
	return nil
}

// members reads an object; member reads the value of each name. What is no object is
// skipped.
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

// elements reads an array. What is no array is skipped.
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

// kindOf reads the value of a "type".
func kindOf(d *jsontext.Decoder) (string, error) {
	if d.PeekKind() != '"' {
		return "", d.SkipValue()
	}
	t, err := d.ReadToken()
	return t.String(), err
}

// harmlessTools begin the types of tools, before their dates.
var harmlessTools = []string{"advisor_", "bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_", "web_search_"}

func checkTool(d *jsontext.Decoder) error {
	return members(d, func(name string) error {
		if name != "type" {
			return d.SkipValue()
		}
		kind, err := kindOf(d)
		if err != nil || kind == "" || kind == "custom" || slices.ContainsFunc(harmlessTools, func(p string) bool { return strings.HasPrefix(kind, p) }) {
			return err
		}
		return fmt.Errorf("the tool %q is run by the provider", kind)
	})
}

// checkContent reads messages, and what is in them, to any depth. The input of a tool is
// the tool's business and nobody else's.
func checkContent(d *jsontext.Decoder) error {
	if d.PeekKind() == '[' {
		return elements(d, checkContent)
	}
	return members(d, func(name string) error {
		switch name {
		case "input":
			return d.SkipValue()
		case "source":
			return checkSource(d)
		}
		return checkContent(d)
	})
}

// checkSource reads where an image or a document comes from.
func checkSource(d *jsontext.Decoder) error {
	return members(d, func(name string) error {
		if name != "type" {
			return checkContent(d)
		}
		kind, err := kindOf(d)
		if err != nil || slices.Contains([]string{"", "base64", "text", "content"}, kind) {
			return err
		}
		return fmt.Errorf("its source %q is fetched by the provider", kind)
	})
}
