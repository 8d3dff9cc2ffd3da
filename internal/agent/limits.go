package agent

import (
	"cmp"
	"runtime"
	"time"
)

// Limits are the supervisor's times and counts. The zero value of a field means
// its default.
type Limits struct {
	// IdleTimeout is how long a session may be idle before it is hibernated: 30 min.
	IdleTimeout time.Duration
	// ParkAfter is how long a turn that only waits for people keeps its process: 5 min.
	ParkAfter time.Duration
	// MaxLive is how many processes may live at once: 20.
	MaxLive int
	// Starts is how many processes may start at once: as many as there are cores.
	Starts int
	// LeaseTTL is after how long a replica that is silent is taken for dead: 15 s.
	LeaseTTL time.Duration
	// Drain is how long turns may go on when the bot is to stop; without it they are
	// interrupted at once.
	Drain time.Duration
	// Poll is how often work is looked for that no notice told of: 10 s.
	Poll time.Duration
	// AnswerTimeout is how long the CLI may take to start, and to answer what the bot
	// asks of it: 30 s.
	AnswerTimeout time.Duration
	// StopTimeout is how long the CLI may take to end a turn that was stopped: 10 s.
	StopTimeout time.Duration
	// Silence is how long the CLI may say nothing while it should speak: 10 min.
	Silence time.Duration
	// Quiet is after how long a turn of which nothing is heard says so: 5 min.
	Quiet time.Duration
	// Transcript is how much is copied of a conversation, in bytes: 64 MiB.
	Transcript int64
	// KeepTranscripts is how long the copies of a thread in which nobody writes are kept,
	// and its work where that is somewhere else, too: 90 days. Negative is for ever.
	KeepTranscripts time.Duration
}

func (l Limits) withDefaults() Limits {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	or(&l.IdleTimeout, 30*time.Minute)
	or(&l.ParkAfter, 5*time.Minute)
	or(&l.LeaseTTL, 15*time.Second)
	or(&l.Poll, 10*time.Second)
	or(&l.AnswerTimeout, 30*time.Second)
	or(&l.StopTimeout, 10*time.Second)
	or(&l.Silence, 10*time.Minute)
	or(&l.Quiet, 5*time.Minute)
	l.KeepTranscripts = cmp.Or(l.KeepTranscripts, 90*24*time.Hour)
	if l.Transcript <= 0 {
		l.Transcript = 64 << 20
	}
	if l.MaxLive <= 0 {
		l.MaxLive = 20
	}
	if l.Starts <= 0 {
		l.Starts = runtime.GOMAXPROCS(0)
	}
	return l
}
