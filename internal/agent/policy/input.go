package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxInput bounds a call's input. The CLI's longest hold a whole file.
const maxInput = 16 << 20

// maxDepth bounds how deeply an input is nested.
const maxDepth = 64

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

// lenient accepts what jsontext rejects: duplicate names and invalid surrogates.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// readInput reads an input so that every parser agrees: one object, no duplicate names at any depth, no text that
// decoders repair. bad says what is wrong; the members are then what could be read, the first of each name.
func readInput(raw json.RawMessage) (in input, bad string) {
	text := jsontext.Value(raw)
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return input{}, ""
	case len(raw) > maxInput:
		return nil, "the input is too large to be judged"
	case !utf8.Valid(raw):
		return nil, "the input holds bytes that are not valid text"
	case !text.IsValid(lenient...):
		return nil, "the input is not valid JSON"
	case text.Kind() != '{':
		return nil, "the input is not an object"
	}
	in, bad = members(raw)
	var syntax *jsontext.SyntacticError
	_, err := jsontext.NewDecoder(bytes.NewBuffer(raw)).ReadValue()
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		bad = cmp.Or(bad, "the input holds the name "+syntax.JSONPointer.LastToken()+" twice, and programs differ in which one counts")
	case err != nil:
		bad = cmp.Or(bad, "the input holds half a character")
	}
	return in, bad
}

// members walks an object that is known to be valid JSON.
func members(raw json.RawMessage) (in input, bad string) {
	in = input{}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), lenient...)
	var name string
	var from int64 // where the value of name begins, its colon included
	for {
		token, err := dec.ReadToken()
		if err != nil { // the end
			return in, bad
		}
		depth := dec.StackDepth()
		if depth > maxDepth {
			bad = cmp.Or(bad, "the input is nested too deeply to be judged")
		}
		kind, n := dec.StackIndex(depth)
		isName := kind == '{' && n%2 == 1
		if isName && token.String() == "__proto__" {
			bad = cmp.Or(bad, "the input holds the name __proto__, which JavaScript treats in its own way")
		}
		switch {
		case depth != 1 || n == 0:
		case isName:
			name, from = token.String(), dec.InputOffset()
		default:
			if _, twice := in[name]; !twice {
				in[name] = bytes.TrimLeft(raw[from:dec.InputOffset()], ": \t\r\n")
			}
		}
	}
}
