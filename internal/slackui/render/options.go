package render

import (
	"slices"

	"deckhand/internal/chat/view"
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
	Calling *view.Calling
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
