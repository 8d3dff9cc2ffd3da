package forge

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	callTimeout = time.Minute
	// maxAnswer is more than any page of an API's answers; a longer one is refused.
	maxAnswer = 16 << 20
	// maxLog is what is read of a log whose end alone is kept.
	maxLog = 256 << 20
	// maxMessage is what is kept of a forge's own words about an error.
	maxMessage = 300
)

// connections are the forges' own: whoever closes those of others, as servers of tests do when they
// end, breaks no call.
var connections = http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one

// newClient returns the client for the calls to one repository's API, whose address is api.
// The forge's own client of the API must set no credential: each call gets the one that
// Config.Token returns then, and only calls to the API's own host do. An answer other than
// success comes back as an error that has an [*Error] in its chain, and a [*refusal] in that.
func newClient(c Config, api *url.URL) *http.Client {
	client := http.Client{}
	if c.Client != nil {
		client = *c.Client
	}
	client.Transport = &transport{
		host: hostOf(api), token: c.Token, next: cmp.Or[http.RoundTripper](client.Transport, connections),
	}
	client.CheckRedirect = checkRedirect
	return &client
}

// transport adds to each call the credential and, where the answer has been seen, its ETag;
// reads the whole answer, within bounds; and turns what is no success into an [*Error].
type transport struct {
	host  string
	token func(context.Context) (string, error)
	next  http.RoundTripper
	seen  answers
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	call := r.Clone(ctx)
	call.Header.Del("Authorization")
	var key string
	var before *answer
	if hostOf(call.URL) == t.host {
		token, err := t.token(ctx)
		if err != nil {
			closeBody(r)
			e := &Error{Reason: cmp.Or(ReasonOf(err), Unavailable), Sentence: "There is no credential for " + call.URL.Host + " now", Err: err}
			if why, ok := errors.AsType[*Error](err); ok {
				e.Sentence += ": " + why.Sentence
			}
			return nil, e
		}
		if token != "" {
			call.Header.Set("Authorization", "Bearer "+token) // all three take it
		}
		if call.Method == http.MethodGet && call.Header.Get("Range") == "" {
			key = fmt.Sprintf("%s %x %s", call.URL, sha256.Sum256([]byte(token)), call.Header.Get("Accept"))
			if before = t.seen.of(key); before != nil {
				call.Header.Set("If-None-Match", before.etag)
			}
		}
	}
	response, err := t.next.RoundTrip(call)
	if err != nil {
		return nil, unavailable(call.URL.Host, err)
	}
	body, err := readAnswer(ctx, response)
	if err != nil {
		return nil, unavailable(call.URL.Host, err)
	}
	if response.StatusCode == http.StatusNotModified && before != nil {
		response.StatusCode, response.Status = http.StatusOK, "200 OK"
		for name, values := range before.header {
			if response.Header.Get(name) == "" {
				response.Header[name] = values
			}
		}
		body = before.body
	}
	response.Body, response.ContentLength, response.Request = io.NopCloser(bytes.NewReader(body)), int64(len(body)), r
	switch {
	case response.StatusCode/100 == 2 && !whole(response.Header, body):
		return nil, unavailable(call.URL.Host, errors.New("the answer is not whole JSON"))
	case response.StatusCode/100 == 2:
		if etag := response.Header.Get("ETag"); key != "" && etag != "" && response.StatusCode == http.StatusOK {
			t.seen.keep(key, &answer{etag: etag, header: response.Header.Clone(), body: body})
		}
		return response, nil
	case response.StatusCode/100 == 3 && response.Header.Get("Location") != "":
		if response.StatusCode == http.StatusMovedPermanently && call.Method != http.MethodGet {
			// Gitea's word for a repository with another name, to all methods: what was asked is
			// to be asked there.
			response.StatusCode = http.StatusPermanentRedirect
		}
		return response, nil
	}
	return nil, refused(call, response, body)
}

// readAnswer reads an answer to its end: one that stops before it is an error.
func readAnswer(ctx context.Context, response *http.Response) ([]byte, error) {
	defer response.Body.Close() //nolint:errcheck // it has been read
	if n, ok := ctx.Value(tailKey{}).(int); ok && response.StatusCode == http.StatusOK {
		return readTail(io.LimitReader(response.Body, maxLog), n)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)
	}
	return body, err
}

type tailKey struct{}

// withTail has the calls of a context keep the last n bytes of their answers alone: logs.
func withTail(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, tailKey{}, n)
}

func readTail(r io.Reader, n int) ([]byte, error) {
	var tail []byte
	part := make([]byte, 64<<10)
	for {
		got, err := r.Read(part)
		tail = append(tail, part[:got]...)
		if len(tail) > 2*n+len(part) || err != nil {
			tail = append(tail[:0], tail[max(0, len(tail)-n):]...)
		}
		if errors.Is(err, io.EOF) {
			return tail, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// whole is false if an answer says that it is JSON, and is none.
func whole(header http.Header, body []byte) bool {
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return len(body) == 0 || media != "application/json" || json.Valid(body)
}

// checkRedirect follows a repository that was renamed, and a log to where it is stored. It
// sends nothing but questions to another host, and no question without encryption that began
// with it.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0]
	elsewhere := hostOf(r.URL) != hostOf(first.URL)
	switch {
	case len(via) > 5,
		r.Method != first.Method,
		elsewhere && r.Method != http.MethodGet,
		r.URL.Scheme != "https" && r.URL.Scheme != first.URL.Scheme:
		return &Error{Reason: NotFound, Sentence: first.URL.Host + " says that this is somewhere else now. Check the repository's address", Err: fmt.Errorf("redirected to %s", r.URL.Redacted())}
	}
	return nil
}

// refusal is an answer other than success, for those who know more about the call.
type refusal struct {
	status  int
	message string // of the forge, one line
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.message) }

// refusalOf returns the answer in an error's chain, nil if there is none.
func refusalOf(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	return nil
}

func refused(call *http.Request, response *http.Response, body []byte) error {
	host, r := call.URL.Host, &refusal{status: response.StatusCode, message: messageOf(body)}
	e := &Error{Err: fmt.Errorf("%s %s: %w", call.Method, call.URL.Path, r), Until: comeBack(response.Header)}
	limited := response.Header.Get("Retry-After") != "" || response.Header.Get("X-RateLimit-Remaining") == "0"
	switch {
	case r.status == http.StatusTooManyRequests, r.status == http.StatusForbidden && limited:
		e.Reason, e.Sentence = RateLimited, host+" takes no more calls for a while"
	case r.status == http.StatusUnauthorized:
		e.Reason, e.Sentence = Denied, host+" does not take the credential. It may have expired or been revoked: give a new one"
	case r.status == http.StatusForbidden:
		e.Reason, e.Sentence = Denied, "The credential may not do this at "+host+". Give it the right, or ask somebody who has it"
	case r.status == http.StatusNotFound, r.status == http.StatusGone:
		e.Reason, e.Sentence = NotFound, host+" has no such thing, or the credential may not see it"
	case r.status >= 500, r.status == http.StatusRequestTimeout:
		e.Reason, e.Sentence = Unavailable, host+" does not work at the moment"
	default:
		e.Reason, e.Sentence = Invalid, host+" did not take this"
		if r.message != "" {
			e.Sentence += ": " + r.message
		}
	}
	if e.Reason != RateLimited && (e.Reason != Unavailable || response.Header.Get("Retry-After") == "") {
		e.Until = time.Time{} // the next window of a limit that was not reached is no reason to wait
	}
	return e
}

func unavailable(host string, err error) error {
	return &Error{Reason: Unavailable, Sentence: host + " gave no answer, or half of one", Err: err}
}

// failed wraps an error of a call, so that it always has an [*Error]: what a client of the
// API could not read was half of an answer.
func failed(doing string, host string, err error) error {
	if err == nil {
		return nil
	}
	if ReasonOf(err) == "" {
		err = unavailable(host, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// messageOf returns what the body of an error says: GitHub and Gitea in message, with errors
// at GitHub, GitLab in message, error or error_description, and in parts of its own.
func messageOf(body []byte) string {
	var said struct {
		Message          json.RawMessage   `json:"message"`
		Error            json.RawMessage   `json:"error"`
		ErrorDescription string            `json:"error_description"`
		Errors           []json.RawMessage `json:"errors"`
	}
	_ = json.Unmarshal(body, &said) // what is no JSON says nothing
	raw := cmp.Or(string(said.Message), said.ErrorDescription, string(said.Error))
	var text string
	if json.Unmarshal([]byte(raw), &text) != nil {
		text = raw
	}
	for _, raw := range said.Errors {
		var one struct{ Message, Field, Code string }
		var plain string
		if json.Unmarshal(raw, &plain) != nil {
			_ = json.Unmarshal(raw, &one)
		}
		if detail := cmp.Or(plain, one.Message, strings.TrimSpace(one.Field+" "+one.Code)); detail != "" {
			text += "; " + detail
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// comeBack returns when a forge wants to be asked again, zero if it does not say.
func comeBack(header http.Header) time.Time {
	after := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
		return time.Now().Add(time.Duration(min(seconds, 86400)) * time.Second)
	}
	if at, err := http.ParseTime(after); err == nil {
		return at
	}
	for _, name := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
		if at, err := strconv.ParseInt(header.Get(name), 10, 64); err == nil && at > 0 {
			return time.Unix(at, 0)
		}
	}
	return time.Time{}
}

func hostOf(u *url.URL) string { return strings.ToLower(u.Scheme + "://" + u.Host) }

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
