package render

// Options say how things are shown.
type Options struct {
	// ShowThinking shows the model's thinking; by default there is only a word
	// that it thinks.
	ShowThinking bool
	// Redact takes secrets out of a text before it is shown, usually
	// Redactor.Redact; nil shows all.
	Redact func(string) string
	// Workspace is the folder that paths are shown relative to; for an approval,
	// its own folder is used.
	Workspace string
	// Continued says that the turn goes on in a later message: this one has no
	// status, no controls and no sum.
	Continued bool
}

func (o Options) redact(s string) string {
	if o.Redact == nil || s == "" {
		return s
	}
	return o.Redact(s)
}
