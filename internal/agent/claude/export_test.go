package claude

import (
	"os"
	"strings"
)

// MaxResult is how much of a tool's result is kept, in bytes.
const MaxResult = maxResult

// Hold hangs the other end of a pipe on the lifeline, as a reaper's orders.
func (l *Lifeline) Hold(orders *os.File) (release func()) { return l.hold(orders) }

// Text returns what the model said in the main conversation, its texts joined
// by blank lines.
func (t Output) Text() string {
	var texts []string
	for _, item := range t.Items {
		if item.Kind == ItemText && item.ParentID == "" && item.Text != "" {
			texts = append(texts, item.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// Corrupt returns how many lines were skipped because they were not valid
// JSON, and how many did not even begin like it.
func (p *Process) Corrupt() (corrupt, noise int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.corrupt, p.noise
}
