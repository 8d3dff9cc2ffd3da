package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// changedMessage is what an author has made of a message of theirs since it was posted.
type changedMessage struct {
	deleted bool
	text    string
	edited  messageEdit
	// files are those that the message still has; nil where that is not known.
	files []sharedFile
	// before is what the message said before, and whole the event's payload as if the message
	// had been posted so; empty where Slack does not tell.
	before string
	whole  json.RawMessage
}

type messageEdit struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// decodeChange decodes message_changed and message_deleted, or gives nil for what is no
// change of a person's own words: a link that was unfurled, another's hand, a bot's edit.
func decodeChange(team string, event, payload json.RawMessage) (*incoming, error) {
	type part struct {
		postedMessage
		Edited *messageEdit `json:"edited"`
	}
	var ev struct {
		SubType  string `json:"subtype"`
		Channel  string `json:"channel"`
		Deleted  string `json:"deleted_ts"`
		Message  part   `json:"message"`
		Previous part   `json:"previous_message"`
	}
	if err := json.Unmarshal(event, &ev); err != nil {
		return nil, fmt.Errorf("a change of a message: %w", err)
	}
	was, change := ev.Previous, &changedMessage{deleted: true}
	switch {
	case ev.SubType == "message_deleted":
		was.TS = ev.Deleted
	case ev.Message.SubType == "tombstone": // it was deleted, and has replies
		was.TS = ev.Message.TS
	case ev.Message.Edited == nil || ev.Message.Edited.User != ev.Message.User:
		return nil, nil
	default:
		was = ev.Message
		change = &changedMessage{text: was.Text, edited: *was.Edited, files: was.Files}
		if ev.Previous.TS != "" {
			change.before, change.whole = ev.Previous.Text, asPosted(payload)
		}
	}
	if was.User == "" || was.BotID != "" || was.TS == "" {
		return nil, nil
	}
	thread := was.ThreadTS
	if thread == "" {
		thread = was.TS
	}
	return &incoming{change: change, store: store.Envelope{
		Kind: store.KindMessage, TeamID: team, ChannelID: ev.Channel, TS: was.TS, ThreadTS: thread, UserID: was.User,
	}}, nil
}

// asPosted is the payload of a message_changed, as that of a message which was posted as it
// reads now; nil for another shape.
func asPosted(payload json.RawMessage) json.RawMessage {
	var outer, event, message map[string]json.RawMessage
	if json.Unmarshal(payload, &outer) != nil || json.Unmarshal(outer["event"], &event) != nil || json.Unmarshal(event["message"], &message) != nil {
		return nil
	}
	for _, key := range []string{"channel", "channel_type"} {
		if event[key] != nil {
			message[key] = event[key]
		}
	}
	posted, err := saying(outer, message, map[string]any{"type": "message"})
	if err != nil {
		return nil
	}
	return posted
}

// mentions is the message that a change makes one for us: it mentions us now, and did not
// before. Else nil. In direct messages all was for us before.
func (in *incoming) mentions(mention string) *incoming {
	c := in.change
	if c.whole == nil || strings.HasPrefix(in.store.ChannelID, "D") || strings.Contains(c.before, mention) || !strings.Contains(c.text, mention) {
		return nil
	}
	post, err := decode(envelope{Type: "events_api", Payload: c.whole})
	if err != nil || post == nil || post.message == nil {
		return nil
	}
	return post
}

// What authors of messages that are worked on are told when they change them.
const (
	editedLate  = "Deckhand works on this message already, as it read before your edit. Reply in the thread to add something, or write “stop” there to stop it."
	deletedLate = "Deckhand works on the message that you deleted. Write “stop” in the thread to stop it."
)

// tellLate tells the author of a message that is worked on that a change of it comes too late.
func (a *App) tellLate(ctx context.Context, in *incoming) {
	e := in.store
	was, err := a.c.Store.WorkedOn(ctx, store.Post{TeamID: e.TeamID, ChannelID: e.ChannelID, TS: e.TS, UserID: e.UserID})
	if errors.Is(err, store.ErrNotFound) {
		return
	}
	late := deletedLate
	if !in.change.deleted && err == nil {
		late = editedLate
		var differs bool
		if _, differs, err = in.change.apply(was); err == nil && !differs {
			return
		}
	}
	if err != nil {
		a.log.Error("tell that a change comes too late", zap.String("ts", e.TS), zap.Error(err))
		return
	}
	a.reply(in, render.Sentence(late))
}

// onChange has a message that still waits say what its author has made of it: it is
// received again, so that they are authorised again. What is worked on already is not
// changed. It reports false when that could not be written down, and Slack has to tell it
// again.
func (a *App) onChange(ctx context.Context, in *incoming) (ok bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, ackLimit, fmt.Errorf("change a message: no end in %s", ackLimit))
	defer cancel()
	e, post := in.store, store.Post{TeamID: in.store.TeamID, ChannelID: in.store.ChannelID, TS: in.store.TS, UserID: in.store.UserID}
	var changed bool
	var rows []store.OutboxRow
	var err error
	if in.change.deleted {
		changed, rows, err = a.c.Store.Delete(ctx, post)
	} else {
		changed, err = a.c.Store.Edit(ctx, post, in.change.apply)
	}
	if err != nil {
		return a.changeFailed(in, "What you made of your message", err)
	}
	if !changed {
		return true
	}
	a.log.Info("a message that waits was changed", zap.String("ts", e.TS), zap.String("user", e.UserID), zap.Bool("deleted", in.change.deleted))
	a.outbox.tell(rows...)
	if thread, err := a.c.Store.ThreadByKey(ctx, e.Key()); err == nil {
		a.refreshQueue(thread)
	}
	a.inbox.lookAgain(0)
	return true
}

// changeFailed reports false when Slack has to tell a change again. Else its author is told
// that what, at the beginning of a sentence, was not taken.
func (a *App) changeFailed(in *incoming, what string, err error) (told bool) {
	_, again := passes(err)
	a.log.Error("a change of a message that waits", zap.String("ts", in.store.TS), zap.Bool("again", again), zap.Error(err))
	if !again {
		a.reply(in, render.Sentence(what+" could not be taken, as Deckhand has trouble with it. Write it in a message of its own; if that fails, too, ask an admin to look at its log."))
	}
	return !again
}

// apply makes the payload of an edited message of that of the one before, or reports false
// if it says the same, or says what came after this edit.
func (c *changedMessage) apply(old json.RawMessage) (json.RawMessage, bool, error) {
	var outer, event map[string]json.RawMessage
	if err := json.Unmarshal(old, &outer); err != nil {
		return nil, false, fmt.Errorf("a message that was edited: %w", err)
	}
	if err := json.Unmarshal(outer["event"], &event); err != nil {
		return nil, false, fmt.Errorf("a message that was edited: %w", err)
	}
	var was struct {
		Text   string      `json:"text"`
		Edited messageEdit `json:"edited"`
	}
	if err := json.Unmarshal(outer["event"], &was); err != nil {
		return nil, false, fmt.Errorf("a message that was edited: %w", err)
	}
	if was.Text == c.text || c.edited.TS <= was.Edited.TS {
		return nil, false, nil
	}
	delete(event, "blocks") // they say what the text said
	says := map[string]any{"text": c.text, "edited": c.edited}
	if c.files != nil {
		says["files"] = c.files
	}
	changed, err := saying(outer, event, says)
	return changed, err == nil, err
}

// saying is a payload whose event says this besides.
func saying(outer, event map[string]json.RawMessage, says map[string]any) (changed json.RawMessage, err error) {
	for key, value := range says {
		if event[key], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	if outer["event"], err = json.Marshal(event); err != nil {
		return nil, err
	}
	return json.Marshal(outer)
}

// completeFiles gives a post that is in the inbox the files that this delivery of it has:
// a mention may come as two events, of which the first has none. It reports false when that
// could not be written down, and Slack has to tell it again.
func (a *App) completeFiles(ctx context.Context, in *incoming) (ok bool) {
	if in.message == nil || len(in.message.Files) == 0 {
		return true
	}
	e := in.store
	changed, err := a.c.Store.Edit(ctx, store.Post{TeamID: e.TeamID, ChannelID: e.ChannelID, TS: e.TS, UserID: e.UserID}, in.addFiles)
	if err != nil {
		return a.changeFailed(in, "The files of your message", err)
	}
	if changed {
		a.inbox.lookAgain(0)
	}
	return true
}

// addFiles makes the payload of a message with files of one that has none.
func (in *incoming) addFiles(old json.RawMessage) (json.RawMessage, bool, error) {
	var outer, event map[string]json.RawMessage
	if err := json.Unmarshal(old, &outer); err != nil {
		return nil, false, fmt.Errorf("a message that has files: %w", err)
	}
	if err := json.Unmarshal(outer["event"], &event); err != nil {
		return nil, false, fmt.Errorf("a message that has files: %w", err)
	}
	if event["files"] != nil {
		return nil, false, nil
	}
	changed, err := saying(outer, event, map[string]any{"files": in.message.Files})
	return changed, err == nil, err
}
