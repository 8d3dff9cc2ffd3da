package settings

import (
	"time"

	"deckhand/internal/sandbox"
)

// transcriptsYAML bounds the size and age of stored conversations.
type transcriptsYAML struct {
	Limit    string `yaml:"limit"`
	KeepDays *int   `yaml:"keep_days"`
}

// leastTranscript is the smallest limit: an empty session of Claude Code has some 200 KiB. mostTranscript is the
// most that a home keeps.
const (
	leastTranscript = 1 << 20
	mostTranscript  = 1 << 30
	mostDays        = 36_500
)

// Transcripts are the limit of a stored conversation in bytes, and its age; 0 is the agent's default.
func (f File) Transcripts() (limit int64, keep time.Duration) {
	t := f.document.Transcripts
	if t.Limit != "" {
		limit, _ = size(t.Limit) // already validated
	}
	if t.KeepDays != nil {
		keep = time.Duration(*t.KeepDays) * 24 * time.Hour
	}
	return limit, keep
}

func (v *validation) transcripts(t transcriptsYAML) {
	if t.Limit != "" {
		switch n, err := size(t.Limit); {
		case err != nil:
			v.add("$.transcripts.limit", "%v", err)
		case n < leastTranscript || n > mostTranscript:
			v.add("$.transcripts.limit", "%s is not a limit here; write one from %s to %s", t.Limit, sandbox.Size(leastTranscript), sandbox.Size(mostTranscript))
		}
	}
	if n := t.KeepDays; n != nil && (*n < 1 || *n > mostDays) {
		v.add("$.transcripts.keep_days", "%d is not a number of days; write one from 1 to %d", *n, mostDays)
	}
}
