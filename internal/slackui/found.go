package slackui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/store"
)

// A post that was found, not delivered, has one of these before its event id.
const (
	foundPost = "found/" // it is worked on
	latePost  = "late/"  // it is too old for that; its author is told
)

// take takes posts of a conversation into the inbox, as if Slack had delivered them, the
// oldest first.
func (k *scanner) take(ctx context.Context, channel string, posts []slack.Message) error {
	slices.SortFunc(posts, func(x, y slack.Message) int { return cmp.Compare(x.Timestamp, y.Timestamp) })
	for _, m := range posts {
		if m.Timestamp <= k.oldest { // a thread's first message comes with its replies
			continue
		}
		if err := k.takeOne(ctx, channel, m); err != nil {
			return err
		}
	}
	return nil
}

func (k *scanner) takeOne(ctx context.Context, channel string, m slack.Message) error {
	a := k.app
	in, err := a.incomingOf(channel, m)
	if err != nil || in == nil || a.ours(in.store) {
		return err
	}
	if ours, err := a.relevantFound(ctx, in); err != nil || !ours {
		return err
	}
	// A process that died may have left it.
	in.store.Marked = slices.ContainsFunc(m.Reactions, func(r slack.ItemReaction) bool {
		return r.Name == waitEmoji && slices.Contains(r.Users, a.self.UserID)
	})
	_, fresh, err := a.c.Store.Receive(ctx, in.store)
	if err == nil && !fresh && in.store.Marked {
		err = a.c.Store.ShowWaits(ctx, store.Post{TeamID: in.store.TeamID, ChannelID: channel, TS: m.Timestamp})
	}
	if err != nil {
		return err
	}
	if fresh {
		k.found++
		a.log.Info("a post that nobody heard", zap.String("channel", channel), zap.String("ts", m.Timestamp), zap.String("user", m.User))
		a.inbox.lookAgain(0)
		return nil
	}
	if change := changeOf(in.store, []slack.Message{m}); change != nil && !a.onChange(ctx, change) {
		return errors.New("the database did not take a change of a message")
	}
	return nil
}

// incomingOf is a message of Slack's record as an event would have brought it; nil for what
// none would have brought to us.
func (a *App) incomingOf(channel string, m slack.Message) (*incoming, error) {
	id := foundPost
	if time.Since(timeOf(m.Timestamp)) > a.c.CatchUp {
		id = latePost
	}
	id += channel + "/" + m.Timestamp
	event := map[string]any{
		"type": "message", "subtype": m.SubType, "user": m.User, "bot_id": m.BotID, "team": m.Team,
		"text": m.Text, "ts": m.Timestamp, "channel": channel,
	}
	if m.ThreadTimestamp != m.Timestamp { // which a thread's first message has here, and not in an event
		event["thread_ts"] = m.ThreadTimestamp
	}
	if len(m.Files) > 0 {
		event["files"] = sharedFiles(m.Files)
	}
	if m.Edited != nil {
		event["edited"] = messageEdit{User: m.Edited.User, TS: m.Edited.Timestamp}
	}
	payload, err := json.Marshal(map[string]any{"team_id": a.self.TeamID, "event_id": id, "event": event})
	if err != nil {
		return nil, fmt.Errorf("a post that was found: %w", err)
	}
	in, err := decode(envelope{ID: id, Type: envelopeType[store.KindMessage], Payload: payload})
	if err != nil || in == nil || in.message == nil {
		return nil, err
	}
	return in, nil
}

// relevantFound is relevantNow for a post that was found. What was said in a thread before
// it became ours was nobody's business, and is not now.
func (a *App) relevantFound(ctx context.Context, in *incoming) (bool, error) {
	if in.addressed(a.mention()) {
		return true, nil
	}
	if ours, err := a.relevantNow(ctx, in); err != nil || !ours {
		return false, err
	}
	opened, err := a.c.Store.OpenedAt(ctx, in.store.Key())
	if errors.Is(err, store.ErrNotFound) {
		return true, nil // what opens it is in the inbox, and older
	}
	return err == nil && in.store.TS > opened, err
}

// changeOf is what the author of a post that is in the inbox has made of it, by Slack's
// record of it, or nil for nothing.
func changeOf(e store.Envelope, record []slack.Message) *incoming {
	in := &incoming{store: store.Envelope{Kind: store.KindMessage, TeamID: e.TeamID, ChannelID: e.ChannelID, TS: e.TS, ThreadTS: e.ThreadTS, UserID: e.UserID}}
	i := slices.IndexFunc(record, func(m slack.Message) bool { return m.Timestamp == e.TS && m.User == e.UserID })
	switch {
	case i < 0:
		in.change = &changedMessage{deleted: true}
	case record[i].Edited == nil || record[i].Edited.User != e.UserID:
		return nil
	default:
		in.change = &changedMessage{text: record[i].Text, edited: messageEdit{User: e.UserID, TS: record[i].Edited.Timestamp}}
	}
	return in
}

// tooLate tells the author of a post that nobody heard in time that it is not worked on.
func (a *App) tooLate(in *incoming) (outcome string) {
	a.react(in.store.ChannelID, in.store.TS, endMarks[agent.PromptFailed], nil)
	a.answer(in, fmt.Sprintf("The message marked ⚠️ was posted %s while Deckhand did not listen, and is too old to be worked on. Send it again, if it still matters.",
		strings.TrimSpace(ago(time.Since(timeOf(in.store.TS))))))
	return "too old"
}

// ago is for people.
func ago(d time.Duration) string {
	if d < 2*time.Hour {
		return fmt.Sprintf("%.0f minutes ago,", d.Minutes())
	}
	return fmt.Sprintf("%.0f hours ago,", d.Hours())
}
