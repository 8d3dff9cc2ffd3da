package slack_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/playground/slack"
)

// People say where they live, what they read and when their devices keep quiet; the app is
// told, and what comes in quiet hours is held back.
func TestPeoplesSettings(t *testing.T) {
	t.Parallel()
	scopes := append(slack.DefaultScopes(), "dnd:read")
	inBubble(t, slack.Options{NoRateLimits: true, Scopes: scopes}, func(t *testing.T, f *fast) { // 2025-03-01 09:00 UTC
		f.hello()
		info := func() string {
			u := f.ok("users.info", obj{"user": slack.UserAda, "include_locale": true})["user"].(obj)
			return fmt.Sprint(u["tz"], " ", u["tz_label"], " ", u["tz_offset"], " ", u["locale"])
		}
		quiet := func() string {
			d := f.ok("dnd.info", obj{"user": slack.UserAda})
			return fmt.Sprint(d["dnd_enabled"], " ", time.Unix(int64(d["next_dnd_start_ts"].(float64)), 0).UTC().Format("02 15:04"), " ",
				time.Unix(int64(d["next_dnd_end_ts"].(float64)), 0).UTC().Format("02 15:04"), " ", d["snooze_enabled"], " ", d["snooze_remaining"])
		}
		held := func() any {
			f.ok("chat.postMessage", obj{"channel": "D0ADA", "text": "look"})
			list := f.control("notifications?user="+slack.UserAda, nil)["notifications"].([]any)
			return list[len(list)-1].(obj)["held"]
		}
		equal := func(what string, got, want any) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
		equal("at first", info(), "Europe/Amsterdam CET 3600 en-US")
		equal("at first", quiet(), "false 01 00:00 01 00:00 false <nil>")
		equal("held at first", held(), false)

		f.control("people", obj{"user": slack.UserAda, "tz": "Asia/Tokyo", "locale": "ja-JP", "dnd_from": "17:30", "dnd_to": "08:00"})
		equal("in Tokyo", info(), "Asia/Tokyo JST 32400 ja-JP")
		equal("in Tokyo, 18:00", quiet(), "true 01 08:30 01 23:00 false <nil>")
		equal("held in Tokyo", held(), true)
		state := f.control("state", nil)["users"].([]any)[1].(obj)["dnd"]
		equal("the state", state, any(obj{"quiet": true, "snoozed_until": 0.0, "from": "17:30", "to": "08:00"}))
		time.Sleep(14 * time.Hour) // 08:00 there
		equal("held in the morning", held(), false)
		equal("in the morning", quiet(), "true 02 08:30 02 23:00 false <nil>")

		f.control("people", obj{"user": slack.UserAda, "dnd_from": "", "dnd_to": "", "snooze_minutes": 30})
		equal("paused", quiet(), "false 01 00:00 01 00:00 true 1800")
		equal("held while paused", held(), true)
		f.control("people", obj{"user": slack.UserAda, "snooze_minutes": 0})
		equal("no longer paused", held(), false)

		for _, bad := range []obj{
			{"user": "U0X"},
			{"user": slack.BotUser},
			{"user": slack.UserAda, "tz": "Mars/Olympus"},
			{"user": slack.UserAda, "tz": "Local"},
			{"user": slack.UserAda, "locale": "en"},
			{"user": slack.UserAda, "snooze_minutes": -1},
			{"user": slack.UserAda, "snooze_minutes": 1e6},
			{"user": slack.UserAda, "dnd_from": "22:00"},
			{"user": slack.UserAda, "dnd_from": "22:00", "dnd_to": ""},
			{"user": slack.UserAda, "dnd_from": "24:00", "dnd_to": "07:00"},
			{"user": slack.UserAda, "dnd_from": "07:00", "dnd_to": "07:00"},
		} {
			f.refused("people", bad)
		}
		equal("after what was refused", info(), "Asia/Tokyo JST 32400 ja-JP")
	})
}
