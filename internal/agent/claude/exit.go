package claude

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"
)

// ExitReason is why a process ended.
type ExitReason string

// The reasons for an end.
const (
	// ExitClean is an exit with status 0, or one that Stop asked for.
	ExitClean ExitReason = "clean"
	// ExitNotLoggedIn means that the CLI has no valid credentials.
	ExitNotLoggedIn ExitReason = "not logged in"
	// ExitUnknownSession means that the session to resume does not exist, as
	// for one that never finished a turn: start it anew.
	ExitUnknownSession ExitReason = "unknown session"
	// ExitIDInUse means that the new session's id exists: resume it.
	ExitIDInUse ExitReason = "id in use"
	// ExitBadFlag means that this version does not know one of the flags.
	ExitBadFlag ExitReason = "bad flag"
	// ExitBadInput means that the CLI could not read what it was sent.
	ExitBadInput ExitReason = "bad input"
	// ExitTurnFailed means that the CLI ended because its last turn did.
	ExitTurnFailed ExitReason = "turn failed"
	// ExitLineTooLong means that the CLI was ended for a line over the limit.
	ExitLineTooLong ExitReason = "line too long"
	// ExitUnreadable means that its output could not be read.
	ExitUnreadable ExitReason = "unreadable"
	// ExitKilled means that it was removed by [Process.Kill] or a late Stop, or
	// killed from outside.
	ExitKilled ExitReason = "killed"
	// ExitLimit means that whoever started it ended it for what it used; Detail says so, to
	// people.
	ExitLimit ExitReason = "limit"
	// ExitCrashed is every other end.
	ExitCrashed ExitReason = "crashed"
)

// ExitError says how a process ended.
type ExitError struct {
	Reason ExitReason
	// Code is the exit status, and Signal the signal that ended it; both are 0
	// where the reaper could not tell.
	Code   int
	Signal syscall.Signal
	// Stderr is the end of what it printed there, without control sequences.
	Stderr string
	// Detail is what the CLI itself gave as a reason, or the reader's error.
	Detail string
}

func (e *ExitError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "claude exited: %s", e.Reason)
	switch {
	case e.Signal != 0:
		fmt.Fprintf(&s, " (%v)", e.Signal)
	case e.Code != 0:
		fmt.Fprintf(&s, " (status %d)", e.Code)
	}
	if e.Detail != "" {
		s.WriteString(": " + e.Detail)
	}
	return s.String()
}

// Is reports whether it is [ErrKilled].
func (e *ExitError) Is(target error) bool { return target == ErrKilled && e.Reason == ExitKilled }

// Sentence says what happened and what to do, to people.
func (e *ExitError) Sentence() string {
	switch e.Reason {
	case ExitClean:
		return "The session has ended."
	case ExitNotLoggedIn:
		return "Claude Code is not logged in: an administrator has to set ANTHROPIC_API_KEY or log the CLI in."
	case ExitUnknownSession:
		return "Claude Code no longer has this conversation; your next message starts a new one."
	case ExitIDInUse:
		return "This conversation exists already; your next message continues it."
	case ExitBadFlag:
		return "The installed Claude Code does not accept one of our options: an administrator has to install the version that Deckhand was tested with."
	case ExitBadInput:
		return "Claude Code could not read a message of ours and stopped; send your message again."
	case ExitTurnFailed:
		return "Claude Code stopped after an error in this turn; your next message continues the conversation."
	case ExitLineTooLong:
		return "Claude Code produced one output that is too large to handle, so the session was stopped; ask for less at once and it continues."
	case ExitUnreadable:
		return "The connection to Claude Code broke; your next message continues the conversation."
	case ExitKilled:
		return "The session was stopped; your next message continues it."
	case ExitLimit:
		return e.Detail
	case ExitCrashed:
	}
	return "Claude Code stopped unexpectedly; your next message continues the conversation."
}

var (
	unknownSession = regexp.MustCompile(`No conversation found`)
	idInUse        = regexp.MustCompile(`(?i)session id .* is already in use`)
	badFlag        = regexp.MustCompile(`(?i)unknown option|too many arguments|argument .* is invalid|option .* argument missing`)
	badInput       = regexp.MustCompile(`Error parsing streaming input line`)
	notLoggedIn    = regexp.MustCompile(`(?i)not logged in|please run /login|invalid api key|authentication_error|oauth token (has expired|revoked)`)
	unsupported    = regexp.MustCompile(`(?i)unsupported control request|unknown (control )?request|not supported|unknown subtype`)
)

func unsupportedMessage(s string) bool { return unsupported.MatchString(s) }

// explain finds the reason in what is known at the end. The CLI says it only in
// words, on stderr or in its last result.
func (p *Process) explain(rep reaperReport) *ExitError {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &ExitError{Code: rep.code, Signal: syscall.Signal(rep.signal), Stderr: p.tail.String()}
	killed := isClosed(p.killed)
	stopped := isClosed(p.stopping)

	said := e.Stderr
	failed := false
	if r := p.lastResult; r != nil && r.IsError {
		failed = true
		e.Detail = strings.Join(append(r.Errors, r.Text), "; ")
		e.Detail = strings.Trim(e.Detail, "; ")
		said += "\n" + e.Detail
	}
	switch {
	case errors.Is(p.fatal, errLineTooLong):
		e.Reason, e.Detail = ExitLineTooLong, p.fatal.Error()
	case p.fatal != nil:
		e.Reason, e.Detail = ExitUnreadable, p.fatal.Error()
	case rep.exited && rep.code == 0 && rep.signal == 0:
		e.Reason = ExitClean
	case stopped && (rep.code == 128+int(syscall.SIGTERM) || rep.signal == int(syscall.SIGTERM)):
		e.Reason = ExitClean
	case killed:
		e.Reason = ExitKilled
	case !rep.exited || rep.signal == int(syscall.SIGKILL) || rep.signal == int(syscall.SIGTERM) ||
		rep.code == 128+int(syscall.SIGKILL) || rep.code == 128+int(syscall.SIGTERM):
		e.Reason = ExitKilled
	case unknownSession.MatchString(said):
		e.Reason = ExitUnknownSession
	case idInUse.MatchString(said):
		e.Reason = ExitIDInUse
	case badFlag.MatchString(e.Stderr):
		e.Reason = ExitBadFlag
	case badInput.MatchString(e.Stderr):
		e.Reason = ExitBadInput
	case notLoggedIn.MatchString(said):
		e.Reason = ExitNotLoggedIn
	case failed && rep.code == 1:
		e.Reason = ExitTurnFailed
	default:
		e.Reason = ExitCrashed
	}
	if e.Detail == "" && e.Reason != ExitClean {
		e.Detail = lastLine(e.Stderr)
	}
	return e
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "…"
	}
	return s
}
