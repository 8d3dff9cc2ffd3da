// Package freeport finds addresses for programs that cannot be given a listener.
package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Address is a loopback address, as host:port, on which a program can listen a moment later. Its port is none that
// the system gives to connections, which would take it meanwhile.
func Address(ctx context.Context) (string, error) {
	for try := 0; ; try++ {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(15_000+rand.IntN(15_000))) //nolint:gosec // any will do
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
		if err == nil {
			return at, l.Close()
		}
		if try == 100 {
			return "", fmt.Errorf("look for a free port: %w", err)
		}
	}
}
