package slackui

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/agent/ask"
	"deckhand/internal/chat"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

const (
	// renderInterval is the shortest time between two renderings of a running
	// turn. The publisher edits less often still.
	renderInterval = 100 * time.Millisecond
	// saveLimit bounds the recording of a message that was posted.
	saveLimit = 10 * time.Second
)

// frontend shows turns, cards and marks: it renders at a pace and hands the
// result to the publisher. It implements [agent.Frontend].
type frontend struct {
	app *App

	mu       sync.Mutex
	turns    map[int64]*shownTurn // those that run in this process
	pictures map[pictureKey]bool  // those of tools that were shown
	again    map[int64]bool       // ended turns that are shown once more

	offers []agent.TurnView // ended turns that offer to go on, the oldest first

	cardsMu sync.Mutex              // taken before mu
	reading map[string]*cardReading // cards that are being read, by id
	posting map[string]bool         // open cards that this process has shown, by id
	called  map[string]bool         // pending approvals for which this process has called people directly, by id
	places  map[int64]*shownPlace   // threads that wait for a session
	waiting map[int64]bool          // prompts of which this process has said that they wait
	closed  bool                    // nothing is read any more
	queues  map[int64]*shownQueue   // by thread
	keys    int                     // of them that were given so far

	reads   sync.WaitGroup
	closing chan struct{} // closed when what fails is not read again

	files attachments // what the messages of turns leave out
	left  sync.Map    // ended turns of other processes that this one shows: whether their first page was posted

	saidMu sync.Mutex
	said   map[threads.ThreadKey]sentence // what was said last in each thread, since its last prompt was marked
}

// sentence is something that was said, and when.
type sentence struct {
	text string
	at   time.Time
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

func newFrontend(a *App) *frontend {
	return &frontend{app: a, turns: map[int64]*shownTurn{}, pictures: map[pictureKey]bool{}, again: map[int64]bool{}, reading: map[string]*cardReading{}, posting: map[string]bool{}, called: map[string]bool{}, places: map[int64]*shownPlace{}, waiting: map[int64]bool{}, queues: map[int64]*shownQueue{}, closing: make(chan struct{}), said: map[threads.ThreadKey]sentence{}}
}

// ShowTurn implements [agent.Frontend].
func (f *frontend) ShowTurn(t agent.TurnView) {
	var end func(error)
	if t.OutboxID != 0 {
		end = f.app.Outbox.Begun(outbox.Row{ID: t.OutboxID, Kind: outbox.Turn, ThreadKey: t.Thread, TurnID: t.ID})
		t.OutboxID = 0
	}
	f.showTurn(t, end)
}

// showTurn shows a turn; end, if it is not nil, is called with what became of its end.
func (f *frontend) showTurn(t agent.TurnView, end func(error)) {
	f.app.sessions.show(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.turns[t.ID]
	if s == nil {
		s = &shownTurn{since: time.Now()}
		if t.State.Ended() { // it was shown before, with its pictures
			s.looked = len(t.Content.Items)
		}
		f.turns[t.ID] = s
		defer f.app.Homes.Changed()
	} else if t.State.Ended() || t.Parked || t.Waiting != s.latest.Waiting {
		defer f.app.Homes.Changed()
	}
	s.latest = t
	f.showPictures(s, t)
	wait := renderInterval - time.Since(s.rendered)
	switch {
	case t.State.Ended(), t.Parked:
		s.stop()
		f.publish(t, end)
		delete(f.turns, t.ID)
		f.offer(t)
	case s.timer != nil:
	case wait <= 0:
		s.render(f, unchanged)
	default:
		s.timer = time.AfterFunc(wait, func() { f.showLatest(t.ID) })
	}
}

func (f *frontend) showLatest(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.turns[id]
	if s == nil || s.timer == nil {
		return // it has ended meanwhile
	}
	s.timer = nil
	s.render(f, unchanged)
}

// unchanged leaves a page's message as it is.
func unchanged(*publish.Message) {}

// render shows the latest state, with a change of its messages. As long as there is nothing to
// see, the pace does not count: the first text goes out as soon as it may.
func (s *shownTurn) render(f *frontend, change func(*publish.Message)) {
	o := f.rendering(s.latest)
	o.Quiet = f.isQuiet(s)
	if f.publishPages(s.latest, o, nil, change) {
		s.rendered = time.Now()
	}
}

// below is the key of the message that is above the one with this key, which is the last if it
// is new.
func (s *shownTurn) below(key string) string {
	i := slices.Index(s.keys, key)
	if i < 0 {
		i, s.keys = len(s.keys), append(s.keys, key)
	}
	if i == 0 {
		return ""
	}
	return s.keys[i-1]
}

// publish shows a turn that has ended, or is parked.
func (f *frontend) publish(t agent.TurnView, end func(error)) {
	f.conclude(t, end, unchanged)
}

// publishPages renders the turn, shows each page as one message with a change of it, and
// reports whether there is one. f.mu is held, so that renderings reach the publisher in
// order. end, if it is not nil, is called with what became of all of them.
func (f *frontend) publishPages(t agent.TurnView, o render.Options, end func(error), change func(*publish.Message)) (some bool) {
	pages := f.belowCards(t, render.Turn(t, o))
	if end != nil && len(pages) == 0 {
		end(nil)
	}
	var gone []int // that have no place in the turn any more
	s := f.turns[t.ID]
	if s != nil && t.State.Ended() {
		gone = slices.DeleteFunc(slices.Clone(s.pages), func(n int) bool { return slices.ContainsFunc(pages, func(p render.Page) bool { return p.Number == n }) })
	}
	for _, n := range gone {
		f.app.publisher.Forget(turnKey(t, n))
	}
	all := together(len(pages), f.takeAway(t, gone, end))
	delete(f.again, t.ID)
	previous := ""
	for i, p := range pages {
		m := f.pageMessage(t, p)
		m.Page, m.Priority, m.OnEnd = p, publish.Live, all
		if m.After = previous; s != nil {
			m.After = s.below(m.Key)
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
		f.app.publisher.Show(m)
		if s != nil && p.CardID == "" && !slices.Contains(s.pages, p.Number) {
			s.pages = append(s.pages, p.Number)
		}
	}
	return len(pages) > 0
}

// belowCards leaves out the pages of later cards while an open card is still to be posted: it
// would stand below them. They follow when it is shown.
func (f *frontend) belowCards(t agent.TurnView, pages []render.Page) []render.Page {
	card := slices.IndexFunc(t.Cards, func(c ask.Card) bool { return c.Open() && !c.Earlier && !f.knows(cardKey(c.ID)) })
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
func (f *frontend) pageMessage(t agent.TurnView, p render.Page) publish.Message {
	if i := slices.IndexFunc(t.Cards, func(c ask.Card) bool { return c.ID == p.CardID }); i >= 0 {
		m := f.cardMessage(t.Thread, t.Project, t.Cards[i].ID, t.Cards[i].At)
		m.Doubtful, m.Hold = t.Cards[i].Earlier, f.app.Supervisor().MayBeDead
		return m
	}
	mark := metadata(turnType, "turn", chat.Number(t.ID), "page", strconv.Itoa(p.Number))
	return publish.Message{
		Key: turnKey(t, p.Number), Channel: t.Thread.ChannelID, ThreadTS: t.Thread.ThreadTS, Group: t.Thread.ThreadTS,
		Hold:      f.app.Supervisor().MayBeDead, // and the turn another replica's
		Recipient: publish.Recipient{Team: t.Thread.TeamID, User: t.RequestedBy},
		Metadata:  mark, Find: f.find(t.Thread, time.Now(), mark),
		OnPosted: func(ts string) {
			f.app.sessions.posted(t.Thread)
			f.note(outbox.PostedMessage{Kind: outbox.TurnPost, Subject: chat.Number(t.ID), Part: p.Number, ChannelID: t.Thread.ChannelID, TS: ts})
		},
		OnError: func(err error) { f.app.c.Log.Error("show a turn", zap.Int64("turn", t.ID), zap.Error(err)) },
	}
}

// offersMost bounds the ended turns that are kept to take their buttons back. Those of
// earlier ones are taken back in Slack, as those of an earlier process.
const offersMost = 100

// offer keeps an ended turn that offers to go on. f.mu is held.
func (f *frontend) offer(t agent.TurnView) {
	if !t.Offers() {
		return
	}
	f.offers = append(f.offers, t)
	if len(f.offers) > offersMost {
		f.offers = slices.Delete(f.offers, 0, 1)
	}
}

// Changed implements [agent.Frontend].
func (f *frontend) Changed(replica string) { f.app.Changed(replica) }

// SetShare implements [agent.Frontend].
func (f *frontend) SetShare(s agent.Share) {
	f.app.publisher.SetShare(publish.Share(s))
	f.app.SetOthers(s.Anywhere < 1)
}

// CloseOffer implements [agent.Frontend].
func (f *frontend) CloseOffer(turnID int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.offers, func(t agent.TurnView) bool { return t.ID == turnID })
	if i < 0 {
		f.clear(turnID)
		return
	}
	t := f.offers[i]
	t.Continue, t.OpensPull = false, false
	f.publish(t, nil)
	f.offers = slices.Delete(f.offers, i, i+1)
}

func (f *frontend) rendering(t agent.TurnView) render.Options {
	o := render.Options{Redact: f.app.c.Redact, Workspace: t.Workspace, Files: f.files.takes(t.ID)}
	if posted, left := f.left.Load(t.ID); left {
		o.Posted = posted.(bool) //nolint:forcetypeassert // nothing else is in it
	} else {
		o.Posted = f.knows(turnKey(t, 0))
	}
	if t.Closing > 0 && t.EndedAt.Sub(t.StartedAt) >= agent.LongTurn && !f.app.Saw(t.Thread, t.RequestedBy, t.StartedAt) {
		o.Call = t.RequestedBy
	}
	return o
}

// knows reports whether this process has shown a message.
func (f *frontend) knows(key string) bool {
	shown, over := f.app.publisher.Known(key)
	return shown || over
}

// turnKey names a page of a turn for as long as this process lives. It has the turn's
// beginning in it: a database that was taken over by a standby gives numbers a second time
// that the old one had given last.
func turnKey(t agent.TurnView, page int) string {
	return "turn/" + chat.Number(t.ID) + "/" + chat.Number(t.StartedAt.UnixMicro()) + "/" + strconv.Itoa(page)
}

// marks are the reactions that say that a prompt was heard and how it ended, by Slack's names. ✅ is for
// what is done and for nothing else.
var marks = map[agent.PromptMark]string{
	chat.Heard:             "eyes",                  // 👀
	agent.PromptDone:       "white_check_mark",      // ✅
	agent.PromptFailed:     "warning",               // ⚠️
	agent.PromptStopped:    "black_square_for_stop", // ⏹️
	agent.PromptPaused:     "double_vertical_bar",   // ⏸️
	agent.PromptOverBudget: "money_with_wings",      // 💸
}

// MarkPrompt implements [agent.Frontend]. The eyes that say that a message was
// heard stay; only its end is marked, see Tell.
func (f *frontend) MarkPrompt(p inbox.Prompt, m agent.PromptMark) {
	f.forgetSaid(p.ThreadKey)
	f.app.Homes.Changed()
	if m == agent.PromptWaits || p.Marked {
		f.app.Outbox.SweepNow()
	}
}

// forgetSaid: whoever wrote a prompt that is marked has to be told of it.
func (f *frontend) forgetSaid(k threads.ThreadKey) {
	f.saidMu.Lock()
	defer f.saidMu.Unlock()
	delete(f.said, k)
}

// sayAgainAfter is how long a sentence that was the last one said in a thread stands for
// itself when it would be said again, and no prompt was marked there since.
const sayAgainAfter = time.Hour

// Say implements [agent.Frontend].
func (f *frontend) Say(k threads.ThreadKey, text string) {
	if !f.stands(k, text) {
		f.app.say(k.ChannelID, k.ThreadTS, render.Sentence(text))
	}
}

// stands reports whether a sentence that is to be said is the last one said in its thread.
func (f *frontend) stands(k threads.ThreadKey, text string) bool {
	f.saidMu.Lock()
	now := time.Now()
	maps.DeleteFunc(f.said, func(_ threads.ThreadKey, s sentence) bool { return now.Sub(s.at) >= sayAgainAfter })
	again := f.said[k].text == text
	if !again {
		f.said[k] = sentence{text: text, at: now}
	}
	f.saidMu.Unlock()
	if again {
		f.app.c.Log.Info("a sentence stands in its thread already", zap.String("thread", k.ThreadTS), zap.String("sentence", f.app.c.Redact(text)))
	}
	return again
}

// Abandon implements [agent.Frontend].
func (f *frontend) Abandon(turnID int64, sentence string) {
	f.mu.Lock()
	s := f.turns[turnID]
	f.mu.Unlock()
	if s != nil {
		f.interrupted(s.latest, sentence, nil)
	}
}

// interrupted renders a turn of this process a last time.
func (f *frontend) interrupted(t agent.TurnView, sentence string, end func(error)) {
	t.State, t.Problem, t.EndedAt, t.Waiting = agent.TurnInterrupted, sentence, time.Now(), 0
	t.Cards = slices.DeleteFunc(slices.Clone(t.Cards), ask.Card.Open) // they are asked again
	f.showTurn(t, end)
}

// clear takes the controls of a turn's posted messages away. Those before the last have
// buttons only where a process died between a page and the next.
func (f *frontend) clear(turnID int64) {
	f.app.publisher.Once(publish.Call{
		Method: publish.UpdateMessage, Priority: publish.Answer, What: "take back what an ended turn offers",
		Do: func(ctx context.Context) error {
			posted, err := f.app.c.Store.TurnPosts(ctx, turnID)
			if err != nil || len(posted) == 0 {
				return err
			}
			last := len(posted) - 1
			if err := f.abandonPosted(ctx, posted[last], false, ""); err != nil {
				return err
			}
			for _, m := range posted[:last] {
				f.app.publisher.Once(publish.Call{
					Method: publish.UpdateMessage, Priority: publish.Normal, What: "take the buttons of an ended turn away",
					Do: func(ctx context.Context) error { return f.abandonPosted(ctx, m, false, "") },
				})
			}
			return nil
		},
	})
}

// running is a turn that this process shows, as it was last; one without an ID if it does
// not.
func (f *frontend) running(turnID int64) agent.TurnView {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.turns[turnID]; s != nil {
		return s.latest
	}
	return agent.TurnView{}
}

// Leave implements [agent.Frontend].
func (f *frontend) Leave(turnID int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.turns[turnID]; s != nil {
		s.stop()
		f.app.sessions.leave(s.latest.Thread)
		for _, page := range s.pages {
			f.app.publisher.Forget(turnKey(s.latest, page))
		}
		for _, c := range s.latest.Cards {
			if !c.Open() {
				f.app.publisher.Forget(cardKey(c.ID))
			}
		}
	}
	delete(f.turns, turnID)
}

// note notes where a message was posted.
func (f *frontend) note(p outbox.PostedMessage) {
	f.save(p, func(ctx context.Context) error { return f.app.c.Store.SavePosts(ctx, p) })
}

// forget notes that a message is none of ours any more.
func (f *frontend) forget(p outbox.PostedMessage) {
	f.save(p, func(ctx context.Context) error { return f.app.c.Store.ForgetPost(ctx, p, f.app.c.Replica) })
}

func (f *frontend) save(p outbox.PostedMessage, write func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
	defer cancel()
	if err := write(ctx); err != nil {
		f.app.c.Log.Error("note a message", zap.String("kind", string(p.Kind)), zap.String("of", p.Subject), zap.Error(err))
	}
}
