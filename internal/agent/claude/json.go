package claude

import (
	"errors"
	"math"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// tolerant is how everything that the CLI says is read. A member fills the field
// of its name, whatever their case and underscores: that is how the dialects of
// hosts differ. A value of another type than its field costs the field and not
// the message; so do names that stand twice and text that is no UTF-8.
var tolerant = jsonv2.JoinOptions(
	jsonv2.MatchCaseInsensitiveNames(true),
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
	jsonv1.ReportErrorsWithLegacySemantics(true), // go on behind a wrong type
	jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		jsonv2.UnmarshalFromFunc(readInteger[int]),
		jsonv2.UnmarshalFromFunc(readInteger[int64]),
		jsonv2.UnmarshalFromFunc(readNames),
		jsonv2.UnmarshalFromFunc(readBlock),
		jsonv2.UnmarshalFromFunc(readBlocks),
	)),
)

// unmarshal reads what the CLI said into v. The only error is [ErrCorrupt].
func unmarshal(text []byte, v any) error {
	if unlessWrongType(jsonv2.Unmarshal(text, v, tolerant)) != nil {
		return ErrCorrupt
	}
	return nil
}

// fill is unmarshal of what is known to be JSON.
func fill(text []byte, v any) { _ = unmarshal(text, v) }

// unmarshalNext reads the value that comes next.
func unmarshalNext(dec *jsontext.Decoder, v any) error {
	return unlessWrongType(jsonv2.UnmarshalDecode(dec, v))
}

// unlessWrongType drops the error that some value had another type than its field.
func unlessWrongType(err error) error {
	if _, ok := errors.AsType[*jsonv1.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// readInteger takes a number and drops what is after its point; 0 for any other
// value, or one out of range.
func readInteger[T int | int64](dec *jsontext.Decoder, n *T) error {
	*n = 0
	text, err := dec.ReadValue()
	if err != nil || text.Kind() != '0' {
		return err
	}
	if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		*n = T(i)
	} else if f, err := strconv.ParseFloat(string(text), 64); err == nil && math.Abs(f) <= 1<<62 {
		*n = T(f)
	}
	return nil
}

// readNames takes an array of texts, or of objects that have a name.
func readNames(dec *jsontext.Decoder, names *[]string) error {
	*names = nil
	return eachElement(dec, func() error {
		var name string
		if dec.PeekKind() == '"' {
			err := unmarshalNext(dec, &name)
			*names = append(*names, name)
			return err
		}
		var named struct{ Name *string }
		err := unmarshalNext(dec, &named)
		if named.Name != nil {
			*names = append(*names, *named.Name)
		}
		return err
	})
}

// eachElement calls f for each element of an array, which f must take. A value
// that is no array is skipped.
func eachElement(dec *jsontext.Decoder, f func() error) error {
	if dec.PeekKind() != '[' {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		if err := f(); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// errorText is a text, or an object that has it as its message.
type errorText string

// UnmarshalJSONFrom reads either.
func (t *errorText) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '{' {
		var object struct{ Message string }
		err := unmarshalNext(dec, &object)
		*t = errorText(object.Message)
		return err
	}
	return unmarshalNext(dec, (*string)(t))
}
