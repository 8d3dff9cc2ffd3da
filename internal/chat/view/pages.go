package view

import (
	"encoding/json"

	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/trust"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/turns"
)

// Choice is a command that somebody may have meant.
type Choice struct {
	Label string // for people
	Say   string // the command
}

// Encode is a value of ours that holds nothing but texts and numbers, in JSON.
func Encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Account is a forge or an MCP server at which a person can connect their own account, or has; Login
// is empty for not connected, and Dead is true of a connection that has ended.
type Account struct {
	Host, Login string
	Dead        bool
	Server      bool // it is an MCP server
}

// FeedbackReport is what people think of the answers, as an admin may read it.
type FeedbackReport struct {
	// Period says which, for people: "the last 30 days".
	Period   string
	Projects []turns.FeedbackStats
	Reasons  []FeedbackReason // the latest first
	// More are reasons besides those, and Hidden those of channels that the person cannot read.
	More, Hidden int
	// Redact takes secrets out; nil shows all.
	Redact func(string) string
}

// FeedbackReason is what somebody wrote about an answer.
type FeedbackReason struct {
	turns.FeedbackReason
	Permalink string // of the answer; may be empty
}

// GrantLine is a standing permission as a list shows it to one person.
type GrantLine struct {
	Grant approvals.Grant
	// Link is the permalink of the thread that it came from; may be empty.
	Link string
	// MayRevoke: the person who looks may revoke it.
	MayRevoke bool
}

// Grants is the answer to "which grants are there".
type Grants struct {
	Lines []GrantLine
	// More is how many there are besides.
	More int
	// Posture is the one where it was asked; empty: there are several.
	Posture policy.Posture
	// Redact takes secrets out of patterns; nil shows all.
	Redact func(string) string
}

// Reminder is a message to people that a request waits for them.
type Reminder struct {
	Approval approvals.Approval
	// Link is the permalink of the request's card; may be empty.
	Link string
	// To are the users and user groups to mention; may be empty.
	To []string
	// Escalation: those who were asked first have not decided.
	Escalation bool
	// Redact takes secrets out; nil shows all.
	Redact func(string) string
}

// Help is what can be said to the bot.
type Help struct {
	BotUser   string
	Complaint string // a sentence in front, or empty
	Lines     []HelpLine
	Attach    string // what may be attached, in a sentence, or empty
	// Commands are the repository's own that are trusted.
	Commands []trust.Entry
}

// HelpLine is a command: how to say it, with examples, and what it does.
type HelpLine struct {
	Say   []string
	Means string
}
