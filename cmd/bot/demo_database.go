package main

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/playground/postgres"
)

// keptDatabase is the demo's private PostgreSQL. After keep, one goroutine restarts it in the same folder and at
// the same address whenever it ends unexpectedly; stop ends both.
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

// keep restarts the server from now on. restarted is called after each restart.
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

// startAgain tries until a server runs, and returns nil when ctx ends first. Remains of a killed server (its
// sessions, its shared memory) may obstruct the first tries.
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

// stop ends the server permanently and waits for it.
func (k *keptDatabase) stop() error {
	k.quit()
	k.kept.Wait()
	return k.current().Stop()
}
