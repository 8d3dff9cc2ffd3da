package slackui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// What is posted has metadata that says what it is, for whoever looks for it after a
// crash. The payloads are {"turn": id, "page": n}, {"card": CardID}, {"prompt": InboxID}
// {"outbox": id} and {"thread": id}; numbers are strings.
const (
	turnType   = "deckhand_turn"
	cardType   = "deckhand_card"
	placeType  = "deckhand_place"
	waitType   = "deckhand_wait"
	outboxType = "deckhand_outbox"
	queueType  = "deckhand_queue"
)

// mark of a message that we post: its type, and a payload of pairs.
func metadata(kind string, pairs ...string) slack.SlackMetadata {
	payload := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		payload[pairs[i]] = pairs[i+1]
	}
	return slack.SlackMetadata{EventType: kind, EventPayload: payload}
}

// slackTime is a time as Slack's timestamps have it, in whole seconds.
func slackTime(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) + ".000000" }

const (
	// lookBack is how long before something was to be shown it may have been posted: its
	// message may have been alive for long, or our clock not be Slack's.
	lookBack = time.Hour
	// lookPages bounds how much of a thread is looked through.
	lookPages = 5
)

// posted are our own messages of a thread, since a time, that were posted with metadata
// of a type.
func (f *frontend) posted(ctx context.Context, k threads.ThreadKey, since time.Time, kind string) ([]slack.Message, error) {
	found, err := f.ourPosts(ctx, k, since)
	return slices.DeleteFunc(found, func(m slack.Message) bool { // anybody may write metadata
		stream := kind == turnType && m.Metadata.EventType == "" // it gets its metadata when it ends
		return m.Metadata.EventType != kind && !stream
	}), err
}

// ourPosts are our own messages of a thread since a time.
func (f *frontend) ourPosts(ctx context.Context, k threads.ThreadKey, since time.Time) ([]slack.Message, error) {
	var out []slack.Message
	cursor := ""
	for range lookPages {
		found, more, next, err := f.app.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: k.ChannelID, Timestamp: k.ThreadTS, Limit: 200, IncludeAllMetadata: true, Cursor: cursor,
			Oldest: slackTime(since),
		})
		if err != nil {
			return nil, fmt.Errorf("look for a message that may have been posted: %w", err)
		}
		for _, m := range found {
			if m.User == f.app.self.UserID {
				out = append(out, m)
			}
		}
		if !more || next == "" {
			break
		}
		cursor = next
	}
	return out, nil
}

// find returns the ts of our message in a thread that was posted with this metadata, or "".
func (f *frontend) find(k threads.ThreadKey, since time.Time, mark slack.SlackMetadata) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		found, err := f.posted(ctx, k, since.Add(-lookBack), mark.EventType)
		if err != nil {
			return "", err
		}
		for _, m := range found {
			if marked(m, mark) {
				return m.Timestamp, nil
			}
		}
		return "", nil
	}
}

// Tell implements [agent.Frontend].
func (f *frontend) Tell(rows ...outbox.Row) { f.app.Outbox.Tell(rows...) }

// showLeftTurn shows how a turn ended that this process does not show: another one has
// died before Slack had it.
func (f *frontend) showLeftTurn(w outbox.Row, end func(error)) {
	t, err := agent.DecodeTurn(w.Body)
	if err != nil {
		end(publish.Permanent(err))
		return
	}
	f.app.sessions.left(w.ThreadKey)
	ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
	defer cancel()
	noted, err := f.app.c.Store.TurnPosts(ctx, t.ID)
	if err != nil {
		end(err)
		return
	}
	stands, cards := map[int]string{}, map[string]string{}
	for _, m := range noted {
		if m.Kind == outbox.CardPost {
			cards[m.Subject] = m.TS
		} else {
			stands[m.Part] = m.TS
		}
	}
	f.left.Store(t.ID, stands[0] != "")
	f.mu.Lock()
	defer f.mu.Unlock()
	pages := render.Turn(t, f.rendering(t))
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(stands)), func(n int) bool {
		return slices.ContainsFunc(pages, func(p render.Page) bool { return p.Number == n && p.CardID == "" })
	})
	f.conclude(t, f.takeAway(t, gone, func(err error) {
		f.left.Delete(t.ID)
		end(err)
	}), func(m *publish.Message) {
		if m.TS = stands[m.Page.Number]; m.Page.CardID != "" {
			m.TS = cards[m.Page.CardID]
		}
		if _, over := f.app.publisher.Known(m.Key); over || m.Page.CardID == "" { // a card may be shown at this moment
			m.Key = outboxKey(w) + "/" + strconv.Itoa(m.Page.Number)
		}
		m.Doubtful = m.TS == ""
		m.Final = true
	})
}

// leave marks what a turn of another process has left in its thread.
func (f *frontend) leave(w outbox.Row, end func(error)) {
	f.mu.Lock()
	s := f.turns[w.TurnID]
	f.mu.Unlock()
	if s != nil {
		f.interrupted(s.latest, w.Body, end)
		return
	}
	f.app.sessions.left(w.ThreadKey)
	nothing := false
	f.app.publisher.Once(publish.Call{
		Method: publish.UpdateMessage, Priority: publish.Normal, Group: w.ThreadTS, What: "mark an interrupted turn",
		Do: func(ctx context.Context) (err error) {
			nothing, err = f.strip(ctx, w)
			return err
		},
		OnEnd: func(err error) {
			switch {
			case err != nil || !nothing || w.Body == agent.GoesOn:
				end(err)
			case w.Kind == outbox.GivenUp:
				f.saySentence(w, outboxMark(w), end)
			default:
				f.sayLeft(w, end)
			}
		},
	})
}

// strip takes the controls of a turn's messages away, and what they say of its state. The
// last gets the sentence. nothing is true when there is none.
func (f *frontend) strip(ctx context.Context, w outbox.Row) (nothing bool, err error) {
	noted, err := f.app.c.Store.TurnPosts(ctx, w.TurnID)
	if err != nil {
		return false, err
	}
	// One may have been posted and not noted.
	found, err := f.posted(ctx, w.ThreadKey, w.CreatedAt.Add(-lookBack), turnType)
	if err != nil {
		return false, err
	}
	var list []string
	for _, m := range noted {
		if !m.Open { // it is asked again
			list = append(list, m.TS)
		}
	}
	for _, m := range found {
		if m.Metadata.EventPayload["turn"] == chat.Number(w.TurnID) || streamOf(m, chat.Number(w.TurnID)) != "" {
			list = append(list, m.Timestamp)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	for i, ts := range list {
		sentence := ""
		if i == len(list)-1 {
			sentence = w.Body
		}
		err := f.abandonPosted(ctx, outbox.PostedMessage{ChannelID: w.ChannelID, TS: ts}, true, sentence)
		if err != nil && publish.MayPass(err) {
			return false, err
		}
		if err != nil { // somebody has deleted it
			f.app.c.Log.Warn("mark what an interrupted turn has left", zap.Int64("turn", w.TurnID), zap.String("ts", ts), zap.Error(err))
			nothing = i == len(list)-1
		}
	}
	return nothing || len(list) == 0, nil
}

// streamOf is the page, as metadata have it, of a turn that a message was begun as a stream
// of; "" for none.
func streamOf(m slack.Message, turn string) (page string) {
	for _, b := range m.Blocks.BlockSet {
		if page, ok := strings.CutPrefix(b.ID(), render.StreamID(turn, "")); ok {
			return page
		}
	}
	return ""
}

// mark reacts to a prompt.
func (f *frontend) mark(w outbox.Row, end func(error)) {
	f.forgetSaid(w.ThreadKey)
	emoji := marks[agent.PromptMark(w.Body)]
	if emoji == "" || w.TS == "" {
		end(nil)
		return
	}
	f.app.react(w.ChannelID, w.TS, emoji, end)
}

// outboxKey names an outbox row's message as turnKey does a turn's.
func outboxKey(w outbox.Row) string {
	return "outbox/" + chat.Number(w.ID) + "/" + chat.Number(w.CreatedAt.UnixMicro())
}

func outboxMark(w outbox.Row) slack.SlackMetadata {
	return metadata(outboxType, "outbox", chat.Number(w.ID))
}

// saySentence says a sentence in a thread, in a message that mark tells from others.
func (f *frontend) saySentence(w outbox.Row, mark slack.SlackMetadata, end func(error)) {
	if !w.Again && f.stands(w.ThreadKey, w.Body) {
		end(nil)
		return
	}
	f.app.publisher.Show(publish.Message{
		Key: outboxKey(w), Channel: w.ChannelID, ThreadTS: w.ThreadTS, Group: w.ThreadTS,
		Page: render.Sentence(f.app.c.Redact(w.Body)), Metadata: mark, Priority: publish.Answer, Final: true,
		Find: f.find(w.ThreadKey, w.CreatedAt, mark), Doubtful: w.Again, OnEnd: end,
	})
}

// sayLeft says that a turn was left that has posted nothing, in a message that is the
// turn's: it may be left again, as when it cannot go on yet.
func (f *frontend) sayLeft(w outbox.Row, end func(error)) {
	page, _ := abandoned(slack.Message{}, true, w.Body)
	mark := metadata(turnType, "turn", chat.Number(w.TurnID), "page", "left")
	f.app.publisher.Show(publish.Message{
		Key: "outbox/" + chat.Number(w.ID), Channel: w.ChannelID, ThreadTS: w.ThreadTS, Group: w.ThreadTS,
		Page: page, Metadata: mark, Priority: publish.Answer, Final: true,
		Find: f.find(w.ThreadKey, w.CreatedAt, mark), Doubtful: w.Again, OnEnd: end,
	})
}

// whisper tells one person, and nobody else. Slack cannot be asked whether it did.
func (f *frontend) whisper(w outbox.Row, end func(error)) {
	f.app.whisperTo(w.ChannelID, w.ThreadTS, w.UserID, render.Sentence(f.app.c.Redact(w.Body)), end)
}

// abandonPosted takes the controls of a message that an earlier process posted away; of
// one of a turn that was left, what it says of its state, too. It adds the sentence, if
// there is one.
func (f *frontend) abandonPosted(ctx context.Context, posted outbox.PostedMessage, left bool, sentence string) error {
	found, _, _, err := f.app.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
		ChannelID: posted.ChannelID, Timestamp: posted.TS, Limit: 1, Oldest: posted.TS, Latest: posted.TS, Inclusive: true,
	})
	if err != nil {
		return err
	}
	for _, m := range found {
		if m.Timestamp != posted.TS {
			continue
		}
		page, changed := abandoned(m, left, sentence)
		if !changed && sentence == "" {
			return nil
		}
		edit := func() error {
			_, _, _, err := f.app.api.UpdateMessageContext(ctx, posted.ChannelID, posted.TS, page.MsgOptions()...)
			return err
		}
		if err := edit(); !publish.IsStream(err) {
			return err
		}
		// It is begun as a stream, and whoever was writing it has died.
		if _, _, err := f.app.api.StopStreamContext(ctx, posted.ChannelID, posted.TS); err != nil && !publish.IsOver(err) {
			return err
		}
		return edit()
	}
	return publish.Permanent(errors.New("the message is gone"))
}

// leftBlock is the id of the block that says why a turn was left.
const leftBlock = "turn:left"

// abandoned is a posted message without its controls, of a turn that was left without what
// it says of its state, and with the sentence, if there is one. changed says whether that
// is another one, but for the sentence.
func abandoned(m slack.Message, left bool, sentence string) (page render.Page, changed bool) {
	page.Text = cmp.Or(sentence, plaintext.Prefix(m.Text, 3000)) // a stream has more than an edit may
	for _, b := range m.Blocks.BlockSet {
		id := b.ID()
		if buttons, ok := b.(*slack.ActionBlock); ok && buttons.Elements != nil {
			rest := slices.DeleteFunc(slices.Clone(buttons.Elements.ElementSet), func(e slack.BlockElement) bool {
				b, ok := e.(*slack.ButtonBlockElement)
				return !ok || b.ActionID != view.ActionSteps && b.ActionID != view.ActionDiff // which show, and change nothing
			})
			changed = changed || len(rest) < len(buttons.Elements.ElementSet)
			if len(rest) > 0 {
				page.Blocks = append(page.Blocks, slack.NewActionBlock(id, rest...))
			}
			continue
		}
		if id == leftBlock || left && (strings.Contains(id, ":status") || strings.Contains(id, ":problem")) {
			changed = true
			continue
		}
		if task, ok := b.(*slack.TaskCardBlock); ok && left && (task.Status == slack.TaskCardStatusInProgress || task.Status == slack.TaskCardStatusPending) {
			task.Status, changed = slack.TaskCardStatusError, true
		}
		if c, ok := b.(*slack.ContextBlock); ok && left && strings.Contains(id, ":tools") {
			changed = interrupt(c) || changed
		}
		page.Blocks = append(page.Blocks, b)
	}
	if sentence == "" && len(page.Blocks) == 0 && changed { // it said no more than what was being done
		sentence = "Interrupted."
		page.Text = sentence
	}
	if sentence != "" {
		page.Blocks = append(page.Blocks, slack.NewContextBlock(leftBlock, slack.NewTextBlockObject(slack.PlainTextType, "⏸ "+sentence, true, false)))
	}
	return page, changed
}

// interrupt has the lines of tools that ran or waited in a block (see render.Turn) say that
// they were interrupted. It reports whether there were some.
func interrupt(b *slack.ContextBlock) (changed bool) {
	for _, e := range b.ContextElements.Elements {
		text, ok := e.(*slack.TextBlockObject)
		if !ok {
			continue
		}
		lines := strings.Split(text.Text, "\n")
		for i, line := range lines {
			lines[i] = unfinished.ReplaceAllString(line, "$1⏸ $2")
			if changed = changed || lines[i] != line; lines[i] != line && !strings.HasSuffix(line, " not finished") {
				lines[i] = stands.ReplaceAllString(lines[i], "$1") + " · interrupted"
			}
		}
		text.Text = strings.Join(lines, "\n")
	}
	return changed
}

// stands is how such a tool stood.
var stands = regexp.MustCompile(` · (?:waiting for (?:approval|an answer|a decision)|running)( · |$)`)

// unfinished is a line of a tool that had not ended, as we wrote it or as Slack tells it.
var unfinished = regexp.MustCompile(`^([ ↳]*)(?:⏳|✋|:hourglass_flowing_sand:|:raised_hand:|:hand:) (.*)$`)

// together returns n functions that are each called once, the last of which has end
// called: with an error that may pass, if there is one, else with any, else with nil.
func together(n int, end func(error)) func(error) {
	if end == nil {
		return nil
	}
	var mu sync.Mutex
	var worst error
	return func(err error) {
		mu.Lock()
		if err != nil && (worst == nil || publish.MayPass(err)) {
			worst = err
		}
		n--
		last, with := n == 0, worst
		mu.Unlock()
		if last {
			end(with)
		}
	}
}
