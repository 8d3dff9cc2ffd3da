package publish_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"deckhand/internal/agent/claude"
	playground "deckhand/internal/playground/slack"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
)

// plain is what people read of a message: its texts and the titles of its tasks, without
// blanks.
func plain(m slack.Message) (out string) {
	for _, b := range m.Blocks.BlockSet {
		switch b := b.(type) {
		case *slack.MarkdownBlock:
			out += b.Text
		case *slack.ContextBlock:
			out += b.ContextElements.Elements[0].(*slack.TextBlockObject).Text
		case *slack.TaskCardBlock:
			out += "[" + b.Title + "]"
		case *slack.ActionBlock:
			out += "<" + b.ID() + ">"
		}
	}
	return strings.Join(strings.Fields(out), "")
}

// shownAs is what a thread has when edits show a turn's last state.
func (a *actor) shownAs() (out []string) {
	for _, m := range a.messages() {
		out = append(out, plain(slack.Message{Msg: slack.Msg{Blocks: slack.Blocks{BlockSet: m.Page.Blocks}}}))
	}
	return out
}

func (w *town) stands(a *actor) (out []string) {
	for _, m := range w.replies(a.turn.Thread.ChannelID, a.root) {
		out = append(out, plain(m))
	}
	return out
}

// open fails if something stands in Slack as if it were being written.
func (w *town) stopped(a *actor) {
	w.t.Helper()
	for _, m := range w.replies(a.turn.Thread.ChannelID, a.root) {
		if _, _, err := w.api.AppendStreamContext(w.t.Context(), a.turn.Thread.ChannelID, m.Timestamp, slack.MsgOptionMarkdownText("x")); !publish.IsOver(err) {
			w.t.Errorf("the message %s is still a stream: %v", m.Timestamp, err)
		}
	}
}

func TestAMessageIsAStreamAndThenAsEditsShowIt(t *testing.T) {
	t.Parallel()
	inTown(t, publish.Options{}, func(w *town) {
		defer w.busy()()
		a := w.actor(playground.ChannelEngineering, w.thread(playground.ChannelEngineering))
		a.write("Let me look. ")
		a.show()
		time.Sleep(3 * time.Second)
		a.use(claude.ToolRunning)
		a.show()
		time.Sleep(3 * time.Second)
		a.use(claude.ToolDone)
		a.write("```go\nfunc f() {\n")
		a.show()
		time.Sleep(3 * time.Second)
		if diff := cmp.Diff([]string{"<turn:" + fmt.Sprint(a.turn.ID) + ":stream:0>Letmelook.[Bashgotest./...<\u200b!channel>]```gofuncf(){"}, w.stands(a)); diff != "" {
			t.Error(diff)
		}
		a.write("}\n```\n")
		end := time.Now()
		a.end()
		time.Sleep(3 * time.Second) // the edit that tidies up waits for its share
		if diff := cmp.Diff(a.shownAs(), w.stands(a)); diff != "" {
			t.Error(diff, time.Since(end))
		}
		if got := w.replies(a.turn.Thread.ChannelID, a.root)[0].Metadata.EventType; got != "deckhand_turn" {
			t.Errorf("metadata of %q", got)
		}
		w.stopped(a)
	})
}

// TestStreamsEndBeforeSlackEndsThem has turns that last long, rest long and say much.
func TestStreamsEndBeforeSlackEndsThem(t *testing.T) {
	t.Parallel()
	inTown(t, publish.Options{}, func(w *town) {
		defer w.busy()()
		r := rand.New(rand.NewPCG(1, 1))
		var all []*actor
		for range 4 {
			a := w.actor(playground.ChannelEngineering, w.thread(playground.ChannelEngineering))
			a.write(sentence(r))
			a.show()
			all = append(all, a)
			time.Sleep(4 * time.Second)
		}
		talks, works, rests, wordy := all[0], all[1], all[2], all[3]
		works.use(claude.ToolRunning)
		works.show()
		for i := range 125 {
			talks.write(sentence(r))
			talks.show()
			if i < 40 {
				wordy.write(strings.Repeat("漢字", 50) + "。\n")
				wordy.show()
			}
			time.Sleep(2 * time.Second)
		}
		for _, a := range []*actor{works, rests, wordy, talks} {
			a.end()
			time.Sleep(5 * time.Second)
			if diff := cmp.Diff(a.shownAs(), w.stands(a)); diff != "" {
				t.Error(diff)
			}
			w.stopped(a)
		}
		n := w.count()
		if n[publish.StartStream] < 4 || n[publish.StopStream] < 4 {
			t.Errorf("calls %v, want every turn to begin as a stream", n)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, x := range w.answers {
			if x.method != publish.UpdateMessage && x.err != "" && x.args.Get("markdown_text") == "" {
				t.Errorf("%s: %s", x.method, x.err)
			}
		}
	})
}

func TestWhereSlackHasNoStreamsMessagesAreEdited(t *testing.T) {
	t.Parallel()
	for code, tries := range map[string]int{"unknown_method": 1, "missing_scope": 1, "channel_type_not_supported": 2, "user_not_found": 4, "ratelimited": 4} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			inTown(t, publish.Options{}, func(w *town) {
				defer w.busy()()
				asked := 0
				w.mu.Lock()
				w.trouble = func(m publish.Method, _ url.Values) (bad trouble) {
					if m == publish.StartStream {
						asked++
						bad.refused = code
					}
					return bad
				}
				w.mu.Unlock()
				for i := range 4 {
					channel := []string{playground.ChannelEngineering, playground.ChannelGeneral}[i%2]
					a := w.actor(channel, w.thread(channel))
					a.write("Hello there. ")
					shown := time.Now()
					a.show()
					time.Sleep(time.Second)
					if diff := cmp.Diff(a.shownAs(), w.stands(a)); diff != "" {
						t.Error(diff, time.Since(shown))
					}
					time.Sleep(70 * time.Second)
					a.end()
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if asked != tries {
					t.Errorf("asked %d times, want %d", asked, tries)
				}
			})
		})
	}
}

// TestAnotherProcessEndsAStream kills the scheduler while a stream is open, before and after
// it has told where it stands.
func TestAnotherProcessEndsAStream(t *testing.T) {
	t.Parallel()
	inTown(t, publish.Options{}, func(w *town) {
		stop := w.busy()
		a := w.actor(playground.ChannelEngineering, w.thread(playground.ChannelEngineering))
		a.write("I begin. ")
		a.show()
		time.Sleep(3 * time.Second)
		stop()
		w.mu.Lock()
		w.trouble = func(publish.Method, url.Values) trouble { return trouble{before: true} } // it is cut off
		w.mu.Unlock()
		_ = w.close()
		w.mu.Lock()
		w.trouble = nil
		w.mu.Unlock()
		w.open(publish.Options{})
		a.turn.StartedAt = a.turn.StartedAt.Add(1) // another key
		ts := w.replies(a.turn.Thread.ChannelID, a.root)[0].Timestamp
		a.write("And I end. ")
		a.use(claude.ToolDone)
		a.turn.State = "done"
		ended := make(chan error, 1)
		for _, m := range a.messages() {
			m.Key, m.TS, m.OnEnd = "word/1", ts, func(err error) { ended <- err }
			w.Show(m)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(a.shownAs(), w.stands(a)); diff != "" {
			t.Error(diff)
		}
		w.stopped(a)
	})
}

func TestNothingIsLeftStreamingWhenTheBotStops(t *testing.T) {
	t.Parallel()
	inTown(t, publish.Options{}, func(w *town) {
		stop := w.busy()
		a := w.actor(playground.ChannelEngineering, w.thread(playground.ChannelEngineering))
		a.write("I begin. ")
		a.show()
		time.Sleep(3 * time.Second)
		stop()
		if err := w.close(); err != nil {
			t.Error(err)
		}
		w.stopped(a)
		w.open(publish.Options{})
	})
}

// isPrefix fails if a message that is a stream does not begin as its page does.
func (a *actor) isPrefix(n int, m slack.Message) {
	a.w.t.Helper()
	pages := a.messages()
	if len(m.Blocks.BlockSet) == 0 || !strings.Contains(m.Blocks.BlockSet[0].ID(), ":stream:") || n >= len(pages) || pages[n].Page.Stream == nil {
		return
	}
	var has, want string
	for _, b := range m.Blocks.BlockSet {
		if text, ok := b.(*slack.MarkdownBlock); ok {
			has += text.Text
		}
	}
	for _, p := range pages[n].Page.Stream.Pieces {
		want += p.Text
	}
	if has = strings.TrimSuffix(has, "\n```"); !strings.HasPrefix(want, has) {
		a.w.t.Errorf("the stream has %q, and the page %q", has, want)
	}
}

// storyOf has a turn say what bytes tell, in pieces, while Slack loses calls and answers.
func storyOf(t *testing.T, program []byte) {
	t.Helper()
	pieces := []string{
		"one. ", "two ", "three!\n", "```\ncode\n", "```\n", "| a | b |\n|---|---|\n", "<!chan", "nel> ", "<@U0", "LINUS> ", "`a. b", "` ", "漢字。",
		"[x. y](https://a.example", "/b) ", "\n\n", "- item. ", "&lt;!here> ", "**bold. ", "text** ", "~~~\n", "word word word word. ", "👩‍👩‍👧. ", "\\", "@here. ",
	}
	inTown(t, publish.Options{}, func(w *town) {
		stop := w.busy()
		a := w.actor(playground.ChannelEngineering, w.thread(playground.ChannelEngineering))
		root := a.root
		at := 0
		w.mu.Lock()
		w.trouble = func(m publish.Method, args url.Values) (bad trouble) {
			if args.Get("thread_ts") == "" && args.Get("ts") == "" || len(program) == 0 || strings.HasPrefix(string(m), "conversations") {
				return bad
			}
			at++
			switch b := program[at*7%len(program)]; {
			case m == publish.PostMessage, m == publish.StartStream: // who is looked for has other tests
			case b%16 == 3:
				bad.lost = true
			case b%16 == 5:
				bad.before = true
			case b%32 == 9:
				bad.refused = "message_not_in_streaming_state"
				if m == publish.UpdateMessage {
					bad.refused = "internal_error"
				}
			}
			return bad
		}
		w.mu.Unlock()
		for i, b := range program {
			switch {
			case b < 12:
				a.use(claude.ToolRunning)
			case b < 24:
				a.use(claude.ToolDone)
			default:
				a.write(pieces[int(b)%len(pieces)])
			}
			a.show()
			time.Sleep(time.Duration(100+int(b)*20) * time.Millisecond)
			if i%8 != 7 {
				continue
			}
			for n, m := range w.replies(playground.ChannelEngineering, root) {
				a.isPrefix(n, m)
				for _, b := range m.Blocks.BlockSet {
					if text, ok := b.(*slack.MarkdownBlock); ok && len(mrkdwntest.Live(text.Text)) > 0 {
						t.Errorf("%q: %v", text.Text, mrkdwntest.Live(text.Text))
					}
				}
			}
		}
		a.end()
		stop()
		time.Sleep(2 * time.Minute)
		w.rest()
		w.mu.Lock()
		w.trouble = nil
		w.mu.Unlock()
		if diff := cmp.Diff(a.shownAs(), w.stands(a)); diff != "" {
			t.Errorf("%q: %s", program, diff)
		}
		w.stopped(a)
	})
}

func TestStreamsAndEditsShowTheSame(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 6 {
		program := make([]byte, 20+r.IntN(80))
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		storyOf(t, program)
	}
}

// FuzzStreams looks for a rune lost or doubled, a live mention, and what stands unfinished.
func FuzzStreams(f *testing.F) {
	f.Add([]byte("a stream that begins, grows and ends"))
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 150 {
			t.Skip()
		}
		storyOf(t, program)
	})
}
