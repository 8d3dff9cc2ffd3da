package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

const (
	queuedMost = 150
	nameMost   = 60
)

// Queue is the message that says what waits in a thread.
func Queue(v view.Queue) Page {
	var p Page
	if v.Start != nil {
		p.Text = startWait(*v.Start)
		p.Blocks = append(p.Blocks, contextBlock("", p.Text))
	}
	if n := len(v.Prompts); n > 0 {
		head := "⏳ A message waits until this turn has ended:"
		if n > 1 {
			head = fmt.Sprintf("⏳ %d messages wait until this turn has ended, in this order:", n)
		}
		if p.Text == "" {
			p.Text = strings.TrimSuffix(strings.TrimSuffix(head, ":"), ", in this order") + "."
		}
		p.Blocks = append(p.Blocks, contextBlock("", head))
		for i, q := range v.Prompts[:min(n, view.QueueShown)] {
			p.Blocks = append(p.Blocks, section("", fmt.Sprintf("%d. %s: %s", i+1, mrkdwn.EscapeWithin(plaintext.OneLine(v.Names[q.UserID]), nameMost), mrkdwn.EscapeWithin(plaintext.OneLine(v.Said(q)), queuedMost))))
			send, drop := "Send now", "Drop"
			if n > 1 { // of several, each label names its own
				send, drop = fmt.Sprintf("Send %d now", i+1), fmt.Sprintf("Drop %d", i+1)
			}
			value := strconv.FormatInt(q.InboxID, 10)
			p.Blocks = append(p.Blocks, slack.NewActionBlock("", button(view.ActionSendNow, value, send, ""), button(view.ActionDrop, value, drop, "")))
		}
		if n > view.QueueShown {
			p.Blocks = append(p.Blocks, contextBlock("", fmt.Sprintf("and %d more", n-view.QueueShown)))
		}
		p.Blocks = append(p.Blocks, contextBlock("", "To change a message, edit it. *Send now* interrupts what runs."))
	}
	return p
}

// startWait says what a start waits for.
func startWait(s agent.StartWait) string {
	switch {
	case s.Attempts > 0:
		return fmt.Sprintf("⏳ Claude Code did not start: this machine is busy, or ended it. Deckhand tries again at %s (%d tries so far).", clockTime(s.NextTry), s.Attempts)
	case s.Before == 1:
		return fmt.Sprintf("⏳ Claude Code starts soon: one session is before this one; this machine starts %d at once.", s.AtOnce)
	}
	return fmt.Sprintf("⏳ Claude Code starts soon: %d sessions are before this one; this machine starts %d at once.", s.Before, s.AtOnce)
}
