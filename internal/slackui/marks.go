package slackui

import (
	"context"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/chat"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/store/threads"
)

// waitEmoji marks a message that waits: ⏳.
const waitEmoji = "hourglass_flowing_sand"

// marks are the reactions that say that a prompt was heard and how it ended, by Slack's names. ✅ is for
// what is done and for nothing else.
var marks = map[agent.PromptMark]string{
	chat.Heard:             "eyes",                  // 👀
	agent.PromptDone:       "white_check_mark",      // ✅
	agent.PromptFailed:     "warning",               // ⚠️
	agent.PromptStopped:    "black_square_for_stop", // ⏹️
	agent.PromptPaused:     "double_vertical_bar",   // ⏸️
	agent.PromptOverBudget: "money_with_wings",      // 💸
}

// React implements [chat.Screen].
func (p *poster) React(channel, ts string, m agent.PromptMark, end func(error)) {
	if marks[m] != "" {
		p.react(channel, ts, marks[m], true, publish.Call{Priority: publish.Answer, Patient: true, OnEnd: end})
	} else if end != nil {
		end(nil)
	}
}

// Unreact implements [chat.Screen].
func (p *poster) Unreact(channel, ts string, m agent.PromptMark, end func(error)) {
	p.react(channel, ts, marks[m], false, publish.Call{Priority: publish.Normal, Patient: true, OnEnd: end})
}

// MarkWaits implements [chat.Screen].
func (p *poster) MarkWaits(channel, ts string, waits bool, end func(error)) {
	p.react(channel, ts, waitEmoji, waits, publish.Call{Priority: publish.Answer, Key: "waits/" + channel + "/" + ts, Replace: true, Patient: end != nil, OnEnd: end})
}

// react puts an emoji below a message, or takes it away.
func (p *poster) react(channel, ts, emoji string, there bool, c publish.Call) {
	var call func(context.Context, string, slack.ItemRef) error
	if c.Method, call = publish.RemoveReaction, p.api.RemoveReactionContext; there {
		c.Method, call = publish.AddReaction, p.api.AddReactionContext
	}
	c.Group, c.What = ts, "react "+emoji
	c.Do = func(ctx context.Context) error { return call(ctx, emoji, slack.NewRefToMessage(channel, ts)) }
	p.publisher.Once(c)
}

// Attach implements [chat.Screen].
func (p *poster) Attach(k threads.ThreadKey, name, text string, end func(error)) {
	file := slack.UploadFileParameters{Content: text, Filename: name, Title: name, Channel: k.ChannelID, ThreadTimestamp: k.ThreadTS}
	p.publisher.Upload(file, publish.Call{Priority: publish.Normal, Group: k.ThreadTS, What: "attach " + name, OnEnd: end})
}
