package chat

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
)

// What an emoji below a message can do, where the team says so.
const (
	ReactionBegins = "begin" // work about the message, for whoever put the emoji there
	ReactionStops  = "stop"  // the turn of the message's thread
)

// aboutReacted are the words of a person who has begun work on somebody else's message by an emoji.
const aboutReacted = "Do what this message asks for, or answer it."

// reactionOf is what an emoji of a person's does; empty for nothing.
func (a *gate) reactionOf(emoji string) string {
	name, _, _ := strings.Cut(emoji, "::") // the tone of a hand is nobody's order
	return a.c.Reactions[name]
}

// onReaction does what an emoji does, for a person who may say the same in words. Of a channel
// that has no project, and of threads without a session, nothing is meant.
func (a prompter) onReaction(ctx context.Context, in *Incoming) (outcome string, err error) {
	do, act := a.reactionOf(in.Emoji), access.Stop
	if do == ReactionBegins {
		act = access.Prompt
	}
	m, err := a.postAt(ctx, in.Row.ChannelID, in.Row.TS, in.Row.TS)
	if _, passes := a.screen.RetryAfter(err); passes {
		return "", fmt.Errorf("read the message that has an emoji: %w", err)
	}
	if err != nil || m.TS == "" {
		a.c.Log.Warn("read the message that has an emoji", zap.Error(err))
		return "no such message", nil
	}
	in.Row.ThreadTS = cmp.Or(m.ThreadTS, m.TS)
	thread, err := a.here(ctx, in)
	if err != nil {
		return "", err
	}
	places := a.c.Access.Places.Of(in.Row.ChannelID)
	if thread.ID == 0 && (act == access.Stop || len(places) == 0) {
		return "in no thread of ours", nil
	}
	if a.refuses(ctx, in, in.at(thread), act) {
		return "refused", nil
	}
	switch {
	case act == access.Stop:
		return a.stop(ctx, in.Row.Key(), in.Row.UserID, "")
	case m.User == in.Row.UserID && m.BotID == "":
		return a.beginOwn(ctx, in, m)
	}
	ts, err := a.screen.PostOnce(ctx, in, view.Asked{User: in.Row.UserID, Prompt: aboutReacted})
	if err != nil {
		return "", err
	}
	_, err = a.takeAs(ctx, in, ts, Message{Said: aboutReacted, About: aboutPost(m)})
	return "asked", err
}

// beginOwn takes a person's own message as if it mentioned us.
func (a prompter) beginOwn(ctx context.Context, in *Incoming, m Post) (outcome string, err error) {
	fresh, err := a.takeAs(ctx, in, m.TS, Message{Text: m.Text, Files: m.Files, ForModel: true})
	if err != nil || fresh {
		return "begun", err
	}
	return a.giveToModel(ctx, in, m.TS, "") // it was heard before, and may have been talk
}

// reactionHelp are the emojis that do something, by their names, for people who ask what does.
func reactionHelp(all map[string]string) (lines []view.HelpLine) {
	means := map[string]string{ReactionBegins: "an emoji below a message: begin work on it", ReactionStops: "an emoji in a thread: interrupt what runs"}
	for _, does := range []string{ReactionBegins, ReactionStops} {
		var say []string
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if all[name] == does {
				say = append(say, ":"+name+":")
			}
		}
		if len(say) > 0 {
			lines = append(lines, view.HelpLine{Say: say, Means: means[does]})
		}
	}
	return lines
}
