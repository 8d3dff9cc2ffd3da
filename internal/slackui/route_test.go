package slackui

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/store"
)

func event(inner string) envelope {
	return envelope{ID: "env", Type: "events_api", Payload: json.RawMessage(`{"team_id":"T1","event_id":"Ev1","event":` + inner + `}`)}
}

func TestWhatIsNoneOfOurBusinessIsDropped(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string]string{
		"a bot's post":        `{"type":"message","bot_id":"B1","user":"U1","channel":"C1","ts":"1.1","text":"<@U0> hi"}`,
		"an edit":             `{"type":"message","subtype":"message_changed","channel":"C1","ts":"1.1"}`,
		"a join":              `{"type":"message","subtype":"channel_join","user":"U1","channel":"C1","ts":"1.1"}`,
		"a post by nobody":    `{"type":"app_mention","channel":"C1","ts":"1.1","text":"<@U0> hi"}`,
		"an event of a later": `{"type":"something_new"}`,
	} {
		if in, err := decode(event(inner)); in != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
	}
}

func TestAMentionAndItsMessageAreOnePost(t *testing.T) {
	t.Parallel()
	a, err := decode(event(`{"type":"app_mention","user":"U1","channel":"C1","ts":"2.2","thread_ts":"1.1","text":"<@U0> hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := decode(event(`{"type":"message","channel_type":"channel","user":"U1","channel":"C1","ts":"2.2","thread_ts":"1.1","text":"<@U0> hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	a.store.Payload, b.store.Payload = nil, nil
	if diff := cmp.Diff(a.store, b.store); diff != "" || a.store.Kind != store.KindMessage || a.store.ThreadTS != "1.1" {
		t.Errorf("they differ:\n%s", diff)
	}
}

// A stranger's team is the one that counts, not that of the workspace.
func TestTheAuthorsTeamIsTheirOwn(t *testing.T) {
	t.Parallel()
	in, err := decode(event(`{"type":"message","user":"U1","user_team":"T2","team":"T2","channel":"C1","ts":"2.2","text":"<@U0> hi"}`))
	if err != nil || in.person().TeamID != "T2" {
		t.Errorf("%+v, %v", in, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("events_api", `{"team_id":"T1","event":{"type":"message","user":"U1","ts":"1.1"}}`)
	f.Add("interactive", `{"type":"block_actions","user":{"id":"U1"},"actions":[{"action_id":"approve","value":"x"}]}`)
	f.Add("interactive", `{"type":"view_submission","view":{"state":{"values":{}}}}`)
	f.Add("slash_commands", `{"text":"costs"}`)
	f.Add("events_api", `[]`)
	f.Fuzz(func(t *testing.T, kind, payload string) {
		in, err := decode(envelope{ID: "e", Type: kind, Payload: json.RawMessage(payload)})
		if err == nil && in != nil && in.store.EventID == "" {
			t.Error("an envelope without an id would be stored once for all")
		}
	})
}

func TestLanesKeepOrderWithinAKey(t *testing.T) {
	t.Parallel()
	var l lanes
	var mu sync.Mutex
	var got []int
	var wg sync.WaitGroup
	for i := range 100 {
		enter, leave := l.reserve("a")
		wg.Go(func() {
			defer leave()
			enter()
			mu.Lock()
			defer mu.Unlock()
			got = append(got, i)
		})
	}
	wg.Wait()
	for i, v := range got {
		if i != v {
			t.Fatalf("out of order: %v", got)
		}
	}
	if len(l.tails) != 0 {
		t.Errorf("%d lanes are left", len(l.tails))
	}
}
