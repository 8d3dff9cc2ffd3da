package main

import (
	"context"
	"net"
	"sync"
	"testing"
)

// wire is the way from one replica to the database, which accidents happen to: it can be
// cut, so that connections break and none is made, and it can be parted, so that nothing
// arrives and nobody is told, as when a network swallows packets.
type wire struct {
	listener net.Listener
	target   func() (network, address string)
	serving  sync.WaitGroup
	// watch, if it is not nil, is given what a connection is about to send to the database,
	// and may hold it up.
	watch func(from net.Conn, sent []byte)

	mu    sync.Mutex
	ends  map[net.Conn]bool
	open  chan struct{} // closed while bytes pass
	isCut bool
}

func newWire(t testing.TB, target func() (network, address string)) *wire {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newWireFrom(t, l, target)
}

func newWireFrom(t testing.TB, l net.Listener, target func() (network, address string)) *wire {
	t.Helper()
	w := &wire{listener: l, target: target, ends: map[net.Conn]bool{}, open: make(chan struct{})}
	close(w.open)
	w.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.serving.Go(func() { w.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.heal()
		w.breakAll()
		w.serving.Wait()
	})
	return w
}

func (w *wire) address() string { return w.listener.Addr().String() }

func (w *wire) carry(c net.Conn) {
	defer c.Close() //nolint:errcheck // nothing is lost
	w.mu.Lock()
	isCut := w.isCut
	w.mu.Unlock()
	network, address := w.target()
	if isCut {
		return
	}
	far, err := (&net.Dialer{}).DialContext(context.Background(), network, address)
	if err != nil {
		return
	}
	defer far.Close() //nolint:errcheck // nothing is lost
	w.mu.Lock()
	w.ends[c], w.ends[far] = true, true
	w.mu.Unlock()
	var both sync.WaitGroup
	for i, way := range [][2]net.Conn{{c, far}, {far, c}} {
		both.Go(func() {
			w.pass(way[0], way[1], i == 0)
			_, _ = c.Close(), far.Close()
		})
	}
	both.Wait()
	w.mu.Lock()
	delete(w.ends, c)
	delete(w.ends, far)
	w.mu.Unlock()
}

func (w *wire) pass(from, to net.Conn, out bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if out && w.watch != nil {
			w.watch(from, buffer[:n])
		}
		w.mu.Lock()
		open := w.open
		w.mu.Unlock()
		<-open
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// part swallows what is sent until heal.
func (w *wire) part() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.open:
		w.open = make(chan struct{})
	default:
	}
}

// cut breaks all connections, and makes none until heal.
func (w *wire) cut() {
	w.mu.Lock()
	w.isCut = true
	w.mu.Unlock()
	w.breakAll()
}

func (w *wire) breakAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.ends {
		_ = c.Close()
	}
}

func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = false
	select {
	case <-w.open:
	default:
		close(w.open)
	}
}
