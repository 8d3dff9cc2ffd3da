package gitway

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
)

// helperName is the name of this binary inside sessions.
const helperName = "git-way"

// RunHelper must be called first in main, and in TestMain of packages that use a [Gate]: a session's git may have
// started this binary to reach its forge. It only carries bytes between git and the socket beside it.
func RunHelper() {
	if filepath.Base(os.Args[0]) != helperName {
		return
	}
	if err := carry(filepath.Join(filepath.Dir(os.Args[0]), socketName)); err != nil {
		fmt.Fprintln(os.Stderr, "git-way:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func carry(socket string) error {
	conn, err := net.Dial("unix", socket) //nolint:noctx // it lasts as long as the process
	if err != nil {
		return fmt.Errorf("there is no way to the project's forge: %w", err)
	}
	defer conn.Close() //nolint:errcheck // the process ends
	if _, err := io.WriteString(conn, os.Getenv(tokenVariable)+"\n"); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		if half, ok := conn.(*net.UnixConn); ok {
			_ = half.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // git still writes when the other side has stopped reading
	}()
	_, err = io.Copy(os.Stdout, conn)
	_ = os.Stdout.Close() // git sees the end
	return err
}
