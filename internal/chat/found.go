package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/store/inbox"
)

// take takes posts of a conversation into the inbox, as if Slack had delivered them, the
// oldest first.
func (k *scanner) take(ctx context.Context, channel string, posts []Post) error {
	slices.SortFunc(posts, func(x, y Post) int { return cmp.Compare(x.TS, y.TS) })
	for _, m := range posts {
		if m.TS <= k.oldest { // a thread's first message comes with its replies
			continue
		}
		if err := k.takeOne(ctx, channel, m); err != nil {
			return err
		}
	}
	return nil
}

func (k *scanner) takeOne(ctx context.Context, channel string, m Post) error {
	a := k.app
	in, err := a.screen.FromRecord(channel, m, time.Since(m.Time()) > a.c.CatchUp)
	if err != nil || in == nil || (keeper{a}).ours(in.Row) {
		return err
	}
	if ours, err := (keeper{a}).relevantNow(ctx, in); err != nil || !ours {
		return err
	}
	// A process that died may have left it.
	in.Row.Marked = m.Waits
	_, fresh, err := a.c.Store.Receive(ctx, in.Row)
	if err == nil && !fresh && in.Row.Marked {
		err = a.c.Store.ShowWaits(ctx, inbox.Post{TeamID: in.Row.TeamID, ChannelID: channel, TS: m.TS})
	}
	if err != nil {
		return err
	}
	if fresh {
		k.found++
		a.c.Log.Info("a post that nobody heard", zap.String("channel", channel), zap.String("ts", m.TS), zap.String("user", m.User))
		a.inbox.lookAgain(0)
		return nil
	}
	if change := changeOf(in.Row, []Post{m}); change != nil && !(keeper{a}).onChange(ctx, change) {
		return errors.New("the database did not take a change of a message")
	}
	return nil
}

// changeOf is what the author of a post that is in the inbox has made of it, by Slack's
// record of it, or nil for nothing.
func changeOf(e inbox.Envelope, record []Post) *Incoming {
	in := &Incoming{Row: inbox.Envelope{Kind: inbox.Message, TeamID: e.TeamID, ChannelID: e.ChannelID, TS: e.TS, ThreadTS: e.ThreadTS, UserID: e.UserID}}
	i := slices.IndexFunc(record, func(m Post) bool { return m.TS == e.TS && m.User == e.UserID })
	switch {
	case i < 0:
		in.Change = &Change{Deleted: true}
	case record[i].Edit == nil || record[i].EditedBy != e.UserID:
		return nil
	default:
		in.Change = &Change{Apply: record[i].Edit}
	}
	return in
}

// tooLate tells the author of a post that nobody heard in time that it is not worked on.
func (a listener) tooLate(in *Incoming) (outcome string) {
	a.screen.React(in.Row.ChannelID, in.Row.TS, agent.PromptFailed, nil)
	a.Answer(in, fmt.Sprintf("The message marked ⚠️ was posted %s while Deckhand did not listen, and is too old to be worked on. Send it again, if it still matters.",
		strings.TrimSpace(ago(time.Since(timeOf(in.Row.TS))))))
	return "too old"
}

// ago is for people.
func ago(d time.Duration) string {
	if d < 2*time.Hour {
		return fmt.Sprintf("%.0f minutes ago,", d.Minutes())
	}
	return fmt.Sprintf("%.0f hours ago,", d.Hours())
}
