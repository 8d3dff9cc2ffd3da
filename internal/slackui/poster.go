package slackui

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/threads"
)

// poster posts to one workspace, and reads its messages. It implements the parts of [chat.Screen] that are about
// messages, and is embedded in the types that implement the others.
type poster struct {
	chat      *chat.Chat
	c         *chat.Config // the chat's
	api       webAPI
	self      identity
	publisher *publish.Scheduler
	people    *directory.Directory
}

// rendering has the options for everything but turns, whose paths are shown as seen from their workspace.
func (p *poster) rendering() render.Options { return render.Options{Redact: p.c.Redact} }

// shown is a page rendered for Slack.
func (p *poster) shown(page view.Page) render.Page { return render.Shown(page, p.rendering()) }

// Whisper implements [chat.Screen].
func (p *poster) Whisper(at chat.Where, user string, page view.Page, end func(error)) {
	shown := p.shown(page)
	p.publisher.Once(publish.Call{
		Method: publish.PostEphemeral, Key: "whisper/" + at.Channel + "/" + at.Thread + "/" + user, Priority: publish.Click, Group: at.Thread, What: "answer " + user, Patient: true, OnEnd: end,
		Do: func(ctx context.Context) error {
			err := p.publisher.Reduced(publish.InEphemeral, "answer", shown, func(page render.Page) error {
				options := page.MsgOptions()
				if at.Thread != "" {
					options = append(options, slack.MsgOptionTS(at.Thread))
				}
				_, err := p.api.PostEphemeralContext(ctx, at.Channel, user, options...)
				return err
			})
			if publish.RefusedAs(err, "user_not_in_channel") { // who decides by direct message need not be there
				p.Direct(user, page)
				return nil
			}
			return err
		},
	})
}

// Direct implements [chat.Screen].
func (p *poster) Direct(user string, page view.Page) {
	p.publisher.Once(publish.Call{
		Method: publish.PostMessage, Priority: publish.Click, Group: user, What: "message " + user,
		Do: func(ctx context.Context) error {
			return p.publisher.Reduced(publish.InMessage, "direct message", p.shown(page), func(page render.Page) error {
				_, _, err := p.api.PostMessageContext(ctx, user, page.PostOptions()...)
				return err
			})
		},
	})
}

// Say implements [chat.Screen].
func (p *poster) Say(at chat.Where, page view.Page) {
	p.Post(chat.Posting{Key: "say/" + rand.Text(), At: at, Group: at.Thread, Page: page, Urgency: chat.Reply, Final: true})
}

// PostOnce implements [chat.Screen].
func (p *poster) PostOnce(ctx context.Context, in *chat.Incoming, page view.Page) (ts string, err error) {
	key, id, done := in.Row.Key(), chat.FormatID(in.Row.ID), make(chan error, 1)
	p.Post(chat.Posting{
		Key: "asked/" + id + "/" + key.ThreadTS, At: chat.Where{Channel: key.ChannelID, Thread: key.ThreadTS}, Group: key.ThreadTS,
		Page: page, Urgency: chat.Reply, Final: true,
		Mark:     chat.Mark{Kind: "asked", Of: "inbox", ID: id, Since: in.Row.ReceivedAt, Doubtful: !in.Row.ReceivedAt.IsZero()}, // another process may have posted it
		OnPosted: func(posted string) { ts = posted },
		OnEnd:    func(err error) { done <- err },
	})
	select {
	case err := <-done:
		return ts, err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Replace implements [chat.Screen].
func (p *poster) Replace(in *chat.Incoming, page view.Page) {
	p.Post(chat.Posting{Key: "pick/" + in.Row.TS, At: chat.Where{Channel: in.Row.ChannelID, Thread: in.Row.ThreadTS}, Group: in.Row.ThreadTS, TS: in.Row.TS, Page: page, Final: true})
}

// Post implements [chat.Screen].
func (p *poster) Post(m chat.Posting) {
	posted := publish.Message{
		Key: m.Key, Channel: m.At.Channel, ThreadTS: m.At.Thread, Group: m.Group, TS: m.TS, Page: p.shown(m.Page), Priority: priorities[m.Urgency], Final: m.Final,
		Doubtful: m.Mark.Doubtful, Wanted: m.Wanted, OnPosted: m.OnPosted, OnEnd: m.OnEnd,
	}
	if m.Mark.Kind != "" {
		posted.Metadata = metadataOf(m.Mark)
		posted.Find = func(ctx context.Context) (string, error) { return p.Find(ctx, m.At, m.Mark) }
	}
	p.publisher.Show(posted)
}

var priorities = map[chat.Urgency]publish.Priority{chat.Soon: publish.Normal, chat.Reply: publish.Answer, chat.Decide: publish.Card, chat.Clicked: publish.Click}

// Forget implements [chat.Screen].
func (p *poster) Forget(key string) { p.publisher.Forget(key) }

// Delete implements [chat.Screen].
func (p *poster) Delete(at chat.Where, ts string, mark chat.Mark, end func(error)) {
	p.publisher.Once(publish.Call{
		Method: publish.DeleteMessage, Priority: publish.Answer, Group: at.Thread, What: "take a message away", Patient: end != nil, OnEnd: end,
		Do: func(ctx context.Context) (err error) {
			if ts == "" && mark.Kind != "" {
				ts, err = p.Find(ctx, at, mark)
			}
			if err != nil || ts == "" {
				return err
			}
			return p.remove(ctx, at.Channel, ts)
		},
	})
}

// remove deletes a message of ours, also one that is a stream.
func (p *poster) remove(ctx context.Context, channel, ts string) error {
	_, _, err := p.api.DeleteMessageContext(ctx, channel, ts)
	if publish.RefusedAs(err, "cant_delete_message") {
		if _, _, err := p.api.StopStreamContext(ctx, channel, ts); err != nil && !publish.IsOver(err) {
			return err
		}
		_, _, err = p.api.DeleteMessageContext(ctx, channel, ts)
	}
	if publish.RefusedAs(err, "message_not_found") {
		return nil
	}
	return err
}

// Shows implements [chat.Screen].
func (p *poster) Shows(key string) bool {
	shown, over := p.publisher.Known(key)
	return shown || over
}

// SetShare implements [chat.Screen].
func (p *poster) SetShare(s agent.Share) { p.publisher.SetShare(publish.Share(s)) }

// Watched implements [chat.Screen].
func (p *poster) Watched(threadTS string) { p.publisher.Watched(threadTS) }

// IsTemporary implements [chat.Screen].
func (*poster) IsTemporary(err error) bool { return publish.IsTemporary(err) }

// RetryAfter implements [chat.Screen].
func (*poster) RetryAfter(err error) (after time.Duration, ok bool) { return publish.RetryAfter(err) }

// Refused implements [chat.Screen].
func (*poster) Refused(err error) string { return publish.Code(err) }

// What is posted has metadata that says what it is, for whoever looks for it after a
// crash: a turn's page {"turn": id, "page": n}, and a [chat.Mark] {Of: ID}; numbers are strings.
const turnType = "deckhand_turn"

func metadataOf(m chat.Mark) slack.SlackMetadata { return metadata("deckhand_"+m.Kind, m.Of, m.ID) }

// metadata of a message that we post: its type, and a payload of pairs.
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
	// findBefore is how long before something was to be shown its message may have been posted: it may have been
	// shown for long, or our clock may differ from Slack's.
	findBefore = time.Hour
	// findPages bounds how much of a thread is read to find a message.
	findPages = 5
)

// Find implements [chat.Screen].
func (p *poster) Find(ctx context.Context, at chat.Where, mark chat.Mark) (ts string, err error) {
	return p.find(ctx, at, mark.Since, metadataOf(mark))
}

// find returns the ts of our message that was posted with this metadata, or "".
func (p *poster) find(ctx context.Context, at chat.Where, since time.Time, mark slack.SlackMetadata) (ts string, err error) {
	found, err := p.ourPosts(ctx, at, since)
	for _, m := range found {
		if marked(m, mark) {
			return m.Timestamp, nil
		}
	}
	return "", err
}

// ourPosts are our own messages of a thread, or the latest of a channel, since some time before then.
func (p *poster) ourPosts(ctx context.Context, at chat.Where, since time.Time) (out []slack.Message, err error) {
	h := chat.History{Channel: at.Channel, Thread: at.Thread, Oldest: slackTime(since.Add(-findBefore)), Limit: 200}
	for range findPages {
		found, page, err := p.read(ctx, h, true)
		if err != nil {
			return nil, fmt.Errorf("find a message that may have been posted: %w", err)
		}
		out = append(out, slices.DeleteFunc(found, func(m slack.Message) bool { return m.User != p.self.UserID })...)
		if h.Cursor = page.Next; h.Cursor == "" || !page.More || at.Thread == "" {
			break
		}
	}
	return out, nil
}

// read reads a page of a conversation's or a thread's messages; marks: with their metadata.
func (p *poster) read(ctx context.Context, h chat.History, marks bool) (found []slack.Message, page chat.Found, err error) {
	if h.Thread != "" {
		found, page.More, page.Next, err = p.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: h.Channel, Timestamp: h.Thread, Oldest: h.Oldest, Latest: h.Latest, Inclusive: h.Inclusive, Limit: h.Limit, Cursor: h.Cursor, IncludeAllMetadata: marks,
		})
		return found, page, err
	}
	answer, err := p.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
		ChannelID: h.Channel, Oldest: h.Oldest, Latest: h.Latest, Inclusive: h.Inclusive, Limit: h.Limit, Cursor: h.Cursor, IncludeAllMetadata: marks,
	})
	if err != nil {
		return nil, page, err
	}
	page.More, page.Next = answer.HasMore, answer.ResponseMetaData.NextCursor
	return answer.Messages, page, nil
}

// marked reports whether a message was posted with this metadata, or begun as a stream of
// the page of a turn that has it, which gets its metadata when it ends. Anybody may write metadata.
func marked(m slack.Message, mark slack.SlackMetadata) bool {
	if turn, page := mark.EventPayload["turn"], mark.EventPayload["page"]; mark.EventType == turnType && m.Metadata.EventType == "" {
		return streamOf(m, fmt.Sprint(turn)) == fmt.Sprint(page)
	}
	return m.Metadata.EventType == mark.EventType && maps.EqualFunc(m.Metadata.EventPayload, mark.EventPayload, func(a, b any) bool { return a == b })
}

// one is a message as it stands; nil if it is gone.
func (p *poster) one(ctx context.Context, channel, ts string) (*slack.Message, error) {
	found, _, err := p.read(ctx, chat.One(channel, ts, ts), false)
	for i := range found {
		if found[i].Timestamp == ts {
			return &found[i], err
		}
	}
	return nil, err
}

// Asks implements [chat.Screen].
func (p *poster) Asks(ctx context.Context, channel, ts string) (bool, error) {
	m, err := p.one(ctx, channel, ts)
	return m != nil && slices.ContainsFunc(m.Blocks.BlockSet, func(b slack.Block) bool {
		actions, ok := b.(*slack.ActionBlock)
		return ok && actions.Elements != nil && slices.ContainsFunc(actions.Elements.ElementSet, func(e slack.BlockElement) bool {
			button, ok := e.(*slack.ButtonBlockElement)
			return ok && view.Asks(button.ActionID)
		})
	}), err
}

// whereOf is the place of a thread.
func whereOf(k threads.ThreadKey) chat.Where {
	return chat.Where{Channel: k.ChannelID, Thread: k.ThreadTS}
}
