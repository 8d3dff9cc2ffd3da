package slackui

import (
	"context"
	"strings"
	"testing"
	"time"

	"deckhand/internal/chat"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/turns"
)

func (b *screenStore) FeedbackReport(context.Context, string, time.Time, time.Time, int) (turns.FeedbackReport, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rated, nil
}

// What people wrote is read by admins, of channels that they can read, and does nothing there.
func TestFeedbackReasons(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		reason := func(channel, user, text string) turns.FeedbackReason {
			return turns.FeedbackReason{Project: "web", ChannelID: channel, ThreadTS: "1.0", MessageTS: "2.000001", UserID: user, Reason: text, At: time.Now()}
		}
		found := turns.FeedbackReport{Projects: []turns.FeedbackStats{{Project: "web", Good: 3, Bad: 1}}, Reasons: []turns.FeedbackReason{
			reason(deskChannel, "ULINUS", "it called <!channel> and\n*said* nothing"), reason(deskPrivate, "UGRACE", "secret one"),
			reason("DLINUS", "ULINUS", "secret two"), reason("DADA", "UADA", "my own"),
		}}
		for range 30 {
			found.Reasons = append(found.Reasons, reason(deskChannel, "ULINUS", strings.Repeat("<@U1> & long ", 40)))
		}
		d.store.mu.Lock()
		d.store.rated = found
		d.store.mu.Unlock()
		in := &chat.Incoming{UserTeam: deskTeam, Deed: chat.Deed{Command: &chat.Command{Text: "feedback 7 days"}}, Row: inbox.Envelope{TeamID: deskTeam, ChannelID: deskChannel, UserID: "UADA"}}
		if outcome := d.bot.app.Act(context.Background(), in); outcome != "feedback" {
			t.Errorf("Ada: %s", outcome)
		}
		d.rest()
		last := d.slack.calls[len(d.slack.calls)-1]
		blocks := last.args.Get("blocks")
		for _, want := range []string{"the last 7 days", "web 3 (75 %) of 4", "https://t.slack.com/archives/C1/p2000001", "my own", "more: `bot report feedback` has them", "2 reasons are not shown"} {
			if !strings.Contains(blocks, want) {
				t.Errorf("no %q in %s", want, blocks)
			}
		}
		for _, not := range []string{"secret", "<!channel>", "\\u003c!channel\\u003e", "<@U1>"} {
			if strings.Contains(blocks, not) {
				t.Errorf("%q is in %s", not, blocks)
			}
		}
		in = &chat.Incoming{UserTeam: deskTeam, Deed: in.Deed, Row: in.Row}
		in.Row.UserID = "ULINUS"
		if outcome := d.bot.app.Act(context.Background(), in); outcome != "refused" {
			t.Errorf("Linus: %s", outcome)
		}
		d.rest()
	})
}
