package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// The first byte of TLS, and the alert that refuses it: fatal, access denied.
const tlsHandshake = 22

var tlsDenied = []byte{21, 3, 1, 0, 2, 2, 49}

// tlsPort carries only TLS: a server there may skip bytes before a hello, which would then go unchecked.
const tlsPort = 443

var errSeen = errors.New("the hello was seen")

// checkHello reads the client's first bytes and returns them to be passed on. A TLS hello must name the tunnel's
// host: a server with many names would otherwise lead elsewhere.
func checkHello(r io.Reader, t target) (said []byte, err error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(r, first); err != nil {
		return nil, err
	}
	if first[0] != tlsHandshake {
		if t.port == tlsPort {
			return nil, errors.New("only TLS leaves by port 443")
		}
		return first, nil
	}
	var seen bytes.Buffer
	var hello *tls.ClientHelloInfo
	in := io.TeeReader(io.MultiReader(bytes.NewReader(first), r), &seen)
	err = tls.Server(reading{r: in}, &tls.Config{
		MinVersion: tls.VersionTLS12, // the handshake never gets that far
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			hello = h
			return nil, errSeen
		},
	}).Handshake() //nolint:noctx // the connection has a deadline
	switch {
	case hello == nil && err != nil:
		return nil, errors.New("its TLS cannot be read")
	case hello.ServerName == "" && t.addr.IsValid():
	case hello.ServerName == "":
		return nil, errors.New("its TLS names no host")
	case !strings.EqualFold(hello.ServerName, t.host):
		return nil, fmt.Errorf("its TLS asks for %q", hello.ServerName)
	}
	return seen.Bytes(), nil
}

// reading is a connection that discards what is written.
type reading struct{ r io.Reader }

func (c reading) Read(p []byte) (int, error)     { return c.r.Read(p) }
func (reading) Write(p []byte) (int, error)      { return len(p), nil }
func (reading) Close() error                     { return nil }
func (reading) LocalAddr() net.Addr              { return nil }
func (reading) RemoteAddr() net.Addr             { return nil }
func (reading) SetDeadline(time.Time) error      { return nil }
func (reading) SetReadDeadline(time.Time) error  { return nil }
func (reading) SetWriteDeadline(time.Time) error { return nil }
