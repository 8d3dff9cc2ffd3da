package slackui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/slack-go/slack"

	"deckhand/internal/chat"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/store/inbox"
)

// record is what people wrote, as Slack delivers and keeps it.
type record struct{ *poster }

// History implements [chat.Screen].
func (a *record) History(ctx context.Context, h chat.History) (chat.Found, error) {
	found, out, err := a.read(ctx, h, false)
	if publish.RefusedAs(err, "thread_not_found") {
		err = fmt.Errorf("%w: %w", chat.ErrNoThread, err)
	}
	for _, m := range found {
		out.Posts = append(out.Posts, a.post(m))
	}
	return out, err
}

// post is a message of Slack's record.
func (a *record) post(m slack.Message) chat.Post {
	p := chat.Post{
		TS: m.Timestamp, ThreadTS: m.ThreadTimestamp, User: m.User, Team: m.Team, Name: m.Username, BotID: m.BotID, Kind: m.SubType, Gone: m.SubType == "tombstone",
		Text: m.Text, Files: sharedFiles(m.Files), LatestReply: m.LatestReply, Replies: m.ReplyCount,
		Waits: slices.ContainsFunc(m.Reactions, func(r slack.ItemReaction) bool {
			return r.Name == waitEmoji && slices.Contains(r.Users, a.self.UserID)
		}),
	}
	if m.Edited != nil {
		p.EditedBy, p.EditedTS = m.Edited.User, m.Edited.Timestamp
		p.Edit = edit{text: m.Text, edit: messageEdit{User: p.EditedBy, TS: p.EditedTS}}.apply
	}
	return p
}

// Directs implements [chat.Screen].
func (a *record) Directs(ctx context.Context, cursor string) (channels []string, next string, err error) {
	list, next, err := a.api.GetConversationsForUserContext(ctx, &slack.GetConversationsForUserParameters{Types: []string{"im"}, Limit: 200, Cursor: cursor})
	for _, c := range list {
		channels = append(channels, c.ID)
	}
	return channels, next, err
}

// FromRecord implements [chat.Screen].
func (a *record) FromRecord(channel string, p chat.Post, late bool) (*chat.Incoming, error) {
	id := foundPost
	if late {
		id = latePost
	}
	id += channel + "/" + p.TS
	event := map[string]any{
		"type": "message", "subtype": p.Kind, "user": p.User, "bot_id": p.BotID, "team": p.Team,
		"text": p.Text, "ts": p.TS, "channel": channel,
	}
	if p.ThreadTS != p.TS { // which a thread's first message has here, and not in an event
		event["thread_ts"] = p.ThreadTS
	}
	if len(p.Files) > 0 {
		event["files"] = p.Files
	}
	if p.Edit != nil {
		event["edited"] = messageEdit{User: p.EditedBy, TS: p.EditedTS}
	}
	payload, err := json.Marshal(map[string]any{"team_id": a.self.TeamID, "event_id": id, "event": event})
	if err != nil {
		return nil, fmt.Errorf("a post that was found: %w", err)
	}
	in, err := a.decode(envelope{ID: id, Type: envelopeType[inbox.Message], Payload: payload})
	if err != nil || in == nil || in.Message == nil {
		return nil, err
	}
	return in, nil
}

// Payload implements [chat.Screen].
func (a *record) Payload(row inbox.Envelope, team string, m chat.Message) (json.RawMessage, error) {
	event := map[string]any{
		"type": "message", "user": row.UserID, "team": team, "channel": row.ChannelID, "ts": row.TS,
		"text": a.mention() + " " + cmp.Or(m.Text, slackEscaper.Replace(m.Said)),
	}
	if row.ThreadTS != "" && row.ThreadTS != row.TS {
		event["thread_ts"] = row.ThreadTS
	}
	if len(m.Files) > 0 {
		event["files"] = m.Files
	}
	if m.About != nil {
		event["deckhand_about"] = m.About
	}
	if m.ForModel {
		event["deckhand_for_model"] = true
	}
	payload, err := json.Marshal(map[string]any{"team_id": row.TeamID, "event_id": row.EventID, "event": event})
	if err != nil {
		return nil, fmt.Errorf("what somebody asks for: %w", err)
	}
	return payload, nil
}
