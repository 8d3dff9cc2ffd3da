package slackui

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/store/ledger"
)

// Costs of two projects, whatever is asked.
func (b *screenStore) Costs(_ context.Context, q ledger.CostQuery) (ledger.CostReport, error) {
	r := ledger.CostReport{Total: ledger.CostLine{Turns: 3, Entries: 3, Input: 1000, MicroUSD: 3_000_000}}
	if q.By == ledger.ByProject {
		r.Lines = []ledger.CostLine{
			{Key: "web", Turns: 2, Entries: 2, Input: 700, MicroUSD: 2_000_000},
			{Key: "api", Turns: 1, Entries: 1, Input: 300, MicroUSD: 1_000_000},
		}
	}
	return r, nil
}

// MeterNotes has nothing to say of these.
func (b *screenStore) MeterNotes(context.Context, ledger.CostQuery) (ledger.MeterNotes, error) {
	return ledger.MeterNotes{}, nil
}

// TestAnAnswerIsDelivered: an answer about costs arrives once, rich or as text.
func TestAnAnswerIsDelivered(t *testing.T) {
	t.Parallel()
	refuse := func(kinds ...string) func(int, slackCall) fault {
		return func(_ int, c slackCall) fault {
			for _, k := range kinds {
				if strings.Contains(c.args.Get("blocks"), `"type":"`+k+`"`) {
					return fault{err: refusal}
				}
			}
			return fault{}
		}
	}
	const chart, table = "data_visualization", "table"
	type calls struct{ posts, whispers, files int }
	for name, c := range map[string]struct {
		answer    func(int, slackCall) fault
		words     string
		slash     bool
		want      calls // for the first answer
		again     calls // for a second one
		learnt    calls // for a third one, where Slack has refused twice without a name; else as the second
		rendering string
	}{
		"with a chart":                  {words: "costs this month by project", want: calls{1, 0, 0}, again: calls{1, 0, 0}, rendering: chart},
		"with a file":                   {words: "costs this month by project with csv", want: calls{1, 0, 1}, again: calls{1, 0, 1}, rendering: chart},
		"without charts":                {answer: refuse(chart), words: "costs this month by project", want: calls{2, 0, 1}, again: calls{2, 0, 1}, learnt: calls{1, 0, 1}, rendering: "section"},
		"without charts and tables":     {answer: refuse(chart, table), words: "costs this month by project", want: calls{2, 0, 1}, again: calls{2, 0, 1}, learnt: calls{1, 0, 1}, rendering: "section"},
		"to one person":                 {words: "costs this month by project", slash: true, want: calls{0, 1, 0}, again: calls{0, 1, 0}, rendering: chart},
		"to one person, without charts": {answer: refuse(chart), words: "costs this month by project", slash: true, want: calls{1, 2, 1}, again: calls{1, 2, 1}, learnt: calls{1, 1, 1}, rendering: "section"},
		"to one person, with a file":    {words: "costs this month by project with csv", slash: true, want: calls{1, 1, 1}, again: calls{1, 1, 1}, rendering: chart},
		"after a 429": {words: "costs this month by project", want: calls{2, 0, 0}, again: calls{1, 0, 0}, rendering: chart, answer: func(_ int, c slackCall) fault {
			if c.method == "chat.postMessage" && c.at.Minute() == 0 { // the desk's clock begins at midnight
				return fault{err: &slack.RateLimitedError{RetryAfter: 90 * time.Second}}
			}
			return fault{}
		}},
		"slowly": {words: "costs this month by project", want: calls{1, 0, 0}, again: calls{1, 0, 0}, rendering: chart, answer: func(int, slackCall) fault {
			return fault{slow: 9 * time.Second}
		}},
		"to where nobody may write": {words: "costs this month by project", want: calls{1, 0, 0}, again: calls{1, 0, 0}, answer: func(_ int, c slackCall) fault {
			if c.method == "chat.postMessage" {
				return fault{err: &slack.SlackErrorResponse{Err: "not_in_channel"}}
			}
			return fault{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				d.slack.answers(c.answer)
				var before calls
				for i, want := range []calls{c.want, c.again, cmp.Or(c.learnt, c.again)} {
					if got := d.sayTo(c.words, c.slash); got != "costs" {
						t.Errorf("the words are %q", got)
					}
					d.rest()
					now := calls{d.slack.count("chat.postMessage"), d.slack.count("chat.postEphemeral"), d.slack.count("files.completeUploadExternal")}
					if got := (calls{now.posts - before.posts, now.whispers - before.whispers, now.files - before.files}); got != want {
						t.Errorf("answer %d: %+v, want %+v", i+1, got, want)
					}
					before = now
				}
				shown := 0
				for _, call := range d.slack.calls {
					if call.ok && strings.HasPrefix(call.method, "chat.post") && strings.Contains(call.args.Get("text"), "$3") {
						shown++
						if blocks := call.args.Get("blocks"); c.rendering != "" && !strings.Contains(blocks, `"type":"`+c.rendering+`"`) || c.rendering == "" && blocks != "" {
							t.Errorf("it is not dressed as %q: %s", c.rendering, blocks)
						}
					}
				}
				if want := 3; shown != want && name != "to where nobody may write" {
					t.Errorf("shown %d times, want %d", shown, want)
				}
				d.end(agent.TurnDone, "")
			})
		})
	}
}

// sayTo says something to the bot, as an admin, in the thread or after /deckhand.
func (d *desk) sayTo(text string, slash bool) string {
	e := envelope{ID: uuid.NewString(), Type: "events_api", Payload: mustJSON(object{"team_id": deskTeam, "event_id": uuid.NewString(), "event": object{
		"type": "app_mention", "user": "UADA", "channel": deskChannel, "ts": "2.0", "thread_ts": deskThread, "text": "<@UBOT> " + text,
	}})}
	if slash {
		e.Type, e.Payload = "slash_commands", mustJSON(object{"team_id": deskTeam, "channel_id": deskChannel, "user_id": "UADA", "text": text})
	}
	in, err := d.bot.app.screen.decode(e)
	d.must(err)
	return d.bot.app.Act(context.Background(), in)
}
