package slack_test

import (
	"slices"
	"testing"
	"time"

	"deckhand/internal/playground/slack"
)

// What was posted stands in the record as it is now, page by page, whether it was delivered
// or not.
func TestTheRecordOfWhatWasPosted(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		s := f.hello()
		f.control("faults", obj{"lose_events": 100})
		var ts []string
		for _, text := range []string{"one", "two", "three", "four", "five"} {
			ts = append(ts, f.say(slack.UserAda, slack.ChannelEngineering, text, ""))
			time.Sleep(time.Second)
		}
		reply := f.say(slack.UserLinus, slack.ChannelEngineering, "below one", ts[0])
		f.control("messages/edit", obj{"user": slack.UserAda, "channel": "C0ENG", "ts": ts[1], "text": "zwei"})
		f.control("messages/delete", obj{"user": slack.UserAda, "channel": "C0ENG", "ts": ts[2]})
		f.control("messages/delete", obj{"user": slack.UserAda, "channel": "C0ENG", "ts": ts[0]})
		s.none(time.Hour)
		read := func(method string, args obj) (texts []string) {
			t.Helper()
			for cursor := any(""); ; {
				args["channel"], args["cursor"] = "C0ENG", cursor
				page := f.ok(method, args)
				for _, m := range page["messages"].([]any) {
					texts = append(texts, m.(obj)["text"].(string))
				}
				if page["has_more"] != true {
					return texts
				}
				cursor = dig(t, page, "response_metadata/next_cursor")
			}
		}
		for _, c := range []struct {
			method string
			args   obj
			want   []string
		}{
			{"conversations.history", obj{"limit": 2}, []string{"five", "four", "zwei", "This message was deleted."}},
			{"conversations.history", obj{"oldest": ts[1]}, []string{"five", "four"}},
			{"conversations.history", obj{"oldest": ts[1], "latest": ts[3], "inclusive": true, "limit": 1}, []string{"four", "zwei"}},
			{"conversations.replies", obj{"ts": ts[0]}, []string{"This message was deleted.", "below one"}},
			{"conversations.replies", obj{"ts": ts[0], "oldest": reply}, []string{"This message was deleted."}},
			{"conversations.replies", obj{"ts": ts[0], "oldest": reply, "latest": reply, "inclusive": true}, []string{"This message was deleted.", "below one"}},
		} {
			if got := read(c.method, c.args); !slices.Equal(got, c.want) {
				t.Errorf("%s %v: %q, want %q", c.method, c.args, got, c.want)
			}
		}
		f.fails("conversations.replies", "thread_not_found", obj{"channel": "C0ENG", "ts": ts[2]})
	})
}
