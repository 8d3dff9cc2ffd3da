package slackui

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
)

// readLimit bounds an access to the database.
const readLimit = 10 * time.Second

// remains edits messages that turns of dead processes have left in Slack.
type remains struct{ *poster }

// ShowLeftTurn implements [chat.Screen]: another process has died before Slack had how the turn ended.
func (f *turnScreen) ShowLeftTurn(w outbox.Row, t agent.TurnView, end func(error)) {
	f.sessions.left(w.ThreadKey)
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	noted, err := f.c.Store.TurnPosts(ctx, t.ID)
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
	f.conclude(t, remains{f.poster}.deletePages(t, gone, func(err error) {
		f.left.Delete(t.ID)
		end(err)
	}), func(m *publish.Message) {
		if m.TS = stands[m.Page.Number]; m.Page.CardID != "" {
			m.TS = cards[m.Page.CardID]
		}
		if _, over := f.publisher.Known(m.Key); over || m.Page.CardID == "" { // a card may be shown at this moment
			m.Key = chat.OutboxKey(w) + "/" + strconv.Itoa(m.Page.Number)
		}
		m.Doubtful = m.TS == ""
		m.Final = true
	})
}

// LeaveTurn implements [chat.Screen]. If no message can have the sentence it calls nothing, if that is not nil.
func (f *turnScreen) LeaveTurn(w outbox.Row, end func(error), nothing func()) {
	f.mu.Lock()
	s := f.shown[w.TurnID]
	f.mu.Unlock()
	if s != nil {
		f.interrupted(s.latest, w.Body, end)
		return
	}
	f.sessions.left(w.ThreadKey)
	r, none := remains{f.poster}, false
	f.publisher.Once(publish.Call{
		Method: publish.UpdateMessage, Priority: publish.Normal, Group: w.ThreadTS, What: "mark an interrupted turn",
		Do: func(ctx context.Context) (err error) {
			none, err = r.strip(ctx, w)
			return err
		},
		OnEnd: func(err error) {
			if err == nil && none && nothing != nil {
				nothing()
			} else {
				end(err)
			}
		},
	})
}

// strip removes the buttons and the status from a turn's messages. The last gets the sentence; nothing is true if
// no message can have it.
func (f remains) strip(ctx context.Context, w outbox.Row) (nothing bool, err error) {
	noted, err := f.c.Store.TurnPosts(ctx, w.TurnID)
	if err != nil {
		return false, err
	}
	// One may have been posted and not noted.
	found, err := f.ourPosts(ctx, whereOf(w.ThreadKey), w.CreatedAt)
	if err != nil {
		return false, err
	}
	var list []string
	cards := map[string]bool{}
	for _, m := range noted {
		if !m.Open { // it is asked again
			list = append(list, m.TS)
			cards[m.TS] = m.Kind == outbox.CardPost
		}
	}
	turn := chat.FormatID(w.TurnID)
	for _, m := range found { // anybody may write metadata, and a stream gets its own when it ends
		if m.Metadata.EventType == turnType && m.Metadata.EventPayload["turn"] == turn || m.Metadata.EventType == "" && streamOf(m, turn) != "" {
			list = append(list, m.Timestamp)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	for i, ts := range list {
		sentence := ""
		switch {
		case i < len(list)-1:
		case w.Kind == outbox.GivenUp && cards[ts]: // it is shown anew, as its request has ended
			nothing = true
		default:
			sentence = w.Body
		}
		err := f.abandonPosted(ctx, outbox.PostedMessage{ChannelID: w.ChannelID, TS: ts}, true, sentence)
		if err != nil && publish.IsTemporary(err) {
			return false, err
		}
		if err != nil { // somebody has deleted it
			f.c.Log.Warn("mark what an interrupted turn has left", zap.Int64("turn", w.TurnID), zap.String("ts", ts), zap.Error(err))
			nothing = nothing || i == len(list)-1
		}
	}
	return nothing || len(list) == 0, nil
}

// streamOf is the number of the turn's page that a message was begun as a stream of; "" for none.
func streamOf(m slack.Message, turn string) (page string) {
	for _, b := range m.Blocks.BlockSet {
		if page, ok := strings.CutPrefix(b.ID(), render.StreamID(turn, "")); ok {
			return page
		}
	}
	return ""
}

// abandonPosted removes the buttons from a message that an earlier process posted, with left also what it says of
// its turn's state. It adds the sentence, if there is one.
func (f remains) abandonPosted(ctx context.Context, posted outbox.PostedMessage, left bool, sentence string) error {
	m, err := f.one(ctx, posted.ChannelID, posted.TS)
	switch {
	case err != nil:
		return err
	case m == nil:
		return publish.Permanent(errors.New("the message is gone"))
	}
	page, changed := abandoned(*m, left, sentence)
	if !changed && sentence == "" {
		return nil
	}
	edit := func() error {
		_, _, _, err := f.api.UpdateMessageContext(ctx, posted.ChannelID, posted.TS, page.MsgOptions()...)
		return err
	}
	if err := edit(); !publish.IsStream(err) {
		return err
	}
	// It is begun as a stream, and whoever was writing it has died.
	if _, _, err := f.api.StopStreamContext(ctx, posted.ChannelID, posted.TS); err != nil && !publish.IsOver(err) {
		return err
	}
	return edit()
}

// clear removes the buttons from a turn's messages. Normally only the last has some; earlier ones have them if a
// process died between posting two pages.
func (f remains) clear(turnID int64) {
	f.publisher.Once(publish.Call{
		Method: publish.UpdateMessage, Priority: publish.Answer, What: "take back what an ended turn offers",
		Do: func(ctx context.Context) error {
			posted, err := f.c.Store.TurnPosts(ctx, turnID)
			if err != nil || len(posted) == 0 {
				return err
			}
			last := len(posted) - 1
			if err := f.abandonPosted(ctx, posted[last], false, ""); err != nil {
				return err
			}
			for _, m := range posted[:last] {
				f.publisher.Once(publish.Call{
					Method: publish.UpdateMessage, Priority: publish.Normal, What: "take the buttons of an ended turn away",
					Do: func(ctx context.Context) error { return f.abandonPosted(ctx, m, false, "") },
				})
			}
			return nil
		},
	})
}

// deletePages returns an end for a turn of which some pages are no longer shown, such as those whose text the
// closing answer repeats: it deletes their messages, and then calls end.
func (f remains) deletePages(t agent.TurnView, pages []int, end func(error)) func(error) {
	if len(pages) == 0 || end == nil {
		return end
	}
	return func(err error) {
		if err != nil {
			end(err)
			return
		}
		f.publisher.Once(publish.Call{
			Method: publish.DeleteMessage, Priority: publish.Answer, Group: t.Thread.ThreadTS, Patient: true, OnEnd: end,
			What: "take away what a closing answer has said again",
			Do: func(ctx context.Context) error {
				posted, err := f.c.Store.TurnPosts(ctx, t.ID)
				for _, m := range posted {
					if m.Kind == outbox.TurnPost && slices.Contains(pages, m.Part) {
						err = errors.Join(err, f.remove(ctx, m.ChannelID, m.TS))
					}
				}
				return err
			},
		})
	}
}

// leftBlock is the id of the block that says why a turn was left.
const leftBlock = "turn:left"

// abandoned is a posted message without its buttons; with left, also without what it says of its turn's state. The
// sentence, if there is one, is added. changed reports whether anything besides the sentence differs.
func abandoned(m slack.Message, left bool, sentence string) (page render.Page, changed bool) {
	page.Text = cmp.Or(sentence, plaintext.Prefix(m.Text, 3000)) // a stream has more than an edit may
	for _, b := range m.Blocks.BlockSet {
		id := b.ID()
		if buttons, ok := b.(*slack.ActionBlock); ok && buttons.Elements != nil {
			rest := slices.DeleteFunc(slices.Clone(buttons.Elements.ElementSet), func(e slack.BlockElement) bool {
				b, ok := e.(*slack.ButtonBlockElement)
				return !ok || !view.Stays(b.ActionID)
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

// interrupt marks the lines of tools in a block (see render.Turn) that ran or waited as interrupted, and reports
// whether there were some.
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

// stands is the state at the end of such a line.
var stands = regexp.MustCompile(` · (?:waiting for (?:approval|an answer|a decision)|running)( · |$)`)

// unfinished is a line of a tool that had not ended, as we wrote it or as Slack tells it.
var unfinished = regexp.MustCompile(`^([ ↳]*)(?:⏳|✋|:hourglass_flowing_sand:|:raised_hand:|:hand:) (.*)$`)
