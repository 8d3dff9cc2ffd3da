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

// FieldsOf is the top level of an input; it has no fields when that is not an object.
func FieldsOf(input json.RawMessage) *FieldSet {
	all, _ := Fields(input)
	return &FieldSet{All: all}
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
func (s *FieldSet) Text(key string) (string, bool) { return valueOf[string](s, key) }

// Flag returns a boolean field and marks it as shown when it is one.
func (s *FieldSet) Flag(key string) bool {
	v, _ := valueOf[bool](s, key)
	return v
}

func valueOf[T any](s *FieldSet, key string) (value T, ok bool) {
	var v *T
	if json.Unmarshal(s.Raw(key), &v) != nil || v == nil {
		return value, false
	}
	s.Used = append(s.Used, key)
	return *v, true
}

// Rest lists the fields that were not shown.
func (s *FieldSet) Rest() []Field {
	return slices.DeleteFunc(slices.Clone(s.All), func(f Field) bool { return slices.Contains(s.Used, f.Key) })
}
