package slack_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/playground/slack"
)

// What not everybody can use is taken, as Slack takes it, and noted.
func TestWhatNotEverybodyCanUse(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		f.hello()
		seen := 0
		noted := func() []string {
			out := []string{}
			list := f.control("accessibility", nil)["unfit"].([]any)
			for _, u := range list[seen:] {
				out = append(out, u.(obj)["what"].(string)+": "+u.(obj)["text"].(string))
			}
			seen = len(list)
			return out
		}
		says := func(text string) obj {
			return obj{"type": "section", "text": obj{"type": "mrkdwn", "text": text}}
		}
		button := func(id, text, name string) obj {
			b := obj{"type": "button", "action_id": id, "value": id, "text": obj{"type": "plain_text", "text": text}}
			if name != "" {
				b["accessibility_label"] = name
			}
			return b
		}
		for _, c := range []struct {
			text   string
			blocks []any
			want   []string
		}{
			{"All is well.", []any{
				says("✅ *Approved* by Ada\n   ↳ ⏳ Bash `ls` — running"),
				obj{"type": "markdown", "text": "✅ calc.go"},
				obj{"type": "actions", "elements": []any{button("a1", "Approve", "Approve 1: npm test"), button("a2", "Approve", "Approve 2: git tag")}},
				obj{"type": "image", "image_url": "http://127.0.0.1/x.png", "alt_text": "Costs by day"},
			}, []string{}},
			{"", []any{says("hello")}, []string{"a message with blocks has no text: "}},
			{"✅ …", []any{says("hello")}, []string{"the text beside blocks has no word: ✅ …"}},
			{"… and more", []any{says("hello")}, []string{"the text beside blocks begins in the middle of something: … and more"}},
			{"Signs", []any{says("⏳ Bash `npm test`"), obj{"type": "context", "elements": []any{obj{"type": "plain_text", "text": "❌"}}}}, []string{
				"a sign stands without a word that says the same: ⏳ Bash `npm test`", "a sign stands without a word that says the same: ❌",
			}},
			{"Pictures", []any{obj{"type": "image", "image_url": "http://127.0.0.1/x.png", "alt_text": "📈"}}, []string{"a picture has no words: http://127.0.0.1/x.png"}},
			{"Buttons", []any{obj{"type": "actions", "elements": []any{
				button("a1", "Approve", ""), button("a2", "Approve", ""), button("a3", "👍", ""), button("a4", "Deny", "Refuse it"),
			}}}, []string{
				"two buttons of a message have one name: Approve", "a button has no word: 👍", "a button is called otherwise than it reads: Deny: Refuse it",
			}},
		} {
			f.ok("chat.postMessage", obj{"channel": slack.ChannelRandom, "text": c.text, "blocks": c.blocks})
			if diff := cmp.Diff(c.want, noted()); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.text, diff)
			}
		}
		f.ok("views.publish", obj{"user_id": slack.UserAda, "view": obj{"type": "home", "blocks": []any{says("⏸ here")}}})
		if diff := cmp.Diff([]string{"a sign stands without a word that says the same: ⏸ here"}, noted()); diff != "" {
			t.Error(diff)
		}
	})
}
