package slackui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/access"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
)

// asks is a modal sent in which a person asks for work.
func (d *desk) asks(user, place, prompt, channel string) *chat.Incoming {
	d.bot.app.screen.c.Access.Places = access.Places{Channels: map[string]string{deskChannel: "web"}}
	values := object{view.AskPrompt: object{view.AskPrompt: object{"type": "plain_text_input", "value": prompt}}}
	if channel != "" {
		values[view.AskChannel] = object{view.AskChannel: object{"type": "conversations_select", "selected_conversation": channel}}
	}
	in, err := d.bot.app.screen.decode(envelope{ID: uuid.NewString(), Type: "interactive", Payload: mustJSON(object{
		"type": "view_submission", "team": object{"id": deskTeam}, "user": object{"id": user, "team_id": deskTeam},
		"view": object{"id": "V1", "callback_id": view.CallbackAsk, "private_metadata": place, "state": object{"values": values}},
	})})
	d.must(err)
	in.Row.ID, _, err = d.store.Receive(context.Background(), in.Row)
	d.must(err)
	return in
}

// A process that is killed after it has posted what somebody asks for leaves it to the
// next: it stands once, and is worked on once.
func TestWhatIsAskedForInAModalIsPostedOnce(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.rest()
		before := d.slack.count("chat.postMessage")
		in := d.asks("ULINUS", `{"channel":"C1","thread":"1.0","ts":"1.0"}`, "mend <it>\n@channel", "")
		in.Row.ReceivedAt = time.Now()
		for range 2 {
			if outcome := d.bot.app.Act(context.Background(), in); outcome != "asked" {
				t.Errorf("it was %s", outcome)
			}
			d.kill()
			d.bot.app.screen.c.Access.Places = access.Places{Channels: map[string]string{deskChannel: "web"}}
			again := *in
			again.Row.ChannelID, again.Row.ThreadTS = "", ""
			in = &again
		}
		d.rest()
		if n := d.slack.count("chat.postMessage") - before; n != 1 {
			t.Errorf("%d posts", n)
		}
		posted := d.slack.inThread(deskThread)
		if text := posted[len(posted)-1].text; text != "<@ULINUS> asks Deckhand: mend &lt;it&gt; @\u200bchannel" {
			t.Errorf("it says %q", text)
		}
		time.Sleep(inbox.HoldFor)
		due, err := d.store.Due(context.Background(), "somebody", 10)
		d.must(err)
		var asked []inbox.Envelope
		for _, e := range due {
			if strings.HasPrefix(e.EventID, "asked/") {
				asked = append(asked, e)
			}
		}
		if len(asked) != 1 || asked[0].UserID != "ULINUS" || asked[0].ThreadTS != deskThread {
			t.Fatalf("in the inbox: %+v", asked)
		}
		m, err := d.bot.app.screen.decode(envelope{ID: asked[0].EventID, Type: "events_api", Payload: asked[0].Payload})
		d.must(err)
		if got := m.Message.Said; got != "mend <it>\n@channel" || m.UserTeam != deskTeam {
			t.Errorf("the message says %q, of %q", got, m.UserTeam)
		}
	})
}

// Whoever may not give work there posts nothing, whatever the modal's metadata say.
func TestWhoMayNotAskInAModal(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.rest()
		before := d.slack.count("chat.postMessage")
		in := d.asks("UMALLORY", `{"channel":"C1","thread":"1.0","ts":"1.0"}`, "say hello", "")
		in.Lasts = true
		if outcome := d.bot.app.Act(context.Background(), in); outcome != "refused" || len(in.Told) != 1 || !strings.HasSuffix(in.Told[0].Sentence, " You wrote:\nsay hello") {
			t.Errorf("it was %s, and told %v", outcome, in.Told)
		}
		d.rest()
		if n := d.slack.count("chat.postMessage") - before; n != 0 {
			t.Errorf("%d posts", n)
		}
	})
}

// A channel that is chosen in a form is no proof that the person is in it: into private ones,
// and into others' direct messages, nobody writes from outside.
func TestWhereNobodyAsksFromOutside(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.rest()
		for _, tt := range []struct{ user, channel, outcome string }{
			{"ULINUS", deskPrivate, "refused"}, {"ULINUS", "DGRACE", "refused"}, {"UGRACE", deskPrivate, "asked"}, {"ULINUS", deskChannel, "asked"},
		} {
			in := d.asks(tt.user, `{}`, "say hello", tt.channel)
			d.bot.app.screen.c.Access.Places = access.Places{Channels: map[string]string{deskChannel: "web", deskPrivate: "web"}, DirectMessages: "web"}
			in.Lasts = true
			if outcome := d.bot.app.Act(context.Background(), in); outcome != tt.outcome {
				t.Errorf("%+v: it was %s, and told %v", tt, outcome, in.Told)
			}
			d.rest()
		}
		// Nor do they about a message that they saw before they left.
		in := d.asks("ULINUS", `{"channel":"`+deskPrivate+`","thread":"1.0","ts":"1.0"}`, "say hello", "")
		if outcome := d.bot.app.Act(context.Background(), in); outcome != "refused" {
			t.Errorf("about a message of a channel that they left: it was %s", outcome)
		}
		d.rest()
		for _, channel := range []string{deskPrivate, "DGRACE", deskChannel, "ULINUS"} {
			posted := strings.Join(d.slack.postedIn(channel), " ")
			want := map[string]string{deskPrivate: "<@UGRACE> asks Deckhand: say hello", deskChannel: "<@ULINUS> asks Deckhand: say hello", "ULINUS": "You wrote:\nsay hello"}[channel]
			if !strings.Contains(posted, want) || want == "" && posted != "" || channel == deskPrivate && strings.Contains(posted, "ULINUS") {
				t.Errorf("in %s: %q, want %q", channel, posted, want)
			}
		}
	})
}

func TestWhatIsWrongInAModal(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		for _, tt := range []struct{ place, prompt, channel, wrong string }{
			{`{}`, "go", deskChannel, ""},
			{`{}`, " \n", deskChannel, "Say what"},
			{`{}`, "go", "C0NOWHERE", "No project belongs to this channel"},
			{`{}`, "go", "", "No project belongs to direct messages"},
			{`{"channel":"C1","thread":"1.0","ts":"1.0"}`, "go", "", ""},
		} {
			wrong := wrongIn(d.bot.app, d.asks("ULINUS", tt.place, tt.prompt, tt.channel))
			if tt.wrong == "" && len(wrong) > 0 || !strings.Contains(wrong[view.AskPrompt]+wrong[view.AskChannel], tt.wrong) {
				t.Errorf("%+v: %v", tt, wrong)
			}
		}
	})
}

// In direct messages of other people nobody is asked to write what could not be answered there.
func TestAShortcutInOthersMessages(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.bot.app.screen.c.Access.Places = access.Places{DirectMessages: "web"}
		for channel, want := range map[string]string{"DULINUS": "asked for more", "DSOMEBODY": "others' messages"} {
			in, err := d.bot.app.screen.decode(envelope{ID: uuid.NewString(), Type: "interactive", Payload: mustJSON(object{
				"type": "message_action", "callback_id": chat.ShortcutAbout, "trigger_id": "t", "team": object{"id": deskTeam}, "user": object{"id": "ULINUS", "team_id": deskTeam},
				"channel": object{"id": channel}, "message": object{"ts": "5.0", "user": "UADA", "text": "look"},
			})})
			d.must(err)
			if got := d.bot.app.Act(context.Background(), in); got != want {
				t.Errorf("%s: %s, want %s", channel, got, want)
			}
		}
		d.rest()
	})
}

// Files that come with a command are not given to anybody, and their person is told so.
func TestFilesWithACommand(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		for _, tt := range []struct {
			text, outcome, want string
			files               []object
		}{
			{"<@UBOT> help", "help", "ULINUS: The file \"a.png\" was not given to the model: “help” is for Deckhand itself.", []object{{"id": "F1", "name": "a.png"}}},
			{"<@UBOT> grants all", "asked back", "ULINUS: The 2 files were not given to the model: “grants” is for Deckhand itself.", []object{{"id": "F1", "name": "a.png"}, {"id": "F2", "name": "b"}}},
			{"<@UBOT> help", "help", "", nil},
		} {
			before := len(d.slack.whispers())
			in, err := d.bot.app.screen.decode(envelope{ID: uuid.NewString(), Type: "events_api", Payload: mustJSON(object{
				"team_id": deskTeam, "event_id": uuid.NewString(), "event": object{"type": "app_mention", "user": "ULINUS", "channel": deskChannel, "text": tt.text, "ts": "9.0", "thread_ts": deskThread, "files": tt.files},
			})})
			d.must(err)
			if got := d.bot.app.Act(context.Background(), in); got != tt.outcome {
				t.Errorf("%s: %s, want %s", tt.text, got, tt.outcome)
			}
			d.rest()
			told := strings.Join(d.slack.whispers()[before:], "\n")
			if tt.want != "" && !strings.Contains(told, tt.want) || tt.want == "" && strings.Contains(told, "not given") {
				t.Errorf("%s: told %s", tt.text, told)
			}
		}
	})
}
