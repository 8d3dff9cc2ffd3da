package gitway

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// The names of this binary inside sessions.
const (
	helperName = "git-way"
	signerName = "git-sign"
)

// RunHelper must be called first in main, and in TestMain of packages that use a [Gate]: a session's git may have
// started this binary to reach its forge, or to have a commit signed. It only carries bytes between git and the socket
// beside it.
func RunHelper() {
	name := filepath.Base(os.Args[0])
	socket := filepath.Join(filepath.Dir(os.Args[0]), socketName)
	var err error
	switch name {
	case helperName:
		err = carry(socket)
	case signerName:
		err = fetchSignature(socket, os.Args[1:])
	default:
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// dial opens a conversation.
func dial(socket string) (*net.UnixConn, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("there is no way to the bot: %w", err)
	}
	if _, err := io.WriteString(conn, os.Getenv(tokenVariable)+"\n"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func carry(socket string) error {
	conn, err := dial(socket)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the process ends
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.CloseWrite()
		_, _ = io.Copy(io.Discard, os.Stdin) // git still writes when the other side has stopped reading
	}()
	_, err = io.Copy(os.Stdout, conn)
	_ = os.Stdout.Close() // git sees the end
	return err
}

// fetchSignature is what git takes for ssh-keygen: -Y sign … FILE writes FILE.sig. An empty one leaves a commit without
// a signature, such as somebody else's that is rebased, and git goes on.
func fetchSignature(socket string, args []string) error {
	if len(args) < 3 || args[0] != "-Y" || args[1] != "sign" {
		program, err := exec.LookPath("ssh-keygen") // which verifies
		if err != nil {
			return err
		}
		return syscall.Exec(program, append([]string{program}, args...), os.Environ()) //nolint:gosec // git's own words
	}
	file := args[len(args)-1]
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	conn, err := dial(socket)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the process ends
	if _, err := conn.Write(slices.Concat(packet(signService+" /"), text)); err != nil {
		return err
	}
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	signature, err := io.ReadAll(conn)
	switch {
	case err != nil:
		return err
	case len(signature) == 0:
		return errors.New("the bot could not sign it")
	case string(signature) == unsigned:
		signature = nil
	}
	return os.WriteFile(file+".sig", signature, 0o600) //nolint:gosec // beside what git has named
}
