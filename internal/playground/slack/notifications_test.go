package slack_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/playground/slack"
)

// Posts call people, edits do not: those who are mentioned, who follow the thread, or whom a
// direct message is for.
func TestWhoIsNotified(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		f.hello()
		seq := 0
		heard := func() []string {
			t.Helper()
			got := f.control(fmt.Sprintf("notifications?since=%d", seq), nil)
			out := []string{}
			for _, n := range got["notifications"].([]any) {
				n := n.(obj)
				out = append(out, fmt.Sprint(n["user"], " ", n["reason"], ": ", n["text"]))
			}
			seq = int(got["seq"].(float64))
			return out
		}
		root := f.say(slack.UserLinus, slack.ChannelEngineering, "@deckhand fix it", "")
		section := func(text string) []any {
			return []any{obj{"type": "section", "text": obj{"type": "mrkdwn", "text": text}}}
		}
		card := f.ok("chat.postMessage", obj{"channel": slack.ChannelEngineering, "thread_ts": root, "text": "Deckhand asks to run <@U0MALLORY> a &lt; b", "blocks": section("<!subteam^S0APPROVERS> decide; <@U0CONNECT> is not here")})
		if diff := cmp.Diff([]string{
			"U0ADA mention: Deckhand asks to run @Mallory Stranger a < b", "U0GRACE mention: Deckhand asks to run @Mallory Stranger a < b", "U0LINUS thread: Deckhand asks to run @Mallory Stranger a < b",
		}, heard()); diff != "" {
			t.Error(diff)
		}
		f.ok("chat.update", obj{"channel": slack.ChannelEngineering, "ts": card["ts"], "text": "<!channel>", "blocks": section("<!channel>")})
		f.ok("chat.postEphemeral", obj{"channel": slack.ChannelEngineering, "user": slack.UserLinus, "text": "<@U0LINUS>"})
		if diff := cmp.Diff([]string{}, heard()); diff != "" {
			t.Error("edits and ephemeral messages:", diff)
		}
		f.ok("chat.postMessage", obj{"channel": "D0GRACE", "text": "see <https://x.example/a|the card> in <#C0ENG>"})
		f.say(slack.UserGrace, slack.ChannelEngineering, "fine", root)
		if diff := cmp.Diff([]string{"U0GRACE direct: see the card in #engineering", "U0ADA thread: fine", "U0LINUS thread: fine"}, heard()); diff != "" {
			t.Error(diff)
		}
		f.control("messages", obj{"user": slack.UserGrace, "channel": slack.ChannelEngineering, "thread_ts": root, "text": "", "files": []any{obj{"name": "answer.md", "text": "all of it"}}})
		if diff := cmp.Diff([]string{"U0ADA thread: uploaded a file: answer.md", "U0LINUS thread: uploaded a file: answer.md"}, heard()); diff != "" {
			t.Error("a file without words:", diff)
		}
		seq = 0
		if n := len(heard()); n != 8 {
			t.Errorf("%d in all", n)
		}
		if got := f.control("notifications?user="+slack.UserLinus, nil)["notifications"].([]any); len(got) != 3 {
			t.Errorf("Linus alone: %v", got)
		}
		f.refused("notifications?user=U0X", nil)
		f.refused("notifications?since=x", nil)
	})
}
