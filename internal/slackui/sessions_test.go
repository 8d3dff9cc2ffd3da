package slackui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/threads"
)

// told is what Slack was told of the thread's session, and of what is being done: each
// change once.
func (s *scripted) told() (statuses, lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		switch status := c.args.Get("status"); c.method {
		case "agents.sessions.setStatus":
			statuses = append(statuses, status)
		case "assistant.threads.setStatus":
			lines = append(lines, status)
		}
	}
	return slices.Compact(statuses), slices.Compact(lines)
}

func (d *desk) wantTold(statuses, lines string) {
	d.t.Helper()
	d.rest()
	gotStatuses, gotLines := d.slack.told()
	if got := strings.Join(gotStatuses, " "); got != statuses {
		d.t.Errorf("the session was %q, want %q", got, statuses)
	}
	if got := strings.Join(gotLines, " / "); got != lines {
		d.t.Errorf("the line was %q, want %q", got, lines)
	}
}

func reading(file string) claude.Item {
	return claude.Item{Kind: claude.ItemToolUse, Tool: &claude.ToolUse{Name: "Read", State: claude.ToolRunning, Input: []byte(`{"file_path":"/w/` + file + `"}`)}}
}

// A thread's session follows its turn: at work, suspended while somebody has to decide,
// and at rest when the turn has ended, however it has.
func TestASessionFollowsItsTurn(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.add(reading("auth.go"))
		time.Sleep(2 * time.Second)
		a := d.ask("", approvals.Terms{Approvers: []string{"UGRACE"}})
		time.Sleep(2 * time.Second)
		d.click("UGRACE", view.ActionApprove, a)
		d.turn.Waiting = 0
		d.turn.Content.Items[0].Tool = &claude.ToolUse{Name: "Read", State: claude.ToolDone}
		d.say("It is")
		time.Sleep(5 * time.Minute) // longer than Slack keeps a line
		d.end(agent.TurnDone, "")
		d.wantTold("processing suspended processing active", "is reading auth.go / waits for ugrace’s approval / is writing / ")
		if n := d.slack.count("assistant.threads.setStatus"); n < 6 || n > 12 {
			t.Errorf("%d calls for the line; it is shown again every 100 s and after a post", n)
		}
		d.begin()
		d.add(reading("b.go"))
		d.rest()
		d.turn.Parked = true
		d.show()
		d.wantTold("processing suspended processing active processing suspended", "is reading auth.go / waits for ugrace’s approval / is writing /  / is reading b.go / ")
	})
}

// What a process leaves that is killed, the next one ends.
func TestASessionEndsAfterAKill(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.add(reading("auth.go"))
		d.rest()
		d.turn.State, d.turn.EndedAt = agent.TurnDone, time.Now()
		d.commit()
		d.kill()
		d.over()
		d.wantTold("processing active", "is reading auth.go / ")
	})
}

// A workspace that has neither is asked once, and hears nothing more of it for hours; one
// that refuses for one thread is asked for others.
func TestAWorkspaceWithoutSessions(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{"unknown_method": 1, "missing_scope": 1, "feature_not_enabled": 1, "channel_not_found": 3} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				d.slack.answers(func(_ int, c slackCall) fault {
					if strings.HasSuffix(c.method, ".setStatus") {
						return fault{err: &slack.SlackErrorResponse{Err: code}}
					}
					return fault{}
				})
				d.add(reading("auth.go"))
				d.rest()
				d.end(agent.TurnDone, "")
				d.rest()
				d.begin()
				d.add(reading("auth.go"))
				d.rest()
				for _, method := range []string{"agents.sessions.setStatus", "assistant.threads.setStatus"} {
					if n := d.slack.count(method); n != want && (want == 1 || n < want) {
						t.Errorf("%d calls of %s, want %d", n, method, want)
					}
				}
				for _, p := range d.wrong() {
					t.Error(p)
				}
			})
		})
	}
}

// Who opens the messages with the bot is offered what they may say there, and who may say
// nothing is offered nothing.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		opens := func(user string) string {
			in, err := d.bot.app.screen.decode(envelope{ID: uuid.NewString(), Type: "events_api", Payload: mustJSON(object{
				"team_id": deskTeam, "event_id": uuid.NewString(), "event": object{"type": "app_home_opened", "user": user, "channel": "D" + user, "tab": "messages"},
			})})
			d.must(err)
			outcome := d.bot.app.Act(context.Background(), in)
			d.rest()
			calls := d.slack.count("assistant.threads.setSuggestedPrompts")
			if calls == 0 {
				return outcome
			}
			last := ""
			for _, c := range d.slack.calls {
				if c.method == "assistant.threads.setSuggestedPrompts" {
					last = c.args.Get("title") + c.args.Get("prompts")
				}
			}
			return last
		}
		if got := opens("UMALLORY"); got != "nothing to suggest" {
			t.Errorf("Mallory: %s", got)
		}
		if got := opens("ULINUS"); strings.Contains(got, "Explain") || !strings.Contains(got, "costs this month for me") {
			t.Errorf("without a project: %s", got)
		}
		d.bot.app.screen.c.Access.Places.DirectMessages = "web"
		if got := opens("ULINUS"); !strings.Contains(got, "What should Deckhand do in web?") || !strings.Contains(got, "Explain") {
			t.Errorf("with a project: %s", got)
		}
	})
}

// Where a channel wants a mention a reply without one is nobody's business, but for the
// words that people need when a button fails.
func TestRepliesThatTakeAMention(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		for _, tt := range []struct {
			text     string
			all, own bool // it is for us where replies are all, or mention
		}{
			{"and the other test?", true, false},
			{"<@UBOT> and the other test?", true, true},
			{"<@UADA> look", false, false},
			{"stop", true, true},
			{"approve AB2DE", true, true},
			{"costs", true, false},
		} {
			for mention, want := range map[bool]bool{false: tt.all, true: tt.own} {
				d.bot.app.screen.c.Access.Places.Mention = map[string]bool{deskChannel: mention}
				in, err := d.bot.app.screen.decode(envelope{ID: uuid.NewString(), Type: "events_api", Payload: mustJSON(object{
					"team_id": deskTeam, "event_id": uuid.NewString(), "event": object{"type": "message", "user": "ULINUS", "channel": deskChannel, "text": tt.text, "ts": "9.0", "thread_ts": deskThread},
				})})
				d.must(err)
				before := len(d.store.Prompts())
				d.deliver(in)
				d.bot.app.Wait()
				if got := len(d.store.Prompts()) > before; got != want {
					t.Errorf("%q, mention %t: %t", tt.text, mention, got)
				}
			}
		}
	})
}

// Where there are no sessions a thread of direct messages gets its title by itself, once; in
// a channel nobody would see it.
func TestTitlesWithoutSessions(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		ctx, direct := context.Background(), threads.ThreadKey{TeamID: deskTeam, ChannelID: "DULINUS", ThreadTS: "7.0"}
		id, _, err := d.store.Receive(ctx, inbox.Envelope{EventID: uuid.NewString(), Kind: inbox.Message, TeamID: deskTeam, ChannelID: direct.ChannelID, TS: "7.0", ThreadTS: "7.0", UserID: "ULINUS", Payload: []byte(`{}`)})
		d.must(err)
		_, _, err = d.store.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: direct, Project: "web", UserID: "ULINUS", UUID: uuid.NewString(), Text: "go", Title: "The failing test"})
		d.must(err)
		d.slack.answers(func(_ int, c slackCall) fault {
			if c.method == "agents.sessions.setStatus" {
				return fault{err: &slack.SlackErrorResponse{Err: "not_authorized"}}
			}
			return fault{}
		})
		turn := func(k threads.ThreadKey, state agent.TurnState) {
			d.bot.app.screen.sessions.show(agent.TurnView{ID: 9, Thread: k, State: state, RequestedBy: "ULINUS", StartedAt: time.Now()})
			d.rest()
		}
		turn(direct, agent.TurnRunning) // the refusal tells
		turn(direct, agent.TurnDone)
		turn(direct, agent.TurnRunning)
		turn(d.turn.Thread, agent.TurnRunning)
		var titles []string
		for _, c := range d.slack.calls {
			if c.method == "assistant.threads.setTitle" {
				titles = append(titles, c.args.Get("channel_id")+" "+c.args.Get("thread_ts")+" "+c.args.Get("title"))
			}
		}
		if got := strings.Join(titles, "; "); got != "DULINUS 7.0 The failing test" {
			t.Errorf("titles: %s", got)
		}
	})
}

// Who begins a thread beside what they look at is offered the same as in the messages.
func TestSuggestionsOfANewThread(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		in, err := d.bot.app.screen.decode(envelope{ID: uuid.NewString(), Type: "events_api", Payload: mustJSON(object{
			"team_id": deskTeam, "event_id": uuid.NewString(), "event": object{"type": "assistant_thread_started", "assistant_thread": object{
				"user_id": "ULINUS", "channel_id": "DULINUS", "thread_ts": "8.0", "context": object{"channel_id": deskChannel},
			}},
		})})
		d.must(err)
		if outcome := d.bot.app.Act(context.Background(), in); outcome != "suggested" || !in.Transient {
			t.Errorf("%s, transient %t", outcome, in.Transient)
		}
		d.rest()
		last := d.slack.calls[len(d.slack.calls)-1]
		if last.method != "assistant.threads.setSuggestedPrompts" || last.args.Get("channel_id") != "DULINUS" || last.args.Get("thread_ts") != "8.0" {
			t.Errorf("%s %s", last.method, last.args)
		}
	})
}
