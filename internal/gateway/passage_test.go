package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"deckhand/internal/gateway"
	"deckhand/internal/waittest"
)

// pieces is a provider that sends the next piece of its answer when goOn says so, each
// after one token of it. It tells when its client has left before all were sent.
type pieces struct {
	kind, path string
	body       string
	parts      []string
	goOn       chan struct{}
	left       chan struct{}
}

func (p *pieces) answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // who leaves is seen when all was read
	for i, part := range p.parts {
		select {
		case <-p.goOn:
		case <-r.Context().Done():
			p.left <- struct{}{}
			return
		}
		if i == 0 {
			w.Header().Set("Content-Type", p.kind)
		}
		_, _ = io.WriteString(w, part)
		flush(w)
	}
}

func newPieces(kind, path, body string, parts ...string) *pieces {
	return &pieces{kind, path, body, parts, make(chan struct{}, 10), make(chan struct{}, 100)}
}

// streamed is an answer in three pieces.
func streamed() *pieces {
	return newPieces("text/event-stream", "/v1/messages", asked, started, delta, stopped)
}

// take waits for the next of what a channel tells.
func take[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(waittest.Limit):
		t.Fatal("waited in vain for " + what)
	}
	return v
}

// leaver has a call that is under way, and leaves it.
type leaver struct {
	*caller
	gateway  *outer
	provider *provider
	hangUp   context.CancelFunc
	done     chan struct{} // closed when the caller has its answer, or none
}

// begin has the provider's call under way, with so many pieces of its answer read.
func (p *pieces) begin(t *testing.T, read int, change func(*outer)) *leaver {
	t.Helper()
	l := &leaver{provider: newProvider(t, p.answer), gateway: newGateway(t, nil), done: make(chan struct{})}
	if change != nil {
		change(l.gateway)
	}
	env := []string{"ANTHROPIC_BASE_URL=" + l.provider.URL, "ANTHROPIC_API_KEY=" + realKey}
	if strings.HasPrefix(p.path, "/model/") {
		env = []string{"CLAUDE_CODE_USE_BEDROCK=1", "ANTHROPIC_BEDROCK_BASE_URL=" + l.provider.URL, "AWS_BEARER_TOKEN_BEDROCK=" + realKey}
	}
	l.caller = open(t, l.gateway, env...)
	path := p.path
	if base := l.env["ANTHROPIC_BEDROCK_BASE_URL"]; base != "" {
		path = base + path
	}
	var ctx context.Context
	ctx, l.hangUp = context.WithCancel(t.Context())
	r := l.request(http.MethodPost, path, p.body).WithContext(ctx)
	head := make(chan *http.Response, 1)
	go func() {
		defer close(l.done)
		resp, err := l.client.Do(r)
		if err != nil {
			return
		}
		defer resp.Body.Close() //nolint:errcheck // it is cut
		head <- resp
		<-ctx.Done()
	}()
	take(t, "the call", l.provider.calls)
	for i := range read {
		p.goOn <- struct{}{}
		if i == 0 {
			resp := take(t, "the answer's head", head)
			if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

func TestWhoLeavesIsReadToTheEnd(t *testing.T) {
	t.Parallel()
	delta1, stop, _ := strings.Cut(stopped, "\n\n")
	const text = `{"type":"message","model":"m","stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}`
	forms := map[string]*pieces{
		"a stream":      streamed(),
		"Amazon's":      newPieces("application/vnd.amazon.eventstream", "/model/m/invoke-with-response-stream", `{"max_tokens":9}`, frame(t, started), frame(t, delta), frame(t, delta1)+frame(t, stop)),
		"not streamed":  newPieces("application/json", "/v1/messages", call, text[:20], text[20:30], text[30:]),
		"cut by itself": newPieces("text/event-stream", "/v1/messages", asked, started, delta, ""),
	}
	for name, form := range forms {
		for how, leave := range map[string]func(*leaver){
			"hangs up":         func(l *leaver) { l.hangUp() },
			"its session ends": func(l *leaver) { l.Close() },
		} {
			for read, when := range []string{"before the first byte", "after it", "later"} {
				t.Run(name+", "+how+" "+when, func(t *testing.T) {
					t.Parallel()
					p := newPieces(form.kind, form.path, form.body, form.parts...)
					l := p.begin(t, read, nil)
					leave(l)
					take(t, "the gateway to see that the caller has left", l.meter.alone)
					for range len(p.parts) - read {
						p.goOn <- struct{}{}
					}
					e := l.end(t)
					if want := name != "cut by itself"; e.Complete != want || e.Usage.Prompt() == 0 || (want && e.Usage.Output < 4) {
						t.Errorf("%+v", e.Answer)
					}
					if len(p.left) > 0 || len(l.meter.ended) > 0 {
						t.Error("the provider was cut off, or it ended twice")
					}
				})
			}
		}
	}
}

func TestACallThatIsCutEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(t *testing.T, l *leaver, cut func()){
		"cut, and then left": func(_ *testing.T, l *leaver, cut func()) {
			cut()
			cut()
			l.hangUp()
		},
		"left, and then cut": func(t *testing.T, l *leaver, cut func()) {
			l.hangUp()
			take(t, "the gateway to see that the caller has left", l.meter.alone)
			cut()
		},
		"the gateway's end": func(t *testing.T, l *leaver, _ func()) {
			l.hangUp()
			take(t, "the gateway to see that the caller has left", l.meter.alone)
			l.gateway.Close()
			if len(l.meter.ended) != 1 {
				t.Error("the gateway has ended before its call")
			}
		},
		"silence": func(_ *testing.T, l *leaver, _ func()) { l.hangUp() },
		"an hour": func(_ *testing.T, l *leaver, _ func()) { l.hangUp() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := streamed()
			l := p.begin(t, 1, func(g *outer) {
				switch name {
				case "silence":
					g.SetLimits(time.Millisecond, time.Hour, time.Hour)
				case "an hour":
					g.SetLimits(time.Hour, time.Millisecond, time.Hour)
				}
			})
			do(t, l, l.meter.last().Cut)
			take(t, "the provider to be cut off", p.left)
			if e := l.end(t); e.Complete || e.Usage != begun {
				t.Errorf("%+v", e.Answer)
			}
		})
	}
}

// A caller that is there and takes nothing of its answer holds up nobody.
func TestWhoTakesNothingIsReadToTheEnd(t *testing.T) {
	t.Parallel()
	p := newPieces("text/event-stream", "/v1/messages", asked, started, strings.Repeat(delta, 100_000), stopped)
	l := p.begin(t, 1, func(g *outer) { g.SetLimits(time.Hour, time.Hour, 50*time.Millisecond) })
	p.goOn <- struct{}{}
	p.goOn <- struct{}{}
	if e := l.end(t); !e.Complete || e.Usage != whole {
		t.Errorf("%+v", e.Answer)
	}
	l.hangUp()
}

func TestACallWhoseCallerHasLeftBeforeItDoesNotLeave(t *testing.T) {
	t.Parallel()
	p := newProvider(t, nil)
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	waits := make(chan context.Context)
	s.meter.wait = func(ctx context.Context) {
		waits <- ctx
		<-ctx.Done() // and it is in the database all the same
	}
	ctx, hangUp := context.WithCancel(t.Context())
	go func() {
		if resp, err := s.client.Do(s.request(http.MethodPost, "/v1/messages", asked).WithContext(ctx)); err == nil {
			_ = resp.Body.Close()
		}
	}()
	take(t, "the call", waits)
	hangUp()
	want := gateway.Answer{Complete: true}
	if diff := cmp.Diff(want, s.end(t).Answer, times, cmpopts.EquateEmpty()); diff != "" || len(p.calls) > 0 {
		t.Errorf("%d calls left; answer (-want +got):\n%s", len(p.calls), diff)
	}
}
