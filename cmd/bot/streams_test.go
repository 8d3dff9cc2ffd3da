package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// sentCall is a call that Slack has answered well.
type sentCall struct {
	Seq    int            `json:"seq"`
	Method string         `json:"method"`
	Args   map[string]any `json:"args"`
	Answer struct {
		OK bool   `json:"ok"`
		TS string `json:"ts"`
	} `json:"answer"`
}

// calls are those that Slack has answered well since one, and the number of the last.
func (w *world) calls(since int) (out []sentCall, seq int) {
	w.t.Helper()
	var got struct {
		Calls []sentCall `json:"calls"`
		Seq   int        `json:"seq"`
	}
	w.must(http.MethodGet, "/_control/calls?"+url.Values{"since": {fmt.Sprint(since)}}.Encode(), nil, &got)
	return slices.DeleteFunc(got.Calls, func(c sentCall) bool { return !c.Answer.OK }), got.Seq
}

// about reports whether a call begins a message as a stream in a thread, or is about the message.
func (c sentCall) about(thread, ts string) bool {
	return c.Args["ts"] == ts || c.Method == "chat.startStream" && c.Args["thread_ts"] == thread
}

// streamsAndEdits: while two threads grow by edits, a third begins as a native stream: edits
// would come more rarely than every three seconds. It ends as edits show it, and is marked
// then. A bot that is killed in the middle of one leaves nothing that looks as if it were
// written: the next one ends it, and answers once.
func (w *world) streamsAndEdits() {
	w.t.Helper()
	long := "@deckhand go\nslow: 15\nsay: " + strings.Repeat("A line of a long report. ", 200)
	var busy []string
	for range 2 {
		busy = append(busy, w.post(linus, eng, "", long))
	}
	for _, thread := range busy {
		w.says(eng, thread, "A line of a long report.")
	}
	_, since := w.calls(0)
	words := "Here it begins. " + strings.Repeat("It goes on for a while. ", 8) + "That is all of it."
	thread := w.post(linus, eng, "", "@deckhand go\nslow: 30\nsay: "+words)
	w.done(eng, thread, thread)
	answer := w.says(eng, thread, "That is all of it.")
	w.wasStream(since, thread, answer)
	text := markdownOf(w, answer)
	if text != words || strings.Contains(answer.all(), ":stream:") || answer.has("stop") {
		w.t.Errorf("the stream ended as %q: %s", text, answer.all())
	}

	_, since = w.calls(0)
	prompt := w.post(linus, eng, thread, "slow: 30\nsay: It begins again. "+strings.Repeat("It goes on for a while. ", 10)+"That is the end of it.")
	var torn string
	w.eventually("a stream to begin", func() bool {
		calls, _ := w.calls(since)
		i := slices.IndexFunc(calls, func(c sentCall) bool { return c.about(thread, "") })
		if i >= 0 {
			torn = calls[i].Answer.TS
		}
		return i >= 0
	})
	bot := w.PIDs["bot"]
	if err := syscall.Kill(bot, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	w.renewed("bot", bot)
	for _, busy := range busy {
		w.find(eng, busy, "the long report to be told of the restart", func(m message) bool { return strings.Contains(m.all(), "restarted here") })
		below := w.find(eng, busy, "the long report to go on", func(m message) bool { return m.has("stop") })
		w.click(linus, eng, below.TS, "stop")
	}
	w.done(eng, thread, prompt)
	said := 0
	for _, m := range w.messages(eng, thread) {
		switch {
		case m.User != w.BotUser:
			continue
		case m.TS == torn && !strings.Contains(m.all(), "restarted here"):
			w.t.Errorf("what was a stream does not say that it goes on below: %s", m.all())
		case m.has("stop"), strings.Contains(m.all(), ":stream:"), strings.Contains(m.all(), "Working…"):
			w.t.Errorf("a message stands as if it were written: %s", m.all())
		}
		if strings.Contains(m.all(), "That is the end of it.") {
			said++
		}
	}
	if said != 1 {
		w.t.Errorf("the answer was given %d times", said)
	}
}

// wasStream fails unless an answer was begun, prolonged and ended as a stream, and its prompt
// marked after its text was there.
func (w *world) wasStream(since int, thread string, answer message) {
	w.t.Helper()
	calls, _ := w.calls(since)
	seen := map[string]int{}
	text, mark := 0, 0
	for _, c := range calls {
		all, err := json.Marshal(c.Args)
		if err != nil {
			w.t.Fatal(err)
		}
		if c.about(thread, answer.TS) {
			seen[c.Method]++
			if text == 0 && strings.Contains(string(all), "That is all of it.") {
				text = c.Seq
			}
		}
		if c.Method == "reactions.add" && c.Args["timestamp"] == thread && c.Args["name"] == "white_check_mark" {
			mark = c.Seq
		}
	}
	if seen["chat.startStream"] != 1 || seen["chat.appendStream"] == 0 || seen["chat.stopStream"] != 1 || seen["chat.update"] == 0 {
		w.t.Errorf("the answer was shown by %v; want a stream that begins, grows, ends, and is edited", seen)
	}
	if text == 0 || mark < text {
		w.t.Errorf("the prompt was marked by call %d, and the text is that of call %d", mark, text)
	}
}

// markdownOf is the text of a message's markdown blocks.
func markdownOf(w *world, m message) (out string) {
	w.t.Helper()
	var blocks []struct {
		Type string `json:"type"`
		Text any    `json:"text"`
	}
	if err := json.Unmarshal(m.Blocks, &blocks); err != nil {
		w.t.Fatal(err)
	}
	for _, b := range blocks {
		if text, ok := b.Text.(string); ok && b.Type == "markdown" {
			out += text
		}
	}
	return strings.TrimSpace(out)
}
