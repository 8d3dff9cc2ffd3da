package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/playground/slack"
)

// TestAChannelIsSetUp: an admin has a channel that deckhand.yaml does not have work on a project,
// which holds after a restart and is told until the file says it; the file comes first. Nobody
// else does, by no way in.
func TestAChannelIsSetUp(t *testing.T) {
	t.Parallel()
	const channel = slack.ChannelRandom
	w := unstartedWorld(t)
	w.configure("  other:\n    workspace: scratch\n    roles: {admins: ["+linus+"]}\n"+sandboxHere(), "")
	w.start()
	works := func(text string) {
		t.Helper()
		thread := w.post(linus, channel, "", "@deckhand say: "+text)
		w.done(channel, thread, thread)
	}
	says := func(user, text, want string) {
		t.Helper()
		if said := w.slash(user, channel, text); !strings.Contains(said, want) {
			t.Errorf("%s is told of /deckhand %s: %s", user, text, said)
		}
	}
	none := w.post(linus, channel, "", "@deckhand say: nothing")
	w.told(linus, channel, none, "No project belongs to this channel yet")
	for _, user := range []string{linus, grace, mallory} {
		says(user, "setup", "Only admins can do this")
		says(user, "setup project other", "Only admins can do this")
	}
	asked := w.post(linus, channel, "", "@deckhand setup project other")
	w.told(linus, channel, asked, "Only admins can do this")
	if n := w.count(`SELECT count(*) FROM bindings`); n != 0 {
		t.Fatal("somebody else has set it up")
	}
	says(ada, "setup project nothing", "cannot be chosen here. You can choose other, sample.")
	says(ada, "setup", "works on no project yet")
	list := w.find(channel, "", "the projects", func(m message) bool { return m.EphemeralTo == ada && m.has("say:1") })
	// Its buttons are the admin's: whoever else would press one is refused.
	var out struct{}
	w.must(http.MethodPost, "/_control/actions", map[string]any{"user": ada, "channel": channel, "message_ts": list.TS, "action_id": "say:0"}, &out)
	w.says(channel, "", "has set this channel up: Deckhand works on the project other here.")
	w.told(ada, channel, "", "channels: {"+channel+": other}")

	// What was said meanwhile is found after a restart, though nothing has happened there yet.
	w.must(http.MethodPost, "/_control/faults", map[string]any{"lose_events": 1000}, nil)
	away := w.post(linus, channel, "", "@deckhand say: while nobody listened")
	w.must(http.MethodDelete, "/_control/faults", nil, nil)
	bot := w.PIDs["bot"]
	if err := syscall.Kill(bot, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.renewed("bot", bot)
	w.done(channel, away, away)
	works("one")
	if p := w.text(`SELECT project FROM threads WHERE channel_id = '` + channel + `'`); p != "other" {
		t.Errorf("the thread works on %s", p)
	}

	w.stop()
	w.start()
	works("two")
	home := func(user, part string) string {
		t.Helper()
		var out map[string]any
		w.eventually("the home tab of "+user+" with "+part, func() bool {
			w.must(http.MethodGet, "/_control/home?user="+user, nil, &out)
			return strings.Contains(flatten(out), part)
		})
		return flatten(out)
	}
	home(ada, "was set up in Slack for the project other, which holds until deckhand.yaml has the channel; add channels: {"+channel+": other}")
	if said := home(linus, "Threads"); strings.Contains(said, "was set up in Slack") {
		t.Errorf("a user's home tab: %s", said)
	}
	logged := func(says string) {
		t.Helper()
		w.eventually("the log to say "+says, func() bool {
			log, err := os.ReadFile(filepath.Join(w.dir, "bot.log"))
			return err == nil && strings.Contains(string(log), says)
		})
	}
	logged(channel + " was set up in Slack for the project other, which holds until")

	// Who administers another project takes no channel from this one, from no old thread of theirs.
	says(ada, "setup project sample", "Before, it was other.")
	for _, project := range []string{"other", "none"} {
		taken := w.post(linus, channel, away, "@deckhand setup project "+project)
		w.find(channel, away, "the refusal of "+project, func(m message) bool {
			return m.TS > taken && m.EphemeralTo == linus && strings.Contains(m.all(), "Only admins can do this")
		})
	}
	says(ada, "setup project other", "Before, it was sample.")

	// The file comes first, and a difference is told until somebody ends it.
	w.stop()
	w.replace("channels:\n", "channels:\n  "+channel+": sample\n")
	w.start()
	thread := w.post(linus, channel, "", "@deckhand say: three")
	w.done(channel, thread, thread)
	if p := w.text(`SELECT project FROM threads WHERE thread_ts = '` + thread + `'`); p != "sample" {
		t.Errorf("deckhand.yaml does not come first, but %s", p)
	}
	says(ada, "setup project other", "deckhand.yaml says that this channel works on sample. Change it there.")
	logged("but deckhand.yaml says sample, which counts")
	says(ada, "setup project none", "Forgotten: this channel works on what deckhand.yaml says, sample.")
	if n := w.count(`SELECT count(*) FROM bindings WHERE project <> ''`); n != 0 {
		t.Error("it was not forgotten")
	}
	if got := w.text(`SELECT string_agg(details::json->>'before' || '>' || (details::json->>'project'), ' ' ORDER BY seq) FROM audit WHERE kind = 'bound'`); got != ">other other>sample sample>other other>" {
		t.Errorf("the audit tells of %s", got)
	}
	w.auditIsWhole()
}
