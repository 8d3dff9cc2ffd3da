package agent

import (
	"context"

	"go.uber.org/zap"
)

// checkDisk says why no turn may begin, as a [*startError].
func (h *leased) checkDisk(ctx context.Context) error {
	err := h.place.Takes(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &startError{sentence: sentence(err), err: err}
	}
	return nil
}

// tellOfDisk says once, at the end of a turn, that what it has done may be forgotten.
func (h *leased) tellOfDisk(ctx context.Context) {
	err := h.place.Takes(ctx)
	if err == nil || ctx.Err() != nil {
		h.diskTold = h.diskTold && ctx.Err() != nil
		return
	}
	h.log.Error("what is written into the data folder is lost; free space on its disk", zap.Error(err))
	if !h.diskTold {
		h.diskTold = true
		h.say(ctx, "The disk of the bot's data folder is full or broken. What was said and done in this turn may be unknown when the session is started the next time. An admin has to see to it.")
	}
}
