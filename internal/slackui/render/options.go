package render

import (
	"slices"

	"deckhand/internal/store/approvals"
)

// Options say how things are shown.
type Options struct {
	// Quiet holds back a running turn's first message that would tell of steps alone, since it
	// is said elsewhere that work goes on. Posted says that it stands already.
	Quiet, Posted bool
	// Files says that files can be attached: of what is too long for a message, or a table
	// that is too big for one, there is the beginning, and [Files] have the whole.
	Files bool
	// Call is the Slack user whom a turn's closing answer mentions; empty for nobody.
	Call string
	// Redact takes secrets out of a text before it is shown, usually
	// redact.Redactor's; nil shows all.
	Redact func(string) string
	// Workspace is the folder that paths are shown relative to; for an approval,
	// its own folder is used.
	Workspace string
	// OneFile is the file that a pending request would write, if edits below its folder may
	// be allowed with it; else "". Without it no card offers that.
	OneFile func(approvals.Approval) string
	// Calling says whom a pending card calls; nil names everybody whom it is about.
	Calling *Calling
}

// Calling is how a pending card calls people. A mention calls, once, when the card is posted:
// whoever is not to be called is shown by name.
type Calling struct {
	// Mention are the users and user groups whom the card of an approval mentions.
	Mention func(approvals.Approval) []string
	// Sent are those who have the card as a direct message, or are about to; nil for nobody.
	Sent func(approvals.Approval) []string
	// Name is what a person is called, or their id.
	Name func(userID string) string
	// Direct is how many people have the card as a direct message.
	Direct int
	// Copy says that this is such a copy, and Thread is the permalink of its thread; it is
	// empty where nobody else can open it.
	Copy   bool
	Thread string
}

// mentions reports whether an approval's card may name somebody by a mention.
func (o Options) mentions(a approvals.Approval, id string) bool {
	return o.Calling == nil || a.Status != approvals.Pending || slices.Contains(o.Calling.Mention(a), id)
}

func (o Options) redact(s string) string {
	if o.Redact == nil || s == "" {
		return s
	}
	return o.Redact(s)
}
