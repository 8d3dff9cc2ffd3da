package slackui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
)

// callsBy has the desk's project call people in a way; a process that runs is told.
func (d *desk) callsBy(c access.Call) {
	d.calls = c
	d.bot.app.screen.c.Calls["web"] = c
}

// direct are the messages that somebody has from us.
func (d *desk) direct(user string) []shownMessage {
	d.slack.mu.Lock()
	defer d.slack.mu.Unlock()
	var out []shownMessage
	for _, ts := range d.slack.posted {
		if m := d.slack.messages[ts]; m.channel == "D"+user && !m.deleted {
			out = append(out, *m)
		}
	}
	return out
}

// directTS is where somebody's only direct message stands.
func (d *desk) directTS(user string) string {
	d.slack.mu.Lock()
	defer d.slack.mu.Unlock()
	for _, ts := range d.slack.posted {
		if d.slack.messages[ts].channel == "D"+user {
			return ts
		}
	}
	return ""
}

// A card mentions those who have to decide, and nobody else.
func TestWhomACardMentions(t *testing.T) {
	t.Parallel()
	everybody := []string{"UADA", "UGRACE", "UHEIDI", "ULINUS"}
	for name, c := range map[string]struct {
		terms approvals.Terms
		want  []string
	}{
		"the approvers":                              {approvals.Terms{}, []string{"UGRACE", "UHEIDI"}},
		"those whom the policy names":                {approvals.Terms{Approvers: []string{"UADA"}}, []string{"UADA"}},
		"the person who asked, who may":              {approvals.Terms{Approvers: []string{"ULINUS", "UGRACE"}, RequesterMay: true}, []string{"ULINUS"}},
		"not the person who asked, who may not":      {approvals.Terms{Approvers: []string{"ULINUS", "UGRACE"}}, []string{"UGRACE"}},
		"the person who asked, beside another":       {approvals.Terms{Approvers: []string{"ULINUS", "UGRACE"}, RequesterMay: true, Quorum: 2}, []string{"UGRACE", "ULINUS"}},
		"the approvers, if the requester has no say": {approvals.Terms{RequesterMay: true}, []string{"UGRACE", "UHEIDI"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				d.ask("", c.terms)
				d.rest()
				card := d.slack.inThread(deskThread)[0]
				if !strings.Contains(card.metadata, "deckhand_card") {
					t.Fatalf("the card is not first: %s", card.blocks)
				}
				var got []string
				for _, id := range everybody {
					if strings.Contains(card.blocks, "<@"+id+">") || strings.Contains(card.blocks, `\u003c@`+id+`\u003e`) {
						got = append(got, id)
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s\n%s", diff, card.blocks)
				}
				if n := d.slack.count("conversations.open"); n != 0 {
					t.Error("somebody was sent a direct message")
				}
				if name := d.bot.app.screen.people.Name(t.Context(), "ULINUS"); name == "ULINUS" || !strings.Contains(card.text, "\n"+name) {
					t.Errorf("the notification does not say that %s asks: %q", name, card.text)
				}
			})
		})
	}
}

// Who may decide has the card as a direct message, and decides there; it ends with the card.
func TestACardByDirectMessage(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.callsBy(access.CallDirect)
		a := d.ask("", approvals.Terms{})
		b := d.ask(a.CardID, approvals.Terms{})
		d.rest()
		if card := d.slack.inThread(deskThread)[0]; strings.Contains(card.blocks, "@UGRACE") || !strings.Contains(card.blocks, "Sent to ugrace and uheidi") {
			t.Errorf("the card: %s", card.blocks)
		}
		for _, user := range []string{"UGRACE", "UHEIDI"} {
			got := d.direct(user)
			if len(got) != 1 || !got[0].actions || !strings.Contains(got[0].blocks, "make 2") {
				t.Fatalf("%s has %+v", user, got)
			}
		}
		if len(d.direct("UADA"))+len(d.direct("ULINUS")) > 0 {
			t.Error("others were called")
		}
		for what, got := range map[string]string{
			"a click on another's copy, by somebody who may not": d.clickIn("DUGRACE", d.directTS("UGRACE"), "ULINUS", view.ActionApprove, a),
			"a click from elsewhere":                             d.clickIn("DULINUS", d.directTS("UGRACE"), "UGRACE", view.ActionApprove, a),
			"a click on another message":                         d.clickIn("DUGRACE", "1.5", "UGRACE", view.ActionApprove, a),
		} {
			if got != "refused" && got != "wrong card" {
				t.Errorf("%s: %s", what, got)
			}
		}
		if got := d.clickIn("DUGRACE", d.directTS("UGRACE"), "UGRACE", view.ActionApprove, a); got != "allowed" {
			t.Errorf("a click on the copy: %s", got)
		}
		if got := d.clickIn("DUHEIDI", d.directTS("UHEIDI"), "UHEIDI", view.ActionDeny, b); got != "denied" {
			t.Errorf("a click on the other copy: %s", got)
		}
		d.end("done", "")
		d.over()
		for _, p := range d.wrong() {
			t.Error(p)
		}
		for _, user := range []string{"UGRACE", "UHEIDI"} {
			if got := d.direct(user); len(got) != 1 || got[0].actions || !strings.Contains(got[0].blocks, "denied by") {
				t.Errorf("in the end %s has %+v", user, got)
			}
		}
	})
}

// A process that is killed while it calls people leaves the rest to the next one, and nobody
// is called twice.
func TestACallThatIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, millis := range []int64{0, 20, 60, 110, 160, 210, 260, 310, 400, 1000} {
		after := time.Duration(millis) * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				d.callsBy(access.CallDirect)
				a := d.ask("", approvals.Terms{})
				time.Sleep(after)
				d.kill()
				d.over()
				for _, user := range []string{"UGRACE", "UHEIDI"} {
					if got := d.direct(user); len(got) != 1 || !got[0].actions {
						t.Errorf("%s has %d messages", user, len(got))
					}
				}
				cards := slices.DeleteFunc(d.slack.inThread(deskThread), func(m shownMessage) bool { return !strings.Contains(m.metadata, "deckhand_card") })
				if len(cards) != 1 {
					t.Errorf("%d cards", len(cards))
				}
				if got := d.clickIn("DUHEIDI", d.directTS("UHEIDI"), "UHEIDI", view.ActionApprove, a); got != "allowed" {
					t.Errorf("a click on the copy: %s", got)
				}
				d.end("done", "")
				d.over()
				if slices.ContainsFunc(slices.Concat(d.direct("UGRACE"), d.direct("UHEIDI")), func(m shownMessage) bool { return m.actions }) {
					t.Error("a copy still has buttons")
				}
			})
		})
	}
}

// Where nobody can be sent a direct message the thread calls them.
func TestACallThatReachesNobody(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.callsBy(access.CallDirect)
		d.ask("", approvals.Terms{Approvers: []string{"ULINUS"}})
		d.rest()
		if got := d.slack.inThread(deskThread); !slices.ContainsFunc(got, func(m shownMessage) bool { return strings.Contains(m.text, "A request waits for a decision") }) {
			t.Errorf("the thread reads %+v", got)
		}
	})
}

// A card that calls by the channel is shown there, too; one in a direct message is not.
func TestACardInItsChannel(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.callsBy(access.CallChannel)
		d.ask("", approvals.Terms{})
		d.rest()
		d.slack.mu.Lock()
		defer d.slack.mu.Unlock()
		for _, c := range d.slack.calls {
			isCard := strings.Contains(c.args.Get("metadata"), "deckhand_card")
			if c.method == "chat.postMessage" && (c.args.Get("reply_broadcast") == "true") != isCard {
				t.Errorf("broadcast %q of %s", c.args.Get("reply_broadcast"), c.args.Get("text"))
			}
		}
	})
}

// By default who may decide is not made to follow the thread: those who are not in it have the
// card as a direct message, if they are few.
func TestWhoIsCalledByDefault(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.callsBy(access.CallAuto)
		d.bot.app.Act(context.Background(), d.posted("UHEIDI", "2.0", "help"))
		d.clickOn("2.1", "UGRACE", view.ActionApprove, approvals.Approval{ID: "none"}) // a click makes nobody follow
		a := d.ask("", approvals.Terms{})
		d.rest()
		card := d.slack.inThread(deskThread)[0]
		if !strings.Contains(card.blocks, "UHEIDI") || strings.Contains(card.blocks, "UGRACE") {
			t.Errorf("the card: %s", card.blocks)
		}
		if want := "<@UHEIDI> or " + d.bot.app.screen.people.Name(t.Context(), "UGRACE") + " decides with the buttons"; !strings.Contains(card.text, want) {
			t.Errorf("the notification: %q, want %q", card.text, want)
		}
		if len(d.direct("UGRACE")) != 1 || len(d.direct("UHEIDI")) != 0 {
			t.Errorf("sent are %+v and %+v", d.direct("UGRACE"), d.direct("UHEIDI"))
		}
		if got := d.clickIn("DUGRACE", d.directTS("UGRACE"), "UGRACE", view.ActionApprove, a); got != "allowed" {
			t.Errorf("a click on the copy: %s", got)
		}
		d.turn.Waiting = 0
		many := []string{"U1", "U2", "U3", "U4", "U5", "U6"}
		b := d.ask("", approvals.Terms{Approvers: many})
		d.rest()
		if to, known := d.bot.app.Called(t.Context(), b); !known || !slices.Equal(to.Mention, many) || len(to.Direct) > 0 {
			t.Errorf("many are called by %+v", to)
		}
	})
}
