package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// onHomeOf presses a button about the forge on a person's home tab, and returns the window that
// opens, if one does.
func (w *world) onHomeOf(user, action string) (v view) {
	w.t.Helper()
	var home map[string]any
	w.eventually(action+" on the home tab of "+user, func() bool {
		w.must(http.MethodGet, "/_control/home?user="+user, nil, &home)
		return strings.Contains(flatten(home), ":do") && strings.Contains(flatten(home), action)
	})
	shown, _ := home["view"].(map[string]any)
	host := strings.TrimPrefix(w.URL, "http://")
	in := map[string]any{"user": user, "view_id": shown["id"], "action_id": action, "value": host, "block_id": "account:" + host + ":do"}
	if action != "connect" {
		w.must(http.MethodPost, "/_control/actions", in, nil)
		return v
	}
	var raw struct {
		Views []map[string]any `json:"views"`
	}
	w.eventually("a window", func() bool {
		in["expect"] = "view"
		w.must(http.MethodPost, "/_control/actions", in, &raw)
		return len(raw.Views) > 0
	})
	v.ID, _ = raw.Views[0]["id"].(string)
	return v
}

// hears waits until somebody was told something in a direct message.
func (w *world) hears(says string) {
	w.t.Helper()
	w.eventually("somebody to hear "+says, func() bool {
		var out struct{ Calls []map[string]any }
		w.must(http.MethodGet, "/_control/calls?method=chat.postMessage", nil, &out)
		return strings.Contains(flatten(anys(out.Calls)), says)
	})
}

// keeps checks that a secret is neither stored in clear, nor logged, nor sent to Slack.
func (w *world) keeps(secret string) {
	w.t.Helper()
	for _, table := range []string{"inbox", "audit", "outbox", "connections", "approvals", "threads"} {
		if n := w.count(`SELECT count(*) FROM ` + table + ` AS r WHERE r::text LIKE '%` + secret + `%'`); n != 0 {
			w.t.Errorf("%d rows of %s have %s", n, table, secret)
		}
	}
	var sent struct{ Calls []map[string]any }
	w.must(http.MethodGet, "/_control/calls", nil, &sent)
	if strings.Contains(flatten(anys(sent.Calls)), secret) {
		w.t.Errorf("a call to Slack has %s", secret)
	}
	if log, err := os.ReadFile(filepath.Join(w.dir, "bot.log")); err != nil || strings.Contains(string(log), secret) {
		w.t.Errorf("the log has %s, or is not there: %v", secret, err)
	}
}

// TestAPersonActsAtTheForgeAsThemselves: somebody else's account is refused, and one's own is
// connected; the pull request is opened by it; once it is disconnected the bot acts as itself,
// and says for whom. The token is nowhere: not in the sandbox, the log, Slack's calls or the
// database.
func TestAPersonActsAtTheForgeAsThemselves(t *testing.T) {
	t.Parallel()
	w := pullWorld(t)
	w.start()
	enter := func(user, token string) {
		v := w.onHomeOf(user, "connect")
		w.submit(user, v, map[string]any{"token": map[string]any{"token": token}})
	}
	enter(linus, "playground-mallory")
	w.hears("nothing shows that the account mallory")
	enter(linus, "playground-linus")
	w.hears("as linus")

	thread := w.runs(linus, eng, "", "env > said; cat /proc/[0-9]*/environ >> said; git commit -q --allow-empty -m one; true")
	w.done(eng, thread, thread)
	clone := w.text(`SELECT workspace FROM threads ORDER BY id LIMIT 1`)
	if said, err := os.ReadFile(filepath.Join(clone, "said")); err != nil || strings.Contains(string(said), "playground-linus") || strings.Contains(string(said), "DECKHAND_TOKEN_KEY") {
		t.Errorf("the sandbox has the token: %v\n%s", err, said)
	}
	opening := map[string]any{"title": "One", "body": "Text."}
	prompt := w.callsTool(linus, thread, "open_pull_request", opening)
	w.click(ada, eng, w.card(eng, thread).TS, "approve")
	w.done(eng, thread, prompt)
	if by := w.text(`SELECT opened_by FROM pulls`); by != "linus" {
		t.Errorf("it was opened by %s", by)
	}

	enter(grace, "playground-linus")
	w.hears("nothing shows that the account linus")
	enter(grace, "playground-grace")
	w.hears("as grace")
	w.onHomeOf(grace, "disconnect") // ends her own: the button names no person
	w.eventually("hers to be gone", func() bool { return w.count(`SELECT count(*) FROM connections`) == 1 })
	if who := w.text(`SELECT user_id FROM connections`); who != linus {
		t.Fatalf("the connection of %s is left", who)
	}
	w.onHomeOf(linus, "disconnect")
	w.eventually("the connection to be gone", func() bool { return w.count(`SELECT count(*) FROM connections`) == 0 })

	thread = w.runs(linus, eng, "", "git commit -q --allow-empty -m two; true")
	w.done(eng, thread, thread)
	prompt = w.callsTool(linus, thread, "open_pull_request", opening)
	w.click(ada, eng, w.card(eng, thread).TS, "approve")
	w.done(eng, thread, prompt)
	w.pull(thread, "Opened by deckhand for")
	if got := w.text(`SELECT string_agg(details::json->>'act', ' ' ORDER BY seq) FROM audit WHERE kind = 'account'`); got != "connected connected disconnected disconnected" {
		t.Errorf("the audit has %s", got)
	}
	w.keeps("playground-linus")
}
