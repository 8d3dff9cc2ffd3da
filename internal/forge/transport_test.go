package forge

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// called serves one handler as an API and calls it once.
func called(t *testing.T, h http.HandlerFunc, do func(*http.Client, string)) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	api, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	do(newClient(Config{Token: func(context.Context) (string, error) { return "canary", nil }}, api), s.URL)
}

func get(t *testing.T, c *http.Client, url string, ctx context.Context) (string, error) { //nolint:revive // one context is special
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // read
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestAnswersThatAreNoSuccess(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		header   map[string]string
		status   int
		body     string
		want     Reason
		until    time.Duration
		sentence string
	}{
		"429":                 {status: 429, header: map[string]string{"Retry-After": "60"}, want: RateLimited, until: time.Minute},
		"403 by the limit":    {status: 403, header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)}, want: RateLimited, until: time.Hour},
		"403":                 {status: 403, want: Denied, sentence: "may not do this"},
		"401":                 {status: 401, want: Denied, sentence: "give a new one"},
		"404":                 {status: 404, want: NotFound},
		"502":                 {status: 502, body: "<html>", want: Unavailable},
		"503 with a time":     {status: 503, header: map[string]string{"Retry-After": "60"}, want: Unavailable, until: time.Minute},
		"422":                 {status: 422, body: `{"message":"the title\n is empty"}`, want: Invalid, sentence: "the title is empty"},
		"GitLab's 400":        {status: 400, body: `{"message":{"title":["is too long"]}}`, want: Invalid, sentence: `{"title":["is too long"]}`},
		"half of its bytes":   {status: 200, header: map[string]string{"Content-Length": "100"}, body: `{"number":1}`, want: Unavailable},
		"half of its JSON":    {status: 200, body: `[{"number":1},{"num`, want: Unavailable},
		"more than is wanted": {status: 200, body: `"` + strings.Repeat("x", maxAnswer) + `"`, want: Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for k, v := range one.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(one.status)
				_, _ = io.WriteString(w, one.body)
			}, func(c *http.Client, url string) {
				_, err := get(t, c, url, t.Context())
				err = failed("read it", "forge.example", err)
				if ReasonOf(err) != one.want || !strings.Contains(err.Error(), one.sentence) || strings.Contains(err.Error(), "canary") {
					t.Fatalf("%v, reason %q, want %q and %q", err, ReasonOf(err), one.want, one.sentence)
				}
				until := UntilOf(err)
				if one.until == 0 != until.IsZero() || one.until != 0 && (time.Until(until) > one.until || time.Until(until) < one.until/2) {
					t.Errorf("until %v, want in %v", until, one.until)
				}
			})
		})
	}
}

func TestAnAnswerIsAskedForOnce(t *testing.T) {
	t.Parallel()
	sent := 0
	called(t, func(w http.ResponseWriter, r *http.Request) {
		if w.Header().Set("ETag", `"1"`); r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		w.Header().Set("X-Total-Count", "7")
		_, _ = io.WriteString(w, "the answer to "+r.URL.Path)
	}, func(c *http.Client, url string) {
		for range 3 {
			if got, err := get(t, c, url+"/a", t.Context()); got != "the answer to /a" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		}
		if sent != 1 {
			t.Errorf("it was sent %d times", sent)
		}
		kept := &c.Transport.(*transport).seen
		for i := range 2 * maxAnswers {
			if _, err := get(t, c, url+"/"+strconv.Itoa(i), t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := kept.used.Len(); n != maxAnswers || n != len(kept.byKey) {
			t.Errorf("%d answers are kept, and %d known", n, len(kept.byKey))
		}
	})
}

func TestTheCredentialStaysWithItsHost(t *testing.T) {
	t.Parallel()
	var others []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		others = append(others, r.Method+r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, strings.Repeat("x", 1000)+"the end")
	}))
	t.Cleanup(other.Close)
	called(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer canary" {
			t.Errorf("the call has %q", r.Header.Get("Authorization"))
		}
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}, func(c *http.Client, url string) {
		if got, err := get(t, c, url, withTail(t.Context(), 7)); got != "the end" || err != nil {
			t.Errorf("a log elsewhere: %q, %v", got, err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"title":"secret"}`))
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if ReasonOf(err) != NotFound {
			t.Errorf("a post elsewhere: %v", err)
		}
		if len(others) != 1 || others[0] != "GET" {
			t.Errorf("the other host saw %q", others)
		}
	})
}
