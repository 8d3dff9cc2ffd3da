package storetest

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TCP is an address on loopback, host:port, at which the server of dsn answers too. It
// takes those who come there for people of this machine, and speaks no TLS.
func TCP(tb testing.TB, dsn string) string {
	tb.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	network, server := "tcp", net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port))
	if cfg.Host != "" && cfg.Host[0] == '/' {
		network, server = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", cfg.Host, cfg.Port)
	}
	var d net.Dialer
	return Listen(tb, func(client net.Conn) {
		pg, err := d.DialContext(tb.Context(), network, server)
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(pg, client) // it ends with the connection
			_ = pg.Close()
		}()
		_, _ = io.Copy(client, pg)
	})
}

// Listen is the address of a server that does what serve does with each connection,
// until the test ends.
func Listen(tb testing.TB, serve func(net.Conn)) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close() //nolint:errcheck // a test's connection
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}
