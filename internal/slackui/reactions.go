package slackui

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// What an emoji below a message can do, where the team says so.
const (
	ReactionBegins = "begin" // work about the message, for whoever put the emoji there
	ReactionStops  = "stop"  // the turn of the message's thread
)

// aboutReacted are the words of a person who has begun work on somebody else's message by an emoji.
const aboutReacted = "Do what this message asks for, or answer it."

// reactionOf is what an emoji of a person's does; empty for nothing.
func (a *App) reactionOf(e *otherEvent) string {
	name, _, _ := strings.Cut(e.Reaction, "::") // the tone of a hand is nobody's order
	return a.c.Reactions[name]
}

// onReaction does what an emoji does, for a person who may say the same in words. Of a channel
// that has no project, and of threads without a session, nothing is meant.
func (a *App) onReaction(ctx context.Context, in *incoming) (outcome string, err error) {
	do, act := a.reactionOf(in.event), access.Stop
	if do == ReactionBegins {
		act = access.Prompt
	}
	found, _, _, err := a.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
		ChannelID: in.store.ChannelID, Timestamp: in.store.TS, Oldest: in.store.TS, Latest: in.store.TS, Inclusive: true, Limit: 2,
	})
	var m slack.Message
	for _, is := range found {
		if is.Timestamp == in.store.TS {
			m = is
		}
	}
	if err != nil || m.Timestamp == "" {
		a.log.Warn("read the message that has an emoji", zap.Error(err))
		return "no such message", nil
	}
	in.store.ThreadTS = cmp.Or(m.ThreadTimestamp, m.Timestamp)
	thread, err := a.c.Store.ThreadByKey(ctx, in.store.Key())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", err
	}
	places := a.c.Access.Places.Of(in.store.ChannelID)
	if thread.ID == 0 && (act == access.Stop || len(places) == 0) {
		return "in no thread of ours", nil
	}
	who := in.person()
	who.Project = thread.Project
	if r := a.authorise(ctx, who, act); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	switch {
	case act == access.Stop:
		return a.stop(ctx, in.store.Key(), in.store.UserID, "")
	case m.User == in.store.UserID && m.BotID == "":
		return a.beginOwn(ctx, in, m)
	}
	ts, err := a.postAsked(ctx, in, aboutReacted)
	if err != nil {
		return "", err
	}
	return "asked", a.takeAsked(ctx, in, ts, aboutReacted, &aboutMessage{User: m.User, Text: m.Text, Files: sharedFiles(m.Files)})
}

// beginOwn takes a person's own message as if it mentioned us.
func (a *App) beginOwn(ctx context.Context, in *incoming, m slack.Message) (outcome string, err error) {
	more := map[string]any{"deckhand_for_model": true}
	if len(m.Files) > 0 {
		more["files"] = sharedFiles(m.Files)
	}
	fresh, err := a.takeAs(ctx, in, m.Timestamp, m.Text, more)
	if err != nil || fresh {
		return "begun", err
	}
	return a.giveToModel(ctx, in, m.Timestamp, "") // it was heard before, and may have been talk
}

// reacted is the part of an emoji's event that says where it was put.
type reacted struct {
	Type    string `json:"type"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

// reactionHelp are the emojis that do something, by their names, for people who ask what does.
func reactionHelp(all map[string]string) (lines []render.HelpLine) {
	means := map[string]string{ReactionBegins: "an emoji below a message: begin work on it", ReactionStops: "an emoji in a thread: interrupt what runs"}
	for _, does := range []string{ReactionBegins, ReactionStops} {
		var say []string
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if all[name] == does {
				say = append(say, ":"+name+":")
			}
		}
		if len(say) > 0 {
			lines = append(lines, render.HelpLine{Say: say, Means: means[does]})
		}
	}
	return lines
}
