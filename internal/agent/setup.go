package agent

import (
	"context"

	"go.uber.org/zap"
)

// prepare has the project's setup run, and tells people and the audit of it. Whatever
// becomes of the setup, the session starts.
func (h *leased) prepare(ctx context.Context) error {
	done, err := h.place.Prepare(ctx, h.thread, h.project, func() {
		h.front.Say(h.thread.Key(), "Setting up the folder first: "+h.project.Setup.Run)
	})
	if len(done.Entries) > 0 {
		if err := h.store.Audit(context.WithoutCancel(ctx), done.Entries...); err != nil {
			h.log.Error("write down what the setup has done", zap.Error(err))
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &startError{sentence: sentence(err), err: err}
	}
	if done.Output != "" {
		h.front.Attach(h.thread.Key(), "setup.txt", done.Output)
	}
	if done.Told != "" {
		h.front.Say(h.thread.Key(), done.Told)
	}
	return nil
}
