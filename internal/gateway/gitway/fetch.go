package gitway

import (
	"context"
	"io"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/beginning"
)

// upload answers a fetch from the mirror.
func (s *Session) upload(ctx context.Context, c *idling, m *mirror, r request, e *Event) {
	if e.Refused = s.fresh(ctx, m); e.Refused != "" {
		return
	}
	cmd := localCommand(ctx, m.dir, "upload-pack", "--strict", "--timeout=600", m.dir)
	if r.version2 {
		cmd.Env = append(cmd.Env, "GIT_PROTOCOL=version=2")
	}
	said := beginning.Buffer{Most: maxNote}
	answer, wanted := &counter{to: c}, &wants{}
	cmd.Stdout, cmd.Stderr = answer, &said
	err := feed(c, cmd, io.TeeReader(c, wanted))
	e.Bytes, e.Wanted = answer.n, wanted.objects
	if err != nil && ctx.Err() == nil {
		// A git that only lists refs hangs up without waiting for an answer.
		s.log.Debug("answer a fetch", zap.String("repository", m.remote.URL), zap.Error(exitErrorOf(ctx, err, said.String())))
	}
}

// counter counts the bytes written through it.
type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

// feeding is a command that reads from a conversation.
type feeding interface {
	StdinPipe() (io.WriteCloser, error)
	Start() error
	Wait() error
}

// feed copies r from the conversation to a command until the command ends: only it knows where its input ends.
func feed(c *idling, cmd feeding, r io.Reader) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	copied := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(copied)
		buf := make([]byte, 64<<10)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				if _, e := in.Write(buf[:n]); e != nil {
					break
				}
			}
			select {
			case <-done:
				err = io.EOF
			default:
			}
			if err != nil {
				break
			}
		}
		_ = in.Close() // it sees the end
	}()
	err = cmd.Wait()
	close(done)
	for { // a read that begins now would set a new deadline
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
		select {
		case <-copied:
			_ = c.Conn.SetReadDeadline(time.Time{})
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}
