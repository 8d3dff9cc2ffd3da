package place

import (
	"errors"

	"golang.org/x/sys/unix"
)

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
	if unsound, ok := errors.AsType[*sandboxError](err); ok {
		return "Nothing can run here: the sandbox of project " + unsound.project + " does not work on the bot's machine. An admin has to mend that: " + unsound.err.Error() + "."
	}
	if blocked, ok := errors.AsType[*wayError](err); ok {
		return "Nothing can run here: there is no way to the model of project " + blocked.project + ". An admin has to mend that: " + blocked.err.Error() + "."
	}
	if blocked, ok := errors.AsType[*webError](err); ok {
		return "Nothing can run here: there is no way to the web of project " + blocked.project + ". An admin has to mend that: " + blocked.err.Error() + "."
	}
	if unsigned, ok := errors.AsType[*signError](err); ok {
		return "Nothing can run here: commits of project " + unsigned.project + " cannot be signed. An admin has to mend that: " + unsigned.err.Error() + "."
	}
	if errors.Is(err, errNoBash) {
		return "Nothing can run here: " + errNoBash.Error() + "."
	}
	return ""
}
