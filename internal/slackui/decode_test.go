package slackui

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/chat"
	"deckhand/internal/store/inbox"
)

func event(inner string) envelope {
	return envelope{ID: "env", Type: "events_api", Payload: json.RawMessage(`{"team_id":"T1","event_id":"Ev1","event":` + inner + `}`)}
}

// us is an app that only decodes.
var us = newApp(Config{Config: chat.Config{Log: zap.NewNop()}}, slack.New("xoxb-1"), identity{TeamID: "T1", UserID: "U0"})

func TestWhatIsNoneOfOurBusinessIsDropped(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string]string{
		"a bot's post":        `{"type":"message","bot_id":"B1","user":"U1","channel":"C1","ts":"1.1","text":"<@U0> hi"}`,
		"an edit":             `{"type":"message","subtype":"message_changed","channel":"C1","ts":"1.1"}`,
		"a join":              `{"type":"message","subtype":"channel_join","user":"U1","channel":"C1","ts":"1.1"}`,
		"a post by nobody":    `{"type":"app_mention","channel":"C1","ts":"1.1","text":"<@U0> hi"}`,
		"an event of a later": `{"type":"something_new"}`,
	} {
		if in, err := us.screen.decode(event(inner)); in != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
	}
}

func TestAMentionAndItsMessageAreOnePost(t *testing.T) {
	t.Parallel()
	a, err := us.screen.decode(event(`{"type":"app_mention","user":"U1","channel":"C1","ts":"2.2","thread_ts":"1.1","text":"<@U0> hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := us.screen.decode(event(`{"type":"message","channel_type":"channel","user":"U1","channel":"C1","ts":"2.2","thread_ts":"1.1","text":"<@U0> hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	a.Row.Payload, b.Row.Payload = nil, nil
	if diff := cmp.Diff(a.Row, b.Row); diff != "" || a.Row.Kind != inbox.Message || a.Row.ThreadTS != "1.1" {
		t.Errorf("they differ:\n%s", diff)
	}
}

// A stranger's team is the one that counts, not that of the workspace.
func TestTheAuthorsTeamIsTheirOwn(t *testing.T) {
	t.Parallel()
	in, err := us.screen.decode(event(`{"type":"message","user":"U1","user_team":"T2","team":"T2","channel":"C1","ts":"2.2","text":"<@U0> hi"}`))
	if err != nil || in.UserTeam != "T2" {
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
		in, err := us.screen.decode(envelope{ID: "e", Type: kind, Payload: json.RawMessage(payload)})
		if err == nil && in != nil && in.Row.EventID == "" {
			t.Error("an envelope without an id would be stored once for all")
		}
	})
}
