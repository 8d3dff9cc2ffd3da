// Package costs answers what people ask about costs in a chat: mentions, the slash
// command and the home tab, and digests that come by themselves. It understands the
// question by package report, has it cut down to what the person may see by package
// access, and has its [Screen] show the answer.
//
//	question.go   words → a question
//	rights.go     a question → what of it the person may see
//	answer.go     a question → an answer, to all or to one
//	schedule.go   digests, and when they are due
//	digests.go    a digest that is due → a message, once
//	home.go       the home tab's sums
//
// It starts no goroutines; all of it is safe for concurrent use.
package costs

import (
	"context"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/report"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Store are the ledger and the jobs: a [store.Store].
type Store interface {
	report.Ledger
	Schedule(ctx context.Context, jobs ...pg.Job) error
	ThreadByKey(ctx context.Context, k threads.ThreadKey) (threads.Thread, error)
	TimeZone() *time.Location
}

// Screen shows answers.
type Screen interface {
	// Deliver sends an answer. done is called once the message is there, or with why it will never be; the
	// files follow.
	Deliver(d view.CostDelivery, done func(error))
	// Delivered reports whether an answer with this mark stands in a channel since some time.
	Delivered(ctx context.Context, channel string, since time.Time, mark string) (bool, error)
	// Refused is the chat's word for why it did not do something, or empty.
	Refused(err error) string
}

// People are who they are now.
type People interface {
	Establish(ctx context.Context, team, user, channel string, ask func(access.Facts) access.Answer) access.Answer
	Name(ctx context.Context, user string) string
	// Names looks up what people and channels are called; private says which private channels may be named.
	Names(ctx context.Context, people, channels []string, private func(id string) bool) report.Names
	Direct(ctx context.Context, user string) (channel string, err error)
	// Zone names the time zone in which a person lives; empty if that is not known.
	Zone(ctx context.Context, user string) string
}

// Config is what an accountant needs. All but Digests, Teams and AskersTimeZone is required.
type Config struct {
	Team   string
	Store  Store
	Access access.Rules
	People People
	Screen Screen
	// Whisper answers one person so that nobody else sees it.
	Whisper func(at view.Place, user string, page view.Page)
	// Permalink is the address of a message, or empty.
	Permalink func(channel, ts string) string
	Redact    func(string) string
	Log       *zap.Logger

	// Digests are reports that are posted again and again.
	Digests []Digest
	// Teams are the teams that projects belong to, by project; see [report.Context].
	Teams map[string]string
	// AskersTimeZone counts days in the zone of the person who asks, as Slack has it,
	// instead of the database's.
	AskersTimeZone bool
}

// Accountant answers questions about costs.
type Accountant struct{ c Config }

// New is an accountant of one workspace.
func New(c Config) *Accountant { return &Accountant{c: c} }
