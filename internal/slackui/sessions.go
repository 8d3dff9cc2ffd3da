package slackui

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/chat"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Slack shows of an agent's thread what it is called, that work goes on, with Slack's own
// Stop button (a session, agents.sessions.*), and in a line what is being done
// (assistant.threads.setStatus). A workspace may have both, one or none: what it refuses
// is not asked of it again for a while, and threads say all of it in their messages, too.

const (
	// lineLasts is how long a status line is left as it is: Slack drops one after two minutes.
	lineLasts = 100 * time.Second
	// lacksFor is how long a method is left alone that the workspace has not.
	lacksFor = 12 * time.Hour
)

// sessions are the threads' sessions as Slack shows them.
type sessions struct {
	*poster
	sayMore func(*threads.ThreadKey) // has turns say what is not shown here

	mu     sync.Mutex
	shown  map[threads.ThreadKey]*shownSession // those in which a turn runs here
	titled map[threads.ThreadKey]bool          // whose title this process has set
	lacks  map[publish.Method]time.Time        // when the workspace refused a method altogether
	noStop bool                                // the app does not hear Slack's Stop button
}

type shownSession struct {
	status string // of the session, by Slack's name
	line   string
	again  *time.Timer             // shows the line again
	lacks  map[publish.Method]bool // what Slack refused of this thread
}

func newSessions(p *poster, sayMore func(*threads.ThreadKey)) *sessions {
	return &sessions{poster: p, sayMore: sayMore, shown: map[threads.ThreadKey]*shownSession{}, titled: map[threads.ThreadKey]bool{}, lacks: map[publish.Method]time.Time{}}
}

// show shows a turn as it stands now. Calls for one turn come in order.
func (s *sessions) show(t agent.TurnView) {
	switch {
	case t.State.Ended():
		s.end(t.Thread, slack.AgentSessionStatusActive)
		return
	case t.Parked:
		s.end(t.Thread, slack.AgentSessionStatusSuspended)
		return
	}
	status, line := slack.AgentSessionStatusProcessing, render.Doing(t, s.rendering())
	if t.Waiting > 0 {
		status = slack.AgentSessionStatusSuspended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.shown[t.Thread]
	if now == nil {
		now = &shownSession{lacks: map[publish.Method]bool{}}
		s.shown[t.Thread] = now
		if s.lacking(publish.SetSession) {
			s.setTitle(t.Thread)
		}
	}
	if now.status != status {
		now.status = status
		s.setStatus(t.Thread, status, publish.Normal)
	}
	if now.line != line {
		now.line = line
		s.setLine(t.Thread, now)
	}
}

// posted shows the line of a thread again: a message of ours has ended it.
func (s *sessions) posted(k threads.ThreadKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.shown[k]; now != nil {
		s.setLine(k, now)
	}
}

// end ends what is shown of a thread in which no turn runs any more.
func (s *sessions) end(k threads.ThreadKey, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forget(k) {
		s.setStatus(k, status, publish.Answer)
		s.clearLine(k)
	}
}

// left ends what a process that has died may have shown of a thread, unless another one
// works on it by now, which ends it itself.
func (s *sessions) left(k threads.ThreadKey) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	thread, err := s.c.Store.ThreadByKey(ctx, k)
	if err == nil && thread.LeaseOwner != "" && thread.LeaseOwner != s.c.Replica {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown[k] == nil { // else a turn of it runs here, and has a later row
		s.setStatus(k, slack.AgentSessionStatusActive, publish.Answer)
		s.clearLine(k)
	}
}

// forget ends what is kept of a thread, and reports whether it was shown. s.mu is held.
func (s *sessions) forget(k threads.ThreadKey) bool {
	now := s.shown[k]
	if now == nil {
		return false
	}
	if now.again != nil {
		now.again.Stop()
	}
	delete(s.shown, k)
	return true
}

// leave forgets a thread that another replica shows now.
func (s *sessions) leave(k threads.ThreadKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(k)
}

// setStatus says what a session is about. s.mu is held.
func (s *sessions) setStatus(k threads.ThreadKey, status string, p publish.Priority) {
	s.once(k, publish.SetSession, p, "say whether an agent works", func(ctx context.Context) error {
		params := slack.AgentSessionSetStatusParameters{Status: status, ChannelID: k.ChannelID, ThreadTS: k.ThreadTS}
		if status == slack.AgentSessionStatusProcessing { // which may be the first that it says
			thread, err := s.c.Store.ThreadByKey(ctx, k)
			if err != nil && !errors.Is(err, pg.ErrNotFound) {
				return err
			}
			params.Title, params.InitiatorUserID = render.PlainWords(thread.Title), thread.OwnerID
		}
		answer, err := s.api.SetAgentSessionStatusContext(ctx, params)
		if publish.RefusedAs(err, "user_not_in_channel") { // who opened it has left
			params.InitiatorUserID = ""
			answer, err = s.api.SetAgentSessionStatusContext(ctx, params)
		}
		if err == nil && slices.Contains(answer.ResponseMetadata.Warnings, noStopWarning) {
			s.withoutStop()
		}
		return err
	})
}

// noStopWarning is what Slack says where nobody would hear its Stop button, so that it shows
// none.
const noStopWarning = "missing_agent_session_stopped_event_subscription"

func (s *sessions) withoutStop() {
	s.mu.Lock()
	known := s.noStop
	s.noStop = true
	s.mu.Unlock()
	if !known {
		s.c.Log.Warn("Slack shows no Stop button of its own, since the app does not subscribe to agent_session_stopped: update it from deploy/slack-manifest.yaml; until then the button is on each turn's message")
	}
}

// titledMost bounds the threads of which it is kept that their title is set.
const titledMost = 1000

// setTitle gives a thread of direct messages its title, where no session has one: that is
// how Slack lists them. s.mu is held.
func (s *sessions) setTitle(k threads.ThreadKey) {
	if !access.IsDirect(k.ChannelID) || s.titled[k] {
		return
	}
	s.once(k, publish.SetTitle, publish.Normal, "say what a thread is about", func(ctx context.Context) error {
		thread, err := s.c.Store.ThreadByKey(ctx, k)
		if errors.Is(err, pg.ErrNotFound) || err == nil && thread.Title == "" {
			return nil // the next turn has one
		}
		if err == nil {
			err = s.api.SetAssistantThreadsTitleContext(ctx, slack.AssistantThreadsSetTitleParameters{ChannelID: k.ChannelID, ThreadTS: k.ThreadTS, Title: render.PlainWords(thread.Title)})
		}
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.titled) >= titledMost {
				clear(s.titled)
			}
			s.titled[k] = true
		}
		return err
	})
}

// setLine shows the line of a thread, and again before Slack drops it. s.mu is held.
func (s *sessions) setLine(k threads.ThreadKey, now *shownSession) {
	if now.again != nil {
		now.again.Stop()
	}
	now.again = time.AfterFunc(lineLasts, func() { s.posted(k) })
	line, waits := now.line, now.status == slack.AgentSessionStatusSuspended
	s.once(k, publish.SetStatus, publish.Live, "say what an agent does", func(ctx context.Context) error {
		if s.chat.Supervisor().MayBeDead() { // and the thread another replica's
			return nil
		}
		if waits {
			line = s.waitsFor(ctx, k, line)
		}
		return s.api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{ChannelID: k.ChannelID, ThreadTS: k.ThreadTS, Status: line})
	})
}

// clearLine ends the line of a thread. s.mu is held.
func (s *sessions) clearLine(k threads.ThreadKey) {
	s.once(k, publish.SetStatus, publish.Answer, "end what an agent does", func(ctx context.Context) error {
		return s.api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{ChannelID: k.ChannelID, ThreadTS: k.ThreadTS})
	})
}

// Suggest implements [chat.Screen].
func (s *sessions) Suggest(in *chat.Incoming, project string) {
	params := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: in.Row.ChannelID, ThreadTS: in.Row.ThreadTS}
	if project != "" {
		params.Title = render.PlainWords("What should Deckhand do in " + project + "?")
		params.Prompts = []slack.AssistantThreadsPrompt{
			{Title: "Fix a failing test", Message: "Run the tests, find out why they fail, and propose a fix."},
			{Title: "Explain the code", Message: "How is this repository organized, and where should a newcomer start reading?"},
		}
	}
	params.Prompts = append(params.Prompts, slack.AssistantThreadsPrompt{Title: "What I spent this month", Message: "costs this month for me"})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once(in.Row.Key(), publish.SetPrompts, publish.Normal, "suggest what to say", func(ctx context.Context) error {
		return s.api.SetAssistantThreadsSuggestedPromptsContext(ctx, params)
	})
}

// Left implements [chat.Screen].
func (f *turnScreen) Left(k threads.ThreadKey) { f.sessions.left(k) }

// waitsFor names the one person who is called to decide, if it is one.
func (s *sessions) waitsFor(ctx context.Context, k threads.ThreadKey, otherwise string) string {
	pending, err := s.c.Store.PendingApprovals(ctx, k)
	if err != nil || len(pending) == 0 {
		return otherwise
	}
	var whom []string
	answer := true
	for _, ap := range pending {
		to, _ := s.chat.Called(ctx, ap)
		whom = append(append(whom, to.Mention...), to.Direct...)
		answer = answer && ap.Kind == approvals.Question
	}
	slices.Sort(whom)
	whom = slices.Compact(whom)
	if len(whom) != 1 || !isPerson(whom[0]) {
		return otherwise
	}
	return render.WaitsFor(s.people.Name(ctx, whom[0]), answer)
}

// isPerson reports whether an id is a person's, and not a user group's.
func isPerson(id string) bool { return len(id) > 0 && id[0] != 'S' }

// once makes a call about a thread's session, of which only the latest of its method
// counts. Nobody waits for it: what Slack refuses is noted, and not tried again.
func (s *sessions) once(k threads.ThreadKey, method publish.Method, p publish.Priority, what string, do func(context.Context) error) {
	if s.lacking(method) {
		return
	}
	s.publisher.Once(publish.Call{
		Method: method, Key: string(method) + "/" + k.ChannelID + "/" + k.ThreadTS, Replace: true, Priority: p, Group: k.ThreadTS, What: what,
		Do: func(ctx context.Context) error {
			s.mu.Lock()
			lacking := s.lacking(method)
			s.mu.Unlock()
			if lacking {
				return nil
			}
			err := do(ctx)
			if code := publish.Code(err); code != "" && !publish.IsTemporary(err) {
				s.refused(k, method, code)
				return nil
			}
			return err
		},
	})
}

// lacking reports whether the workspace has refused a method altogether, lately. s.mu is held.
func (s *sessions) lacking(method publish.Method) bool {
	at, refused := s.lacks[method]
	return refused && time.Since(at) < lacksFor
}

// ofTheThread are refusals that are about a thread and not about the workspace.
var ofTheThread = []string{
	"channel_not_found", "thread_not_found", "message_not_found", "invalid_thread_ts", "not_in_channel", "is_archived", "session_not_found",
	"user_not_in_channel", "user_not_found", "invalid_arguments", "channel_type_not_supported", "restricted_action",
}

// refused notes that a method was refused. What it would have shown is said otherwise now.
func (s *sessions) refused(k threads.ThreadKey, method publish.Method, code string) {
	if slices.Contains(ofTheThread, code) {
		s.mu.Lock()
		if now := s.shown[k]; now != nil {
			now.lacks[method] = true
			if method == publish.SetSession {
				s.setTitle(k)
			}
		}
		s.mu.Unlock()
		s.sayMore(&k)
		s.c.Log.Info("Slack shows nothing of an agent in a thread", zap.String("method", string(method)), zap.String("error", code))
		return
	}
	if s.lack(method) {
		s.c.Log.Info("the Slack workspace has no "+string(method)+": "+without[method], zap.String("error", code))
	}
}

// lack notes that the workspace has not got a method, and reports whether that is new. What it
// would have shown is said otherwise now.
func (s *sessions) lack(method publish.Method) (news bool) {
	s.mu.Lock()
	news = !s.lacking(method)
	s.lacks[method] = time.Now()
	if method == publish.SetSession {
		for k := range s.shown {
			s.setTitle(k)
		}
	}
	s.mu.Unlock()
	s.sayMore(nil)
	return news
}

// without says what people do not see where a method is missing.
var without = map[publish.Method]string{
	publish.SetSession:  "threads have no title, and the Stop button is on their message",
	publish.SetPrompts:  "nothing is suggested to people who open the app's messages",
	publish.SetStatus:   "threads have no status line, and only their messages say what goes on",
	publish.SetTitle:    "the list of threads with the app shows no titles",
	publish.StartStream: "messages that grow are edited, which shows less often",
}
