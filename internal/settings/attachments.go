package settings

import (
	"deckhand/internal/attachment"
)

// attachmentsYAML bounds files attached to messages. Missing keys have defaults; max_files: 0 allows none.
type attachmentsYAML struct {
	MaxFiles *int   `yaml:"max_files"`
	MaxSize  string `yaml:"max_size"`
	// ToolPictures says whether pictures that tools return are shown in threads.
	ToolPictures *bool `yaml:"tool_pictures"`
}

// A file is read into memory, and a Slack message has up to ten.
const (
	leastAttachment = 1 << 10
	mostAttachment  = 100 << 20
	mostAttachments = 20
)

// Attachments are the limits of files attached to messages.
func (f File) Attachments() (l attachment.Limits) {
	a := f.document.Attachments
	if a.MaxSize != "" {
		l.Bytes, _ = size(a.MaxSize) // already validated
	}
	if a.MaxFiles != nil {
		if l.Files = *a.MaxFiles; l.Files == 0 {
			l.Files = -1
		}
	}
	return l.WithDefaults()
}

// HidesPictures reports whether pictures from tools stay out of threads.
func (f File) HidesPictures() bool {
	show := f.document.Attachments.ToolPictures
	return show != nil && !*show
}

func (v *validation) attachments(a attachmentsYAML) {
	if n := a.MaxFiles; n != nil && (*n < 0 || *n > mostAttachments) {
		v.add("$.attachments.max_files", "%d is not a number of files of a message; write one up to %d, or 0 for none", *n, mostAttachments)
	}
	if a.MaxSize == "" {
		return
	}
	switch n, err := size(a.MaxSize); {
	case err != nil:
		v.add("$.attachments.max_size", "%v", err)
	case n < leastAttachment || n > mostAttachment:
		v.add("$.attachments.max_size", "%s is not a limit here; write one from %s to %s", a.MaxSize, attachment.Size(leastAttachment), attachment.Size(mostAttachment))
	}
}
