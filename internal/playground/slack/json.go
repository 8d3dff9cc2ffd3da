package slack

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
)

// object is a JSON object as decoded or about to be encoded. Objects that were
// stored (blocks, views, metadata) are never changed in place: they are shared
// between the workspace, answers and events.
type object = map[string]any

// clone copies an object's own fields.
func clone(o object) object { return maps.Clone(o) }

func nonNil(list []any) []any {
	if list == nil {
		return []any{}
	}
	return list
}

// decodeJSON decodes one JSON value and nothing after it; numbers keep their digits.
func decodeJSON(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// decodeStrict decodes one JSON object whose fields are all known.
func decodeStrict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// mustJSON encodes a value made of decoded JSON and plain literals, which cannot fail.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("slack: encode own value: " + err.Error())
	}
	return raw
}

// text reads a decoded value as a text: numbers and truth values in JSON's
// writing, nothing as the empty text.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case nil:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// intOf reads a whole number of decoded JSON.
func intOf(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return int(i), err == nil
}

func itoa(n int) string { return strconv.Itoa(n) }

// encodeContext makes an event's opaque context.
func encodeContext(o object) string { return base64.StdEncoding.EncodeToString(mustJSON(o)) }
