package view

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Field is one key of an input.
type Field struct {
	Key string
	Raw json.RawMessage
}

// Fields returns the top level of an input in order, the last of repeated keys
// winning, or false when it is not an object.
func Fields(input json.RawMessage) ([]Field, bool) {
	d := json.NewDecoder(bytes.NewReader(input))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var out []Field
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, false
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, false
		}
		out = slices.DeleteFunc(out, func(f Field) bool { return f.Key == key })
		out = append(out, Field{key, raw})
	}
	return out, true
}

// FieldSet looks fields up and remembers which have been shown.
type FieldSet struct {
	All  []Field
	Used []string
}

// Raw is a field's value as it came, in JSON; nil if there is none.
func (s *FieldSet) Raw(key string) json.RawMessage {
	for _, f := range s.All {
		if f.Key == key {
			return f.Raw
		}
	}
	return nil
}

// Text returns a string field and marks it as shown; false when there is none.
func (s *FieldSet) Text(key string) (string, bool) {
	var v *string
	if raw := s.Raw(key); raw == nil || json.Unmarshal(raw, &v) != nil || v == nil {
		return "", false
	}
	s.Used = append(s.Used, key)
	return *v, true
}

// Flag returns a boolean field and marks it as shown when it is one.
func (s *FieldSet) Flag(key string) bool {
	var v *bool
	if raw := s.Raw(key); raw == nil || json.Unmarshal(raw, &v) != nil || v == nil {
		return false
	}
	s.Used = append(s.Used, key)
	return *v
}

// Rest lists the fields that were not shown.
func (s *FieldSet) Rest() []Field {
	var out []Field
	for _, f := range s.All {
		if !slices.Contains(s.Used, f.Key) {
			out = append(out, f)
		}
	}
	return out
}
