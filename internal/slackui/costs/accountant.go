// Package costs answers what people ask about costs in Slack: mentions, the slash
// command and the home tab, and digests that come by themselves. It understands the
// question by package report, has it cut down to what the person may see by package
// access, and delivers the answer in the richest rendering that Slack takes: a native
// chart or a picture, a table or plain text, and a file.
//
//	question.go   words → a question
//	rights.go     a question → what of it the person may see
//	answer.go     a question → an answer, to all or to one
//	delivery.go   an answer → a message and files
//	schedule.go   digests, and when they are due
//	digests.go    a digest that is due → a message, once
//	home.go       the home tab's sums
//
// The package renders nothing (render does) and paces nothing (publish does). It starts
// no goroutines; all of it is safe for concurrent use.
package costs

import (
	"context"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/report"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/slackui/publish"
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

// API is what is asked of Slack's Web API: a [slack.Client].
type API interface {
	PostMessageContext(ctx context.Context, channelID string, options ...slack.MsgOption) (channel, ts string, err error)
	PostEphemeralContext(ctx context.Context, channelID, userID string, options ...slack.MsgOption) (ts string, err error)
	UploadFileContext(ctx context.Context, p slack.UploadFileParameters) (*slack.FileSummary, error)
	GetConversationHistoryContext(ctx context.Context, p *slack.GetConversationHistoryParameters) (*slack.GetConversationHistoryResponse, error)
}

// Config is what an accountant needs. All but Digests and AskersTimeZone is required.
type Config struct {
	Team      string
	Store     Store
	Access    access.Rules
	People    *directory.Directory
	API       API
	Publisher *publish.Scheduler
	// Whisper answers one person so that nobody else sees it, Say posts into a thread;
	// threadTS is empty outside of threads.
	Whisper func(channel, threadTS, user string, page view.Page)
	Say     func(channel, threadTS string, page view.Page)
	// Permalink is the address of a message, or empty.
	Permalink func(channel, ts string) string
	Redact    func(string) string
	Log       *zap.Logger

	// Digests are reports that are posted again and again.
	Digests []Digest
	// AskersTimeZone counts days in the zone of the person who asks, as Slack has it,
	// instead of the database's.
	AskersTimeZone bool
}

// Accountant answers questions about costs.
type Accountant struct{ c Config }

// New is an accountant of one workspace.
func New(c Config) *Accountant { return &Accountant{c: c} }
