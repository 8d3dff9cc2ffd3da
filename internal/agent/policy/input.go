package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxInput = 16 << 20 // of a call's input: the CLI's longest hold a whole file
	maxDepth = 64       // how deeply it is nested
)

// input is the members of a call's input by their exact names.
type input map[string]json.RawMessage

// str returns a member that is a string.
func (in input) str(name string) (string, bool) {
	raw := in[name]
	if jsontext.Value(raw).Kind() != '"' {
		return "", false
	}
	// An error means an invalid surrogate; a rule may still deny the rest.
	s, _ := jsontext.AppendUnquote(nil, raw)
	return string(s), true
}

// readInput reads an input so that every parser agrees: one object, no duplicate names at any depth, no text that
// decoders repair. bad says what is wrong; the members are then what could be read.
func readInput(raw json.RawMessage) (in input, bad string) {
	in = input{}
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return in, ""
	case len(raw) > maxInput:
		return nil, "the input is too large to be judged"
	case !utf8.Valid(raw):
		return nil, "the input holds bytes that are not valid text"
	case jsontext.Value(raw).Kind() != '{':
		return nil, "the input is not an object"
	case jsonv2.Unmarshal(raw, &in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil:
		return nil, "the input is not valid JSON"
	}
	for dec := jsontext.NewDecoder(bytes.NewReader(raw)); ; {
		token, err := dec.ReadToken()
		kind, n := dec.StackIndex(dec.StackDepth())
		var syntax *jsontext.SyntacticError
		switch {
		case errors.Is(err, io.EOF):
			return in, bad
		case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
			return in, cmp.Or(bad, "the input holds the name "+syntax.JSONPointer.LastToken()+" twice, and programs differ in which one counts")
		case err != nil:
			return in, cmp.Or(bad, "the input holds half a character")
		case dec.StackDepth() > maxDepth:
			bad = cmp.Or(bad, "the input is nested too deeply to be judged")
		case kind == '{' && n%2 == 1 && token.String() == "__proto__":
			bad = cmp.Or(bad, "the input holds the name __proto__, which JavaScript treats in its own way")
		}
	}
}
