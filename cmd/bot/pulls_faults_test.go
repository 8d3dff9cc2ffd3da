package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// forgeFault has the next call of the demo's forge that fits fail.
func (w *world) forgeFault(x map[string]any) {
	w.t.Helper()
	x["times"] = 1
	w.must(http.MethodPost, "/_control/forge/faults", []any{x}, nil)
}

// diesAtTheForge kills the bot while it waits for that call, and has another go on.
func (w *world) diesAtTheForge() {
	w.t.Helper()
	w.eventually("the forge to be asked", func() bool {
		var list []struct{ Seen int }
		w.must(http.MethodGet, "/_control/forge/faults", nil, &list)
		return len(list) == 1 && list[0].Seen == 1
	})
	old := w.PIDs["bot"]
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	w.must(http.MethodDelete, "/_control/forge/faults", nil, nil)
	w.renewed("bot", old)
}

// committed is a thread of linus' with a commit.
func (w *world) committed(command string) (thread string) {
	w.t.Helper()
	thread = w.runs(linus, eng, "", command+"; git add -A; git commit -q --allow-empty -m 'Some work'; true")
	w.done(eng, thread, thread)
	return thread
}

// approves has ada allow the next card of a thread, in two steps if it takes two.
func (w *world) approves(thread string) message {
	w.t.Helper()
	card := w.card(eng, thread)
	w.click(ada, eng, card.TS, "approve")
	return card
}

func (w *world) approvesMerge(thread string) {
	w.t.Helper()
	v, _ := w.opens(ada, eng, w.card(eng, thread).TS, "approve")
	w.submit(ada, v, map[string]any{"read": map[string]any{"read": []string{"yes"}}})
}

func (w *world) forgePulls() (n int) {
	w.t.Helper()
	var list []any
	w.must(http.MethodGet, "/_control/forge/pulls", nil, &list)
	return len(list)
}

// TestTheBotDiesAtTheForge: between push and pull request, between pull request and its record,
// and between merge and its record. Nothing is doubled or lost, the thread goes on and ends, and
// one message of the pull request says how it is.
func TestTheBotDiesAtTheForge(t *testing.T) {
	t.Parallel()
	w := pullWorld(t)
	w.start()
	opening := map[string]any{"title": "Some work", "body": "Text.", "draft": false}
	posts := func(thread string) (n int) {
		for _, m := range w.messages(eng, thread) {
			if strings.Contains(string(m.Blocks), `"pull:`) {
				n++
			}
		}
		return n
	}
	one := w.committed("echo one > one.txt")
	w.forgeFault(map[string]any{"method": "POST", "path": "/boathouse/pulls", "delay": "1h"})
	prompt := w.callsTool(linus, one, "open_pull_request", opening)
	card := w.approves(one)
	w.diesAtTheForge()
	if n := w.forgePulls(); n != 0 || !strings.Contains(w.forgeRefs(), "refs/heads/deckhand/1") {
		t.Fatalf("%d pull requests, and\n%s", n, w.forgeRefs())
	}
	w.askedAgain(one, card, prompt)
	w.pull(one, "no checks yet")

	two := w.committed("echo two > two.txt")
	w.forgeFault(map[string]any{"method": "POST", "path": "/boathouse/pulls", "delay": "1h", "after": true})
	prompt = w.callsTool(linus, two, "open_pull_request", opening)
	card = w.approves(two)
	w.diesAtTheForge()
	w.pull(two, "no checks yet") // before anybody is asked again
	w.askedAgain(two, card, prompt)

	head := w.text(`SELECT head FROM pulls WHERE number = 1`)
	w.forgeFault(map[string]any{"method": "POST", "path": "/pulls/1/merge", "delay": "1h", "after": true})
	prompt = w.callsTool(linus, one, "merge_pull_request", map[string]any{"head": head, "method": "merge"})
	w.approvesMerge(one)
	w.diesAtTheForge()
	w.pull(one, "Merged")
	w.done(eng, one, prompt)

	if n := w.forgePulls(); n != 2 || w.count(`SELECT count(*) FROM pulls`) != 2 || posts(one) != 1 || posts(two) != 1 {
		t.Errorf("%d pull requests, %d rows, %d and %d posts", n, w.count(`SELECT count(*) FROM pulls`), posts(one), posts(two))
	}
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'pull' AND details::json->>'act' = 'merged' AND approval_id <> ''`); n != 1 {
		t.Errorf("%d merges by an approval", n)
	}
	if got := w.text(`SELECT string_agg(number || ' ' || state || ' ' || requester, ', ' ORDER BY number) FROM pulls`); got != "1 merged U0LINUS, 2 open U0LINUS" {
		t.Error(got)
	}
	w.auditIsWhole()
}

// askedAgain waits until a call that was cut off has been made again, which people may have to
// allow again, and the prompt is done.
func (w *world) askedAgain(thread string, card message, prompt string) {
	w.t.Helper()
	w.find(eng, thread, "the prompt to be done", func(m message) bool {
		if m.TS != card.TS && m.TS > prompt && m.has("approve") {
			w.click(ada, eng, m.TS, "approve")
		}
		if m.TS == card.TS && m.has("approve") {
			w.click(ada, eng, m.TS, "approve")
		}
		return m.TS == prompt && m.reacted("white_check_mark")
	})
}

// TestPeopleWithoutTheRight: a merge, by the button, by the card and by the model's own call, and
// *Address these* are refused to those who may not, who are told why; two threads that change the
// same line both open, one merges, and the other's session mends the conflict and merges, too.
func TestPeopleWithoutTheRight(t *testing.T) {
	t.Parallel()
	w := pullWorld(t)
	w.start()
	one, two := w.committed("echo one > same.txt"), w.committed("echo two > same.txt")
	opening := map[string]any{"title": "Some work", "body": "Text.", "draft": false}
	for _, thread := range []string{one, two} {
		prompt := w.callsTool(linus, thread, "open_pull_request", opening)
		w.approves(thread)
		w.done(eng, thread, prompt)
	}
	head := func(n int) string { return w.text(fmt.Sprintf(`SELECT head FROM pulls WHERE number = %d`, n)) }
	post := w.pull(one, "no checks yet")
	w.click(linus, eng, post.TS, "pull_merge")
	w.told(linus, eng, one, "approve")
	w.click(mallory, eng, post.TS, "pull_merge")
	w.told(mallory, eng, one, "")
	prompt := w.callsTool(linus, one, "merge_pull_request", map[string]any{"head": head(1), "method": "merge"})
	card := w.card(eng, one)
	before := len(w.messages(eng, one))
	w.click(linus, eng, card.TS, "approve")
	w.eventually("linus to be refused on the card", func() bool { return len(w.messages(eng, one)) > before })
	if strings.Contains(w.forgeRefs(), "refs/heads/main Merge") {
		t.Fatal("it is merged by somebody who may not")
	}
	w.approvesMerge(one)
	w.done(eng, one, prompt)
	w.pull(one, "Merged")

	post = w.pull(two, "conflicts with")
	w.must(http.MethodPost, "/_control/actions", map[string]any{"user": mallory, "channel": eng, "message_ts": post.TS, "action_id": "pull_address"}, nil)
	w.told(mallory, eng, two, "")
	prompts := w.count(`SELECT count(*) FROM inbox WHERE prompt LIKE '%pressed Address these%'`)
	if prompts != 0 {
		t.Error("a stranger's press became a prompt")
	}
	prompt = w.callsTool(linus, two, "merge_pull_request", map[string]any{"head": head(2), "method": "merge"})
	w.done(eng, two, prompt) // nobody was asked
	prompt = w.runs(linus, eng, two, "git fetch -q origin && git merge -q -X ours -m 'Take in main' origin/main")
	w.done(eng, two, prompt)
	prompt = w.callsTool(linus, two, "open_pull_request", opening)
	w.approves(two)
	w.done(eng, two, prompt)
	prompt = w.callsTool(linus, two, "merge_pull_request", map[string]any{"head": head(2), "method": "merge"})
	w.approvesMerge(two)
	w.done(eng, two, prompt)
	w.pull(two, "Merged")
	w.auditIsWhole()
}

// TestALargePullRequestOfAStranger: 5,000 files and a binary one are shown by a card and pushed;
// names that call people call nobody; the forge's token is in no file, variable or process of the
// sandbox, and in no log and no call of Slack's.
func TestALargePullRequestOfAStranger(t *testing.T) {
	t.Parallel()
	w := pullWorld(t)
	w.start()
	const evil = "<!channel> @here *bold* <@U0ADA> \u202e"
	thread := w.committed("mkdir many; for i in $(seq 5000); do echo $i > many/$i; done; head -c 300000 /dev/urandom > blob.bin; echo x > '<!here>.txt'")
	prompt := w.callsTool(linus, thread, "open_pull_request", map[string]any{"title": evil + strings.Repeat("x", 1500), "body": evil})
	card := w.approves(thread)
	if !strings.Contains(card.all(), "more") {
		t.Errorf("the card does not say that it leaves files out:\n%s", card.all())
	}
	w.done(eng, thread, prompt)
	w.forge("checks", map[string]any{"branch": w.branch(), "name": evil, "state": "failure", "summary": evil})
	post := w.pull(thread, "1 check has failed")
	for _, m := range []message{card, post} {
		marked := m.Text // and what Slack reads as its markup
		for _, one := range regexp.MustCompile(`"text":"((?:[^"\\\\]|\\\\.)*)","type":"mrkdwn"`).FindAllStringSubmatch(string(m.Blocks), -1) {
			marked += "\n" + strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(one[1])
		}
		for _, word := range []string{"<!channel>", "<!here>", "<@U0ADA>", "\u202e", " @here"} {
			if strings.Contains(marked, word) {
				t.Errorf("%q is in a message:\n%s", word, marked)
			}
		}
		if !strings.Contains(marked, "!channel") {
			t.Errorf("what was looked for is not there:\n%s", marked)
		}
	}
	prompt = w.runs(linus, eng, thread, "(git config --list --show-origin; env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; grep -rIs playground-deckhand . .git $HOME /tmp /etc /run /var) > said 2>/dev/null; true")
	w.done(eng, thread, prompt)
	said, err := os.ReadFile(filepath.Join(w.text(`SELECT workspace FROM threads ORDER BY id LIMIT 1`), "said"))
	if err != nil || !strings.Contains(string(said), "author.name") || !strings.Contains(string(said), "git.invalid") {
		t.Fatalf("what was looked for is not there: %v", err)
	}
	sent, _ := w.calls(0)
	calls, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(w.dir, "bot.log"))
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"the sandbox": strings.ReplaceAll(string(said), "grep -rIs playground-deckhand", ""), "Slack's calls": strings.ReplaceAll(string(calls), "grep -rIs playground-deckhand", ""), "the log": string(log)} {
		if i := strings.Index(text, "playground-deckhand"); i >= 0 {
			t.Errorf("the token is in %s: %.200q", where, text[max(0, i-80):])
		}
	}
}
