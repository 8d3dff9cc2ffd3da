package slack

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// maxBody is how large a request may be, uploads apart.
const maxBody = 4 << 20

// args are the arguments of a call, wherever they came from: values of a form
// and of a query are strings, those of a JSON body are as decoded.
type args struct {
	token   string
	values  object
	warning string
}

// readArgs collects a request's arguments. The token may be in the
// Authorization header, the form or the query, but not in a JSON body.
func readArgs(w http.ResponseWriter, r *http.Request) (args, error) {
	a := args{values: object{}}
	for k, v := range r.URL.Query() {
		a.values[k] = v[0]
	}
	if r.Method != http.MethodGet {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := a.readBody(r); err != nil {
			return a, err
		}
	}
	if t, ok := a.values["token"].(string); ok {
		a.token = t
	}
	delete(a.values, "token")
	if scheme, t, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		a.token = strings.TrimSpace(t)
	}
	return a, nil
}

func (a *args) readBody(r *http.Request) error {
	kind := r.Header.Get("Content-Type")
	if kind == "" {
		if r.ContentLength > 0 {
			return fail("missing_post_type")
		}
		return nil
	}
	media, params, err := mime.ParseMediaType(kind)
	if err != nil {
		return fail("invalid_post_type")
	}
	switch media {
	case "application/json":
		if params["charset"] == "" {
			a.warning = "missing_charset"
		} else if !strings.EqualFold(params["charset"], "utf-8") {
			return fail("invalid_charset")
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return fail("request_timeout")
		}
		if len(bytes.TrimSpace(raw)) == 0 {
			return nil
		}
		var v any
		if err := decodeJSON(raw, &v); err != nil {
			return fail("invalid_json")
		}
		o, ok := v.(object)
		if !ok {
			return fail("json_not_object")
		}
		for k, v := range o {
			if k != "token" {
				a.values[k] = v
			}
		}
		return nil
	case "application/x-www-form-urlencoded", "multipart/form-data":
		if media == "application/x-www-form-urlencoded" && params["charset"] != "" {
			a.warning = "superfluous_charset"
		}
		if media == "multipart/form-data" {
			err = r.ParseMultipartForm(maxBody)
		} else {
			err = r.ParseForm()
		}
		if err != nil {
			return fail("invalid_form_data")
		}
		for k, v := range r.PostForm {
			a.values[k] = v[0]
		}
		return nil
	case "text/plain":
		return nil
	default:
		return fail("invalid_post_type")
	}
}

// shown are the arguments for the list of calls; the token is not among them.
func (a args) shown() object { return a.values }

func (a args) has(name string) bool {
	v, ok := a.values[name]
	return ok && v != nil
}

// str is an argument as text; the empty string when there is none.
func (a args) str(name string) string { return text(a.values[name]) }

// flag is an argument as a truth value: true, "true", "1" or 1.
func (a args) flag(name string) bool {
	switch a.str(name) {
	case "true", "1", "True":
		return true
	}
	return false
}

// number is an argument as a number in a range, with a value for "not given".
func (a args) number(name string, missing, most int) (int, error) {
	v := a.str(name)
	if v == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, fail("invalid_limit")
	}
	if n == 0 {
		return missing, nil
	}
	return min(n, most), nil
}

// value is an argument that holds JSON, given as text or as it is.
func (a args) value(name string) (any, error) {
	v, ok := a.values[name]
	if !ok || v == nil {
		return nil, nil
	}
	raw, isText := v.(string)
	if !isText {
		return v, nil
	}
	if strings.TrimSpace(raw) == "" {
		return nil, nil
	}
	var out any
	if err := decodeJSON([]byte(raw), &out); err != nil {
		return nil, fmt.Errorf("argument %s: %w", name, err)
	}
	return out, nil
}

// list is an argument that holds a JSON array.
func (a args) list(name string) ([]any, error) {
	v, err := a.value(name)
	if v == nil || err != nil {
		return nil, err
	}
	l, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("argument %s: not an array", name)
	}
	return l, nil
}

// strs is an argument that holds texts, as a JSON array or separated by commas.
func (a args) strs(name string) []string {
	var out []string
	if l, err := a.list(name); err == nil && l != nil {
		for _, v := range l {
			out = append(out, text(v))
		}
		return out
	}
	for part := range strings.SplitSeq(a.str(name), ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
