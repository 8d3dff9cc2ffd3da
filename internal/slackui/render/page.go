package render

import "github.com/slack-go/slack"

// Page is the content of one Slack message. It is a plain value; whoever holds
// one must not change its blocks, since the publisher may be sending them.
type Page struct {
	// Text is what notifications and screen readers get, and what is shown when
	// Slack refuses the blocks: mrkdwn, already escaped, at most 3,000
	// characters, never empty.
	Text string
	// Blocks is the message as people see it; empty means Text alone.
	Blocks []slack.Block
	// Instead says what to write where Slack does not take the page's buttons: mrkdwn, of
	// a few sentences; empty where there is nothing to be pressed, or nothing to write.
	Instead string `json:"-"`
	// Whom are mentions of those who are asked; the blocks have them too.
	Whom string `json:"-"`
	// Cut reports that the page leaves text out and says so: the caller attaches
	// what [Files] returns.
	Cut bool
	// Stream is the page as far as it can be appended to, while it grows and at its turn's
	// end; nil where it can only be shown as a whole.
	Stream *Stream `json:"-"`
	// Number is a turn's page's own while the turn grows; it counts from 0, with gaps. CardID is
	// the card in whose message it stands; empty for a message of its own.
	Number int    `json:",omitempty"`
	CardID string `json:",omitempty"`
}

// PostOptions are the page as slack-go takes it for a new message. Links are not unfurled.
func (p Page) PostOptions() []slack.MsgOption {
	return append(p.MsgOptions(), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
}

// MsgOptions are the page for an edit or an ephemeral message, which take no arguments
// about links.
func (p Page) MsgOptions() []slack.MsgOption {
	o := []slack.MsgOption{slack.MsgOptionText(p.Text, false)}
	if len(p.Blocks) > 0 {
		o = append(o, slack.MsgOptionBlocks(p.Blocks...))
	}
	return o
}
