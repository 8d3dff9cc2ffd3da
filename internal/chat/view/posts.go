package view

import (
	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/threads"
)

// Pull is a pull request as the forge had it last.
type Pull struct {
	Pull forges.Pull
	// Wrong says that there is something to mend.
	Wrong bool
	// Connects says that its requester can have pull requests opened by their own account.
	Connects bool
}

// Queue is what waits in a thread.
type Queue struct {
	// Start is the start of the thread's process that is waited for; nil for none.
	Start   *agent.StartWait
	Prompts []inbox.QueuedPrompt
	Names   map[string]string // of the authors of those that are shown, who are not called
	// Said is what a person said in a prompt, redacted.
	Said func(inbox.QueuedPrompt) string
}

const (
	// QueueShown bounds the prompts that are shown one by one, and queuedMost each one's
	// text.
	QueueShown = 8
)

// Place is where a question about costs is asked.
type Place struct {
	Channel  string
	ThreadTS string         // empty outside of threads
	Thread   threads.Thread // zero where nobody works
	// TS is the message's that asks, which may be given to the model instead; empty for none.
	TS string
	// Slash: by the slash command, whose answers only the person sees.
	Slash bool
}

// Private reports whether only the person sees an answer there, whatever it says.
func (p Place) Private() bool { return p.Slash || access.IsDirect(p.Channel) }
