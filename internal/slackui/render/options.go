package render

import (
	"time"

	"deckhand/internal/store"
)

// Options say how things are shown.
type Options struct {
	// ShowThinking shows the model's thinking; by default there is only a word
	// that it thinks.
	ShowThinking bool
	// Redact takes secrets out of a text before it is shown, usually
	// redact.Redactor's; nil shows all.
	Redact func(string) string
	// Workspace is the folder that paths are shown relative to; for an approval,
	// its own folder is used.
	Workspace string
	// SessionGrant says in a sentence what "Approve for this session" would allow,
	// as in "Allows `go test ./...`, exactly as shown, until this session ends."
	// Without it, or when it returns nothing, a card has no such button.
	SessionGrant func(store.Approval) string
	// GrantMade tells when the grant was made that allowed an approval; without it,
	// or when it returns the zero time, a card does not say so.
	GrantMade func(store.Approval) time.Time
}

func (o Options) redact(s string) string {
	if o.Redact == nil || s == "" {
		return s
	}
	return o.Redact(s)
}
