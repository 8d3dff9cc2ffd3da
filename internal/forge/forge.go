// Package forge speaks to the forges that keep the projects' repositories: GitHub, GitLab
// and Gitea (Forgejo). It opens, reads and merges pull requests, reads their checks and
// reviews, and answers in their review threads. GitLab's merge requests are pull requests
// here.
//
// It is not for git: what is fetched and pushed goes through package gitway. It knows
// nothing of threads, Slack or PostgreSQL, and starts no goroutine that outlives a call.
package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Kind names the API that a forge has.
type Kind string

// The kinds of forges.
const (
	GitHub Kind = "github"
	GitLab Kind = "gitlab"
	Gitea  Kind = "gitea"
)

// Config is how to reach one repository's API. Kind, URL and Token are required.
type Config struct {
	Kind Kind
	// URL is the repository's address for git over HTTP: https://host/team/web.git.
	URL string
	// API is the address of the API, where it is not the usual one of the URL's host.
	API string
	// Token returns the credential of the next call; it is not kept. An empty one shows none.
	Token func(ctx context.Context) (string, error)
	// Client makes the calls; nil for one with a limit of 30 seconds that follows no
	// redirect to another host.
	Client *http.Client
}

// Repository is one repository as its credential may see and change it. It is safe for
// concurrent use. Its errors are an [*Error], wrapped.
type Repository interface {
	// Me returns the account that the credential belongs to.
	Me(ctx context.Context) (Account, error)
	// DefaultBranch returns the branch that pull requests go to where nobody says otherwise.
	DefaultBranch(ctx context.Context) (string, error)
	// Template returns the repository's template for the text of pull requests, empty if it
	// has none.
	Template(ctx context.Context) (string, error)
	// CodeOwners returns the CODEOWNERS file of a branch, empty if there is none.
	CodeOwners(ctx context.Context, branch string) (string, error)

	// Open opens a pull request. If one is open from the branch already, it fails with
	// [Exists].
	Open(ctx context.Context, p NewPull) (Pull, error)
	// Find returns the open pull request from a branch of this repository, or fails with
	// [NotFound].
	Find(ctx context.Context, branch string) (Pull, error)
	// Pull returns a pull request as it is now.
	Pull(ctx context.Context, number int) (Pull, error)
	// MarkReady ends a pull request's draft state. One that is no draft stays as it is.
	MarkReady(ctx context.Context, number int) error
	// Merge merges a pull request if its head is the commit that is named, else it fails with
	// [Moved]. If the forge does not let it be merged, it fails with [Blocked] and says why.
	Merge(ctx context.Context, number int, m NewMerge) (commit string, err error)

	// Checks returns the newest run of each check of a commit, by name.
	Checks(ctx context.Context, commit string) ([]Check, error)
	// FailureLog returns the end of the log of a check that has failed, at most limit bytes,
	// from its failing step where the forge tells it. It is empty if the forge keeps no log.
	FailureLog(ctx context.Context, c Check, limit int) (string, error)

	// Reviews returns the last verdict of each reviewer, or of who gave none the last comment;
	// the oldest first. Verdicts that were dismissed are left out.
	Reviews(ctx context.Context, number int) ([]Review, error)
	// Discussions returns the review threads of a pull request, the oldest first.
	Discussions(ctx context.Context, number int) ([]Discussion, error)
	// Reply answers in a review thread.
	Reply(ctx context.Context, number int, discussion, text string) error
	// Resolve marks a review thread as resolved. Where a forge cannot, it fails with
	// [Unsupported].
	Resolve(ctx context.Context, number int, discussion string) error
}

// Pictures is a [Repository] whose forge takes pictures by its API.
type Pictures interface {
	// Picture uploads a picture for a pull request, and returns the Markdown that shows it there.
	Picture(ctx context.Context, number int, name string, png []byte) (markdown string, err error)
	// Comment writes a comment on a pull request as a whole.
	Comment(ctx context.Context, number int, text string) error
}

// Account is somebody at a forge.
type Account struct {
	ID    int64
	Login string
}

// NewPull is a pull request to be opened, within one repository.
type NewPull struct {
	Title, Body  string
	Branch, Base string
	Draft        bool
	Labels       []string // those that the repository lacks are told in Pull.Unlabelled
	Reviewers    []string // logins, and team/name at GitHub; who cannot review is told in Pull.Unasked
}

// NewMerge is a merge that is asked for. Head is the whole id of the commit that has to be the
// pull request's head.
type NewMerge struct {
	Head   string
	Method MergeMethod
	// Title and Message are what the commit says that a merge or a squash makes; the forge's own
	// words where Title is empty.
	Title, Message string
}

// PullState says where a pull request is.
type PullState string

// The states of a pull request.
const (
	Open   PullState = "open"
	Merged PullState = "merged"
	Closed PullState = "closed"
)

// Mergeable says whether a forge would merge a pull request now.
type Mergeable string

// What a forge says of merging. MergeUnknown: it is still being computed, or not told.
const (
	MergeUnknown  Mergeable = "unknown"
	MergeClean    Mergeable = "clean"
	MergeConflict Mergeable = "conflict"
	MergeBlocked  Mergeable = "blocked" // by checks, reviews or a protected branch
)

// MergeMethod says what becomes of the commits.
type MergeMethod string

// The methods.
const (
	MergeCommit MergeMethod = "merge"
	MergeSquash MergeMethod = "squash"
	MergeRebase MergeMethod = "rebase"
)

// Pull is a pull request.
type Pull struct {
	Number       int
	URL          string // for people
	Title, Body  string
	State        PullState
	Draft        bool
	Branch, Base string
	Head         string // commit
	Author       string // login
	Mergeable    Mergeable
	MergedCommit string   // once it is merged
	MergedBy     string   // login
	Unasked      []string // told by Open alone: the reviewers who could not be asked
	Unlabelled   []string // and the labels that the repository lacks, or that could not be put on
}

// CheckState says how a check stands.
type CheckState string

// The states of a check. CheckSkipped is also one that says neither yes nor no.
const (
	CheckPending CheckState = "pending"
	CheckPassed  CheckState = "passed"
	CheckFailed  CheckState = "failed"
	CheckSkipped CheckState = "skipped"
)

// Check is one check of a commit: a job of a pipeline, a check run, a commit status.
type Check struct {
	ID      string // for FailureLog
	Name    string
	State   CheckState
	URL     string // for people
	Summary string // a line of the forge's, may be empty
}

// Verdict is what a review says.
type Verdict string

// The verdicts.
const (
	Approved         Verdict = "approved"
	ChangesRequested Verdict = "changes_requested"
	Commented        Verdict = "commented"
)

// Review is what a person said about a pull request as a whole.
type Review struct {
	Author  string // login
	Verdict Verdict
	Body    string
	Commit  string // that was reviewed; empty where the forge does not say
	At      time.Time
}

// Discussion is a review thread on a line of a file.
type Discussion struct {
	ID       string
	Path     string
	Line     int // 0 if it is about the file, or its line is gone
	Resolved bool
	Comments []Comment // the oldest first
}

// Comment is one in a review thread.
type Comment struct {
	Author string // login
	Body   string
}

// Reason says why a forge did not do something.
type Reason string

// The reasons that callers act on.
const (
	NotFound    Reason = "not found"    // or the credential may not see it
	Denied      Reason = "denied"       // the credential is not taken, or may not do this
	Exists      Reason = "exists"       // there is one already
	Moved       Reason = "moved"        // the branch is not where it was
	Blocked     Reason = "blocked"      // the forge's own rules do not allow it
	RateLimited Reason = "rate limited" // Until says when to come back
	Unavailable Reason = "unavailable"  // no answer, or half of one: it may have happened
	Invalid     Reason = "invalid"      // the forge does not take these values
	Unsupported Reason = "unsupported"  // this forge cannot
)

// Error is why a forge did not do something.
type Error struct {
	Reason Reason
	// Sentence is for people, and says what to do where something can be done.
	Sentence string
	// Until is when to ask again, if the forge said so.
	Until time.Time
	// Err has the details, for logs.
	Err error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Sentence
	}
	return fmt.Sprintf("%s: %v", e.Sentence, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason in an error's chain, empty if it has none.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// UntilOf returns when to ask again, zero if no error in the chain says it.
func UntilOf(err error) time.Time {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Until
	}
	return time.Time{}
}
