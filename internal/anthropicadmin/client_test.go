package anthropicadmin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-ant-admin01-secret"

// api is a loopback stand-in for the Admin API.
type api struct {
	*Client
	mu      sync.Mutex
	asked   []url.Values
	pauses  []time.Duration
	answers []http.HandlerFunc // in turn; the last one stays
}

func newAPI(t *testing.T, answers ...http.HandlerFunc) *api {
	t.Helper()
	a := &api{answers: answers}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/organizations/cost_report" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		if r.Header.Get("X-Api-Key") != key || r.Header.Get("Anthropic-Version") != "2023-06-01" {
			t.Errorf("headers %v", r.Header)
		}
		a.mu.Lock()
		n := min(len(a.asked), len(a.answers)-1)
		a.asked = append(a.asked, r.URL.Query())
		a.mu.Unlock()
		a.answers[n](w, r)
	}))
	transport := &http.Transport{}
	t.Cleanup(func() { server.Close(); transport.CloseIdleConnections() })
	a.Client = &Client{Key: key, URL: server.URL + "/", HTTP: transport, pause: func(_ context.Context, d time.Duration) error {
		a.pauses = append(a.pauses, d)
		return nil
	}}
	return a
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
}

func refuses(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

var (
	october  = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	november = october.AddDate(0, 1, 0)
)

func (a *api) october(t *testing.T, workspace string) ([]Cost, error) {
	t.Helper()
	return a.Costs(t.Context(), october, november, workspace)
}

func day(d int, results ...string) string {
	at := october.AddDate(0, 0, d-1)
	return fmt.Sprintf(`{"starting_at":%q,"ending_at":%q,"results":[%s]}`, at.Format(time.RFC3339), at.AddDate(0, 0, 1).Format(time.RFC3339), strings.Join(results, ","))
}

func item(workspace, model, kind, amount string) string {
	quoted := func(s string) string {
		if s == "" {
			return "null"
		}
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf(`{"currency":"USD","amount":%q,"workspace_id":%s,"description":"x","cost_type":%q,"model":%s,"context_window":null,"service_tier":"standard","token_type":null}`,
		amount, quoted(workspace), kind, quoted(model))
}

func report(more string, days ...string) string {
	return fmt.Sprintf(`{"data":[%s],"has_more":%t,"next_page":%s}`, strings.Join(days, ","), more != "null", more)
}

func TestCostsAreSummedOverPagesByDayAndModel(t *testing.T) {
	t.Parallel()
	a := newAPI(t,
		says(report(`"page_2"`, day(1, item("wrkspc_1", "claude-sonnet-4-5", "tokens", "123.78912"), item("", "claude-sonnet-4-5", "tokens", "0.00005"),
			item("wrkspc_1", "", "web_search", "1")), day(2))),
		says(report("null", day(3, item("wrkspc_2", "claude-opus-5", "tokens", "-0.5"), item("wrkspc_1", "claude-haiku-4-5", "tokens", "0")))))
	got, err := a.october(t, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []Cost{
		{Day: "2026-10-01", Kind: "web_search", MicroUSD: 10_000},
		{Day: "2026-10-01", Model: "claude-sonnet-4-5", Kind: "tokens", MicroUSD: 1_237_892}, // 1237891.2 + 0.5
		{Day: "2026-10-03", Model: "claude-haiku-4-5", Kind: "tokens"},
		{Day: "2026-10-03", Model: "claude-opus-5", Kind: "tokens", MicroUSD: -5000},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("costs (-want +got):\n%s", diff)
	}
	first := url.Values{
		"starting_at": {"2026-10-01T00:00:00Z"}, "ending_at": {"2026-11-01T00:00:00Z"}, "bucket_width": {"1d"},
		"group_by[]": {"workspace_id", "description"}, "limit": {"31"},
	}
	second := url.Values{"page": {"page_2"}}
	maps.Copy(second, first)
	if diff := cmp.Diff([]url.Values{first, second}, a.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestAWorkspaceIsToldFromTheOthers(t *testing.T) {
	t.Parallel()
	a := newAPI(t, says(report("null", day(1, item("wrkspc_1", "m", "tokens", "1"), item("wrkspc_2", "m", "tokens", "2"), item("", "m", "tokens", "4")))))
	for workspace, want := range map[string]int64{"": 70_000, "wrkspc_1": 10_000, "wrkspc_2": 20_000, DefaultWorkspace: 40_000} {
		got, err := a.october(t, workspace)
		if err != nil || len(got) != 1 || got[0].MicroUSD != want {
			t.Errorf("workspace %q: %+v, %v; want %d µ$", workspace, got, err, want)
		}
	}
	if got, err := a.october(t, "wrkspc_3"); err != nil || len(got) != 0 {
		t.Errorf("a workspace without costs: %+v, %v", got, err)
	}
}

func TestDaysThatWereNotAskedForAreLeftOut(t *testing.T) {
	t.Parallel()
	a := newAPI(t, says(report("null", day(0, item("", "m", "tokens", "1")), day(31, item("", "m", "tokens", "2")), day(32, item("", "m", "tokens", "4")))))
	got, err := a.october(t, "")
	if diff := cmp.Diff([]Cost{{Day: "2026-10-31", Model: "m", Kind: "tokens", MicroUSD: 20_000}}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAWrongKeyIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t, refuses(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, "Request-Id", "req_1"))
	_, err := a.october(t, "")
	var refused *Error
	if !errors.As(err, &refused) || refused.Status != 401 {
		t.Fatalf("error %#v", err)
	}
	for _, want := range []string{"401", "invalid x-api-key", "sk-ant-admin…", "req_1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if len(a.asked) != 1 || len(a.pauses) != 0 {
		t.Errorf("asked %d times", len(a.asked))
	}
}

func TestItWaitsAsLongAsItIsTold(t *testing.T) {
	t.Parallel()
	a := newAPI(t,
		refuses(429, `{"error":{"type":"rate_limit_error","message":"slow down"}}`, "Retry-After", "7"),
		refuses(529, `overloaded`),
		refuses(500, ``),
		says(report("null", day(1, item("", "m", "tokens", "1")))))
	if got, err := a.october(t, ""); err != nil || len(got) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff([]time.Duration{7 * time.Second, 2 * time.Second, 4 * time.Second}, a.pauses); diff != "" {
		t.Errorf("waited (-want +got):\n%s", diff)
	}
}

func TestItDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	limited := func(after string) *api { return newAPI(t, refuses(429, `{}`, "Retry-After", after)) }
	a := limited("1")
	if _, err := a.october(t, ""); err == nil || !strings.Contains(err.Error(), "429") || len(a.asked) != maxTries {
		t.Errorf("asked %d times: %v", len(a.asked), err)
	}
	a = limited("3600")
	if _, err := a.october(t, ""); err == nil || len(a.asked) != 1 {
		t.Errorf("asked %d times: %v", len(a.asked), err)
	}
	a = limited("30")
	a.pause = nil
	ctx, cancel := context.WithCancelCause(t.Context())
	cancelled := errors.New("nobody waits any more")
	a.answers = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		refuses(429, `{}`, "Retry-After", "30")(w, r)
		time.AfterFunc(10*time.Millisecond, func() { cancel(cancelled) })
	}}
	if _, err := a.Costs(ctx, october, november, ""); !errors.Is(err, cancelled) {
		t.Errorf("error %v", err)
	}
}

// What is not understood is an error, never a wrong figure.
func TestAnswersThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, want string }{
		"an amount in words":    {report("null", day(1, item("", "m", "tokens", "twelve"))), "not an amount"},
		"no amount":             {report("null", day(1, item("", "m", "tokens", ""))), "not an amount"},
		"an exponent":           {report("null", day(1, item("", "m", "tokens", "1e400"))), "not an amount"},
		"a fraction":            {report("null", day(1, item("", "m", "tokens", "1/3"))), "not an amount"},
		"not a number":          {report("null", day(1, item("", "m", "tokens", "NaN"))), "not an amount"},
		"a comma":               {report("null", day(1, item("", "m", "tokens", "1,23"))), "not an amount"},
		"too much":              {report("null", day(1, item("", "m", "tokens", "999999999999999"))), "too large"},
		"a number, not a text":  {strings.Replace(report("null", day(1, item("", "m", "tokens", "1"))), `"amount":"1"`, `"amount":1`, 1), "read the Admin API's answer"},
		"another currency":      {strings.Replace(report("null", day(1, item("", "m", "tokens", "1"))), "USD", "EUR", 1), `"EUR"`},
		"no currency":           {strings.Replace(report("null", day(1, item("", "m", "tokens", "1"))), "USD", "", 1), "US dollars only"},
		"no JSON":               {"<html>", "read the Admin API's answer"},
		"a page that leads on":  {`{"data":[],"has_more":true,"next_page":null}`, "does not say where"},
		"pages in a circle":     {report(`"again"`), "does not say where"},
		"a day that is no time": {`{"data":[{"starting_at":"soon"}]}`, "read the Admin API's answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newAPI(t, says(c.answer)).october(t, "")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v; want an error with %q", got, err, c.want)
			}
		})
	}
}

func TestTheKeyIsNeitherPassedOnNorShown(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed with the key %q", r.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(elsewhere.Close)
	a := newAPI(t, refuses(302, "", "Location", elsewhere.URL))
	_, err := a.october(t, "")
	var refused *Error
	if !errors.As(err, &refused) || refused.Status != 302 {
		t.Errorf("error %v", err)
	}
	a.URL = "http://127.0.0.1:1"
	for range 2 {
		if _, err = a.october(t, ""); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("error %v", err)
		}
		a.URL = "http://%zz"
	}
}

func FuzzAmount(f *testing.F) {
	for _, s := range []string{"123.45", "-0.5", "0", "1e9", "", "00.10", ".5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, amount string) {
		r, err := microUSD(result{Currency: "USD", Amount: amount})
		if err != nil {
			return
		}
		if n, err := round(r); err == nil && n == 0 && strings.ContainsAny(strings.SplitN(amount, ".", 2)[0], "123456789") {
			t.Errorf("%q cents are nothing", amount)
		}
	})
}
