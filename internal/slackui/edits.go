package slackui

import (
	"cmp"
	"encoding/json"
	"fmt"

	"deckhand/internal/access"
	"deckhand/internal/chat"
	"deckhand/internal/store/inbox"
)

// edit is what an author has made of the text of a message of theirs.
type edit struct {
	text string
	edit messageEdit
	// files are those that the message still has; nil where that is not known.
	files []chat.SharedFile
}

type messageEdit struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// decodeChange decodes message_changed and message_deleted, or gives nil for what is no
// change of a person's own words: a link that was unfurled, another's hand, a bot's edit.
func (a *record) decodeChange(team string, event, payload json.RawMessage) (*chat.Incoming, error) {
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
	was, change := ev.Previous, &chat.Change{Deleted: true}
	switch {
	case ev.SubType == "message_deleted":
		was.TS = ev.Deleted
	case ev.Message.SubType == "tombstone": // it was deleted, and has replies
		was.TS = ev.Message.TS
	case ev.Message.Edited == nil || ev.Message.Edited.User != ev.Message.User:
		return nil, nil
	default:
		was = ev.Message
		change = &chat.Change{Apply: edit{was.Text, *was.Edited, was.Files}.apply}
		// In direct messages all was for us before.
		if ev.Previous.TS != "" && !access.IsDirect(ev.Channel) && !a.Mentions(ev.Previous.Text) && a.Mentions(was.Text) {
			change.Post = a.asPosted(payload)
		}
	}
	if was.User == "" || was.BotID != "" || was.TS == "" {
		return nil, nil
	}
	return &chat.Incoming{Deed: chat.Deed{Change: change}, Row: inbox.Envelope{
		Kind: inbox.Message, TeamID: team, ChannelID: ev.Channel, TS: was.TS, ThreadTS: cmp.Or(was.ThreadTS, was.TS), UserID: was.User,
	}}, nil
}

// asPosted is a message_changed as a message which was posted as it reads now; nil for another
// shape.
func (a *record) asPosted(payload json.RawMessage) *chat.Incoming {
	var message map[string]json.RawMessage
	outer, event, err := parts(payload)
	if err != nil || json.Unmarshal(event["message"], &message) != nil {
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
	post, err := a.decode(envelope{Type: "events_api", Payload: posted})
	if err != nil || post == nil || post.Message == nil {
		return nil
	}
	return post
}

// apply makes the payload of an edited message of that of the one before, or reports false
// if it says the same, or says what came after this edit.
func (c edit) apply(old json.RawMessage) (json.RawMessage, bool, error) {
	var was struct {
		Text   string      `json:"text"`
		Edited messageEdit `json:"edited"`
	}
	outer, event, err := parts(old)
	if err == nil {
		err = json.Unmarshal(outer["event"], &was)
	}
	if err != nil {
		return nil, false, fmt.Errorf("a message that was edited: %w", err)
	}
	if was.Text == c.text || c.edit.TS <= was.Edited.TS {
		return nil, false, nil
	}
	delete(event, "blocks") // they say what the text said
	says := map[string]any{"text": c.text, "edited": c.edit}
	if c.files != nil {
		says["files"] = c.files
	}
	changed, err := saying(outer, event, says)
	return changed, err == nil, err
}

// parts are a payload, and the event in it.
func parts(payload json.RawMessage) (outer, event map[string]json.RawMessage, err error) {
	if err = json.Unmarshal(payload, &outer); err == nil {
		err = json.Unmarshal(outer["event"], &event)
	}
	return outer, event, err
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

// addFiles makes the payload of a message with files of one that has none.
func (m postedMessage) addFiles(old json.RawMessage) (json.RawMessage, bool, error) {
	outer, event, err := parts(old)
	if err != nil {
		return nil, false, fmt.Errorf("a message that has files: %w", err)
	}
	if event["files"] != nil {
		return nil, false, nil
	}
	changed, err := saying(outer, event, map[string]any{"files": m.Files})
	return changed, err == nil, err
}
