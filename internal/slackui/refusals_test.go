package slackui

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
)

// takesNothing is a Slack that refuses all blocks, and texts that are longer than a sentence.
func takesNothing(_ int, c slackCall) fault {
	switch blocks := c.args.Get("blocks"); {
	case blocks != "" && blocks != "[]":
		return fault{err: &slack.SlackErrorResponse{Err: "invalid_blocks"}}
	case len(c.args.Get("text")) > 300:
		return fault{err: &slack.SlackErrorResponse{Err: "msg_too_long"}}
	}
	return fault{}
}

// A request whose card is refused, and whose text is, waits for nobody: what is left says
// how to decide, by words that decide.
func TestARequestIsDecidedWhereSlackTakesNoCard(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"approve", "deny"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				d.slack.answers(takesNothing)
				a := d.ask("", approvals.Terms{Approvers: []string{"UADA"}, Rule: strings.Repeat("a long rule ", 40)})
				d.rest()
				said := words + " " + view.Code(a)
				shown := d.slack.inThread(deskThread)
				if len(shown) == 0 || !strings.Contains(shown[0].text, said) || !strings.Contains(shown[0].text, "<@UADA>") {
					t.Fatalf("the thread does not say %q to who may decide: %+v", said, shown)
				}
				if n := d.slack.count("files.completeUploadExternal"); n != 1 {
					t.Errorf("%d files with all of the card, want 1", n)
				}
				d.turn.Waiting--
				got := d.sayTo(said, false)
				if want := map[string]string{"approve": "allowed", "deny": "denied"}[words]; got != want {
					t.Errorf("%q comes to %q, want %q", said, got, want)
				}
				d.slack.answers(nil)
				d.end(agent.TurnDone, "")
			})
		})
	}
}

// Whoever clicks is told why there is no window, and what to do instead.
func TestModalsThatSlackDoesNotShow(t *testing.T) {
	t.Parallel()
	refused := func(code string) error { return &slack.SlackErrorResponse{Err: code} }
	for name, c := range map[string]struct {
		err    error
		action string
		want   []string // in what the person is told
		wrong  bool     // it is an error of ours
	}{
		"too late":         {err: refused("expired_trigger_id"), action: view.ActionDenyReason, want: []string{"three seconds", "Click again"}},
		"twice":            {err: refused("exchanged_trigger_id"), action: view.ActionDenyReason, want: []string{"Click again"}},
		"too large":        {err: refused("view_too_large"), action: view.ActionDenyReason, want: []string{"too much", "Reply “deny CODE and your reason”"}},
		"refused":          {err: refused("invalid_arguments"), action: view.ActionViewInput, want: []string{"does not show this window"}},
		"Slack is missing": {err: errors.New("no route"), action: view.ActionViewInput, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				a := d.ask("", approvals.Terms{Approvers: []string{"UADA"}})
				d.rest()
				d.slack.answers(func(_ int, call slackCall) fault {
					if call.method == "views.open" {
						return fault{err: c.err}
					}
					return fault{}
				})
				d.click("UADA", c.action, a)
				d.rest()
				synctest.Wait()
				var told string
				d.slack.mu.Lock()
				for _, call := range d.slack.calls {
					if call.method == "chat.postEphemeral" && call.args.Get("user") == "UADA" {
						told += call.args.Get("text") + "\n"
					}
				}
				d.slack.mu.Unlock()
				for _, want := range c.want {
					if want = strings.ReplaceAll(want, "CODE", view.Code(a)); !strings.Contains(told, want) {
						t.Errorf("the person is told %q, not %q", told, want)
					}
				}
				if c.wrong && told != "" && strings.Contains(told, "does not show") {
					t.Errorf("the person is told %q of what may pass", told)
				}
				d.turn.Waiting--
				d.slack.answers(nil)
				d.end(agent.TurnDone, "")
			})
		})
	}
}
