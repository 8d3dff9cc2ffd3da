package egress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
)

// tunnel answers CONNECT.
func (s *Session) tunnel(w http.ResponseWriter, r *http.Request) {
	t, err := readTarget(r.RequestURI, 0)
	if err != nil {
		s.refuseTunnel(w, refuse("the gateway connects to host:port: %v", err))
		return
	}
	by, err := s.admit(r.Context(), t)
	if err != nil {
		s.tally.refused(t)
		s.refuseTunnel(w, s.why(t, err))
		return
	}
	out, err := s.dial(r.Context(), t, by, "https")
	if err != nil {
		s.tally.refused(t)
		s.refuseTunnel(w, s.why(t, err))
		return
	}
	defer out.Close() //nolint:errcheck // nothing is left to write
	in, early, err := hijack(w)
	if err != nil {
		return // the caller has gone
	}
	defer in.Close() //nolint:errcheck // nothing is left to write
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	s.carry(by.during, t, &earlyConn{in, early}, out)
}

// refuseTunnel answers in the status line, too: pip and go show only that.
func (s *Session) refuseTunnel(w http.ResponseWriter, n *refusal) {
	in, _, err := hijack(w)
	if err != nil {
		return
	}
	defer in.Close() //nolint:errcheck // nothing is left to write
	body := n.sentence + "\n"
	_, _ = fmt.Fprintf(in, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s",
		n.status, n.sentence, strconv.Itoa(len(body)), body)
}

// hijack takes over a call's connection, with the bytes that were already read.
func hijack(w http.ResponseWriter) (net.Conn, []byte, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early := make([]byte, rw.Reader.Buffered())
	_, _ = io.ReadFull(rw.Reader, early) // it is buffered
	return conn, early, conn.SetDeadline(time.Time{})
}

// carry copies bytes both ways until both have ended, the connection is idle for too long, or the admission ends,
// for example with the session. The client's first bytes are checked before anything leaves.
func (s *Session) carry(during context.Context, t target, in, out net.Conn) {
	end := func() {
		_ = in.Close()
		_ = out.Close()
	}
	stop, stopToo := context.AfterFunc(s.ctx, end), context.AfterFunc(during, end)
	defer stop()
	defer stopToo()
	visit := s.tally.connected(t)
	p := pipe{in: in, out: out}
	p.extend()
	var both sync.WaitGroup
	both.Go(func() {
		_ = in.SetReadDeadline(time.Now().Add(headTime))
		said, err := checkHello(in, t)
		if err != nil {
			s.noHello(t, in, err)
			end()
			return
		}
		p.extend()
		if p.copy(out, io.MultiReader(bytes.NewReader(said), in), visit.up) != nil {
			end()
		}
	})
	both.Go(func() {
		if p.copy(in, out, visit.down) != nil {
			end()
		}
	})
	both.Wait()
}

// noHello ends a tunnel with a TLS alert because its first bytes were refused.
func (s *Session) noHello(t target, in net.Conn, err error) {
	if timeout, ok := err.(net.Error); err == io.EOF || ok && timeout.Timeout() { //nolint:errorlint // as they come
		return
	}
	s.tally.refused(t)
	s.complain("a tunnel was ended", zap.Stringer("host", t), zap.Error(err))
	_, _ = in.Write(tlsDenied)
}

// pipe is two connections that carry each other's bytes.
type pipe struct{ in, out net.Conn }

// extend renews both deadlines.
func (p pipe) extend() {
	until := time.Now().Add(idleTime)
	_ = p.in.SetDeadline(until)
	_ = p.out.SetDeadline(until)
}

// copy copies bytes until from ends, and then closes to for writing. An error ends both directions.
func (p pipe) copy(to io.Writer, from io.Reader, count func(int)) error {
	b := buffers.Get().(*[bufferSize]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer buffers.Put(b)
	for {
		n, err := from.Read(b[:])
		if n > 0 {
			p.extend()
			count(n)
			if _, err := to.Write(b[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return closeWrite(to)
		}
		if err != nil {
			return err
		}
	}
}

// closeWrite tells the other end that no more comes.
func closeWrite(w io.Writer) error {
	if c, ok := w.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

const bufferSize = 32 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}
