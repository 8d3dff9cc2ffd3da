package slackui

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/agent/ask"
	"deckhand/internal/chat"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/outbox"
)

// renderInterval is the shortest time between two renderings of a running
// turn. The publisher edits less often still.
const renderInterval = 100 * time.Millisecond

// turnScreen shows turns and cards: it renders at a pace and hands the result to the publisher.
type turnScreen struct {
	*poster
	sessions *sessions
	files    attachments // what the messages of turns leave out
	pictures pictures
	left     sync.Map // ended turns of other processes that this one shows: whether their first page was posted

	mu    sync.Mutex
	shown map[int64]*shownTurn // those that run in this process
	again map[int64]bool       // ended turns that are shown once more

	offers []agent.TurnView // ended turns that offer to go on, the oldest first
}

func newTurnScreen(p *poster) *turnScreen {
	f := &turnScreen{poster: p, shown: map[int64]*shownTurn{}, again: map[int64]bool{}}
	f.sessions = newSessions(p, f.sayMore)
	return f
}

type shownTurn struct {
	latest   agent.TurnView
	rendered time.Time
	timer    *time.Timer // of the next rendering; nil while none is due
	keys     []string    // of its messages, in the order in which they were shown first
	since    time.Time   // when it began, if it has posted nothing yet
	tell     *time.Timer // tells of its steps in the end
	pages    []int       // the numbers of those that were shown in messages of their own
	looked   int         // how many of its items were looked at for pictures
	pictures int         // how many of them were shown
}

// ShowTurn implements [chat.Screen]; end, if it is not nil, is called with what became of its end.
func (f *turnScreen) ShowTurn(t agent.TurnView, end func(error)) {
	f.sessions.show(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.shown[t.ID]
	if s == nil {
		s = &shownTurn{since: time.Now()}
		if t.State.Ended() { // it was shown before, with its pictures
			s.looked = len(t.Content.Items)
		}
		f.shown[t.ID] = s
		defer f.chat.Homes.Changed()
	} else if t.State.Ended() || t.Parked || t.Waiting != s.latest.Waiting {
		defer f.chat.Homes.Changed()
	}
	s.latest = t
	f.pictures.show(f.poster, s, t, f.rendering(t))
	wait := renderInterval - time.Since(s.rendered)
	switch {
	case t.State.Ended(), t.Parked:
		s.stop()
		f.conclude(t, end, unchanged)
		delete(f.shown, t.ID)
		f.offer(t)
	case s.timer != nil:
	case wait <= 0:
		s.render(f, unchanged)
	default:
		s.timer = time.AfterFunc(wait, func() { f.showLatest(t.ID) })
	}
}

func (f *turnScreen) showLatest(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.shown[id]; s != nil && s.timer != nil { // else it has ended meanwhile
		s.timer = nil
		s.render(f, unchanged)
	}
}

// unchanged leaves a page's message as it is.
func unchanged(*publish.Message) {}

// render shows the latest state, with a change of its messages. As long as there is nothing to
// see, the pace does not count: the first text goes out as soon as it may.
func (s *shownTurn) render(f *turnScreen, change func(*publish.Message)) {
	o := f.rendering(s.latest)
	o.Quiet = f.isQuiet(s)
	if f.publishPages(s.latest, o, nil, change) {
		s.rendered = time.Now()
	}
}

// above is the key of the message before the one with this key; a new key goes last.
func (s *shownTurn) above(key string) string {
	i := slices.Index(s.keys, key)
	if i < 0 {
		i, s.keys = len(s.keys), append(s.keys, key)
	}
	if i == 0 {
		return ""
	}
	return s.keys[i-1]
}

// publishPages renders the turn, shows each page as one message with a change of it, and
// reports whether there is one. f.mu is held, so that renderings reach the publisher in
// order. end, if it is not nil, is called with what became of all of them. publisher.Show keeps
// the latest state of each; dispatch (publish/dispatch.go) sends it.
func (f *turnScreen) publishPages(t agent.TurnView, o render.Options, end func(error), change func(*publish.Message)) (some bool) {
	pages := f.untilOpenCard(t, render.Turn(t, o))
	if end != nil && len(pages) == 0 {
		end(nil)
	}
	var gone []int // that have no place in the turn any more
	s := f.shown[t.ID]
	if s != nil && t.State.Ended() {
		gone = slices.DeleteFunc(slices.Clone(s.pages), func(n int) bool { return slices.ContainsFunc(pages, func(p render.Page) bool { return p.Number == n }) })
	}
	for _, n := range gone {
		f.publisher.Forget(turnKey(t, n))
	}
	all := f.chat.Together(len(pages), remains{f.poster}.deletePages(t, gone, end))
	delete(f.again, t.ID)
	previous := ""
	for i, p := range pages {
		m := f.pageMessage(t, p)
		m.Page, m.Priority, m.OnEnd = p, publish.Live, all
		if m.After = previous; s != nil {
			m.After = s.above(m.Key)
		}
		m.Final = t.Parked || t.State.Ended() && !t.Offers() && !t.Settling
		switch {
		case (t.State.Ended() || t.Parked) && i == len(pages)-1:
			m.Priority = publish.Answer
		case t.State.Ended(), t.Waiting > 0:
			m.Priority = publish.Normal
		}
		change(&m)
		if previous = m.Key; t.State.Ended() && !m.Final {
			f.again[t.ID] = true
		}
		f.publisher.Show(m)
		if s != nil && p.CardID == "" && !slices.Contains(s.pages, p.Number) {
			s.pages = append(s.pages, p.Number)
		}
	}
	return len(pages) > 0
}

// untilOpenCard leaves out the pages of later cards while an open card is still to be posted: it
// would stand below them. They follow when it is shown.
func (f *turnScreen) untilOpenCard(t agent.TurnView, pages []render.Page) []render.Page {
	card := slices.IndexFunc(t.Cards, func(c ask.Card) bool { return c.Open() && !c.Earlier && !f.Shows(chat.CardKey(c.ID)) })
	if card < 0 {
		return pages
	}
	later := t.Cards[card+1:]
	cut := slices.IndexFunc(pages, func(p render.Page) bool {
		return slices.ContainsFunc(later, func(c ask.Card) bool { return c.ID == p.CardID })
	})
	if cut < 0 {
		return pages
	}
	return pages[:cut]
}

// pageMessage is the message in which a page of a turn stands: a card's, or one of its own.
func (f *turnScreen) pageMessage(t agent.TurnView, p render.Page) publish.Message {
	if i := slices.IndexFunc(t.Cards, func(c ask.Card) bool { return c.ID == p.CardID }); i >= 0 {
		m := f.cardMessage(t.Thread, t.Project, t.Cards[i].ID, t.Cards[i].At)
		m.Doubtful, m.Hold = t.Cards[i].Earlier, f.chat.Supervisor().MayBeDead
		return m
	}
	mark := metadata(turnType, "turn", chat.FormatID(t.ID), "page", strconv.Itoa(p.Number))
	began := time.Now()
	return publish.Message{
		Key: turnKey(t, p.Number), Channel: t.Thread.ChannelID, ThreadTS: t.Thread.ThreadTS, Group: t.Thread.ThreadTS,
		Hold:      f.chat.Supervisor().MayBeDead, // and the turn another replica's
		Recipient: publish.Recipient{Team: t.Thread.TeamID, User: t.RequestedBy},
		Metadata:  mark, Find: func(ctx context.Context) (string, error) { return f.find(ctx, whereOf(t.Thread), began, mark) },
		OnPosted: func(ts string) {
			f.sessions.posted(t.Thread)
			f.chat.Note(outbox.PostedMessage{Kind: outbox.TurnPost, Subject: chat.FormatID(t.ID), Part: p.Number, ChannelID: t.Thread.ChannelID, TS: ts})
		},
	}
}

func (f *turnScreen) rendering(t agent.TurnView) render.Options {
	o := render.Options{Redact: f.c.Redact, Workspace: t.Workspace, Files: f.files.takes(t.ID)}
	if posted, left := f.left.Load(t.ID); left {
		o.Posted = posted.(bool) //nolint:forcetypeassert // nothing else is in it
	} else {
		o.Posted = f.Shows(turnKey(t, 0))
	}
	o.Call = f.chat.CalledAtEnd(t)
	return o
}

// turnKey names a page of a turn for as long as this process lives. It has the turn's
// beginning in it: a database that was taken over by a standby gives numbers a second time
// that the old one had given last.
func turnKey(t agent.TurnView, page int) string {
	return "turn/" + chat.FormatID(t.ID) + "/" + chat.FormatID(t.StartedAt.UnixMicro()) + "/" + strconv.Itoa(page)
}

// Running implements [chat.Screen].
func (f *turnScreen) Running(turnID int64) agent.TurnView {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.shown[turnID]; s != nil {
		return s.latest
	}
	return agent.TurnView{}
}

// Leave implements [chat.Screen].
func (f *turnScreen) Leave(turnID int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.shown[turnID]; s != nil {
		s.stop()
		f.sessions.leave(s.latest.Thread)
		for _, page := range s.pages {
			f.publisher.Forget(turnKey(s.latest, page))
		}
		for _, c := range s.latest.Cards {
			if !c.Open() {
				f.publisher.Forget(chat.CardKey(c.ID))
			}
		}
	}
	delete(f.shown, turnID)
}
