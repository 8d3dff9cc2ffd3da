package agent

import (
	"context"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/workspace"
)

const (
	// tidyFirst is when the folders are looked at after the start, and tidyPace how often
	// then: each time reads all names in them.
	tidyFirst = time.Minute
	tidyPace  = time.Hour
)

// keepTidy looks at the threads' folders now and then, until ctx ends.
func (s *Supervisor) keepTidy(ctx context.Context) {
	if s.works == nil {
		return
	}
	next := time.NewTimer(tidyFirst)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		if err := s.tidy(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("look at the threads' folders", zap.Error(err))
		}
		next.Reset(tidyPace)
	}
}

// tidy counts the threads' folders, and has those put away that rest beyond the limits:
// each by a worker of its thread, which has the lease.
func (s *Supervisor) tidy(ctx context.Context) error {
	all, err := s.place.Folders(ctx)
	if err != nil {
		return err
	}
	bytes, ids := int64(0), make([]int64, len(all))
	for i, f := range all {
		bytes += f.Bytes
		ids[i] = f.Thread
	}
	s.folders.Store(int64(len(all)))
	s.folderBytes.Store(bytes)
	if s.workspaces.MaxAge == 0 && s.workspaces.MaxBytes == 0 {
		return nil
	}
	since, err := s.works.RestingThreads(ctx, ids)
	if err != nil {
		return err
	}
	var resting []workspace.Resting
	for _, f := range all {
		if at, ok := since[f.Thread]; ok {
			resting = append(resting, workspace.Resting{Folder: f, Since: at})
		}
	}
	for _, r := range s.workspaces.Surplus(all, resting, time.Now()) {
		s.post(r.Thread, message{kind: messagePutAway, eager: true})
	}
	return nil
}

// Workspaces is how many folders of threads a data folder has, and what is in them, in
// bytes.
func Workspaces(ctx context.Context, dataDir string) (n int, bytes int64, err error) {
	all, err := workspace.Folders(ctx, dataDir)
	for _, f := range all {
		bytes += f.Bytes
	}
	return len(all), bytes, err
}

// Workspaces is how many folders of threads there were in the data folder when they were
// counted last, and what they had, in bytes.
func (s *Supervisor) Workspaces() (n int, bytes int64) {
	return int(s.folders.Load()), s.folderBytes.Load()
}

// putAway removes the folder of a thread that has nothing to do, if nothing is lost with
// it.
func (w *worker) putAway(ctx context.Context) error {
	return w.interruptibly(ctx, func(ctx context.Context) error {
		stays, told, err := w.place.PutAway(ctx, w.thread, w.project)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			w.log.Warn("the folder of a thread that rests stays", zap.Error(err))
		case stays != "":
			w.log.Info("the folder of a thread that rests stays", zap.String("since", stays))
		default:
			w.log.Info("the folder of a thread that rests was put away")
		}
		for _, sentence := range told {
			w.say(ctx, sentence)
		}
		return nil
	})
}
