package main

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/playground/postgres"
)

// keptDatabase is the demo's private PostgreSQL. From keep on, one goroutine starts it
// again in the same folder, at the same address, whenever its server ends unasked; stop
// ends both.
type keptDatabase struct {
	o    postgres.Options
	log  *zap.Logger
	quit context.CancelFunc
	kept sync.WaitGroup

	mu     sync.Mutex
	server *postgres.Server // the last one that ran
}

// startDatabase starts the server and returns when it accepts connections; the errors
// are those of [postgres.Start].
func startDatabase(ctx context.Context, o postgres.Options) (*keptDatabase, error) {
	server, err := postgres.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Fresh = false
	return &keptDatabase{o: o, log: o.Log, quit: func() {}, server: server}, nil
}

// keep begins to keep the server running. restarted is called whenever a new one runs
// in place of one that ended.
func (k *keptDatabase) keep(ctx context.Context, restarted func()) {
	ctx, k.quit = context.WithCancel(context.WithoutCancel(ctx))
	k.kept.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-k.current().Done():
			}
			_ = k.current().Stop() // gives the folder back; why it ended is in the log
			server := k.startAgain(ctx)
			if server == nil {
				return
			}
			k.mu.Lock()
			k.server = server
			k.mu.Unlock()
			restarted()
		}
	})
}

// startAgain tries until a server runs, and returns nil when ctx ends first. What a
// killed server leaves for a moment (its sessions, its shared memory) is in the way of
// the first tries.
func (k *keptDatabase) startAgain(ctx context.Context) *postgres.Server {
	for told := false; ; told = true {
		server, err := postgres.Start(ctx, k.o)
		if err == nil {
			return server
		}
		if !told && ctx.Err() == nil {
			k.log.Error("start the private PostgreSQL again; trying until it runs", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartPause):
		}
	}
}

func (k *keptDatabase) current() *postgres.Server {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.server
}

// stop ends the server for good and waits for it.
func (k *keptDatabase) stop() error {
	k.quit()
	k.kept.Wait()
	return k.current().Stop()
}
