package agent

import (
	"context"

	"go.uber.org/zap"
)

// prepare has the project's setup run, and tells people and the audit of it. Whatever
// becomes of the setup, the session starts.
func (w *worker) prepare(ctx context.Context) error {
	done, err := w.place.Prepare(ctx, w.thread, w.project, func() {
		w.front.Say(w.thread.Key(), "Setting up the folder first: "+w.project.Setup.Run)
	})
	if len(done.Entries) > 0 {
		if err := w.store.Audit(context.WithoutCancel(ctx), done.Entries...); err != nil {
			w.log.Error("write down what the setup has done", zap.Error(err))
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &startError{sentence: sentence(err), err: err}
	}
	if done.Output != "" {
		w.front.Attach(w.thread.Key(), "setup.txt", done.Output)
	}
	if done.Told != "" {
		w.front.Say(w.thread.Key(), done.Told)
	}
	return nil
}
