package place

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// need is something that every session of a project takes: what it is, and what people are told where it is missing.
type need struct{ what, missing string }

var (
	needSandbox   = need{"the sandbox", "the sandbox of project %s does not work on the bot's machine"}
	needModel     = need{"the way to the model", "there is no way to the model of project %s"}
	needWeb       = need{"the way to the web", "there is no way to the web of project %s"}
	needSignature = need{"sign commits", "commits of project %s cannot be signed"}
)

// needError is a need that is missing. What it says is for people.
type needError struct {
	need
	project string
	err     error
}

func (e *needError) Error() string { return e.what + " of project " + e.project + ": " + e.err.Error() }
func (e *needError) Unwrap() error { return e.err }

// Sentence is what people are told of why nothing can run here. It is empty for an error
// that is not the place's.
func Sentence(err error) string {
	if disk, ok := errors.AsType[*diskError](err); ok {
		return disk.sentence()
	}
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS} {
		if errors.Is(err, full) { // whichever of our writes it was
			return (&diskError{err: full}).sentence()
		}
	}
	if lacks, ok := errors.AsType[*needError](err); ok {
		return "Nothing can run here: " + fmt.Sprintf(lacks.missing, lacks.project) + ". An admin has to mend that: " + lacks.err.Error() + "."
	}
	if errors.Is(err, errNoBash) {
		return "Nothing can run here: " + errNoBash.Error() + "."
	}
	return ""
}
