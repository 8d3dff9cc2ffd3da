package pg

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	neturl "net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// reachTimeout bounds the first connection.
const reachTimeout = 10 * time.Second

// UnreachableError is why the database cannot be used, with the cure. It wraps pgx's error, and contains no
// password.
type UnreachableError struct {
	problem, cure string
	err           error
}

func (e *UnreachableError) Error() string { return e.problem + ": " + e.cure }

func (e *UnreachableError) Unwrap() error { return e.err }

// Cure says what to do about it.
func (e *UnreachableError) Cure() string { return e.cure }

const urlForm = "postgres://user:password@host:5432/database"

// CheckURL says what is wrong with the database's URL; nil if nothing is. It quotes neither user nor password.
func CheckURL(url string) error {
	if url == "" {
		return errors.New("set it to the database, " + urlForm)
	}
	_, err := pgx.ParseConfig(url)
	scheme, rest, isURL := strings.Cut(url, "://")
	if !isURL || !strings.HasPrefix(scheme, "postgres") {
		if err != nil { // which may quote a part of the password
			return errors.New("this is not a PostgreSQL URL; write " + urlForm)
		}
		return nil
	}
	// Like libpq, pgx ends the credentials at the first @ before a slash: a password with either of them moves its
	// rest into host or database.
	credentials, place := "", rest
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		credentials, place = rest[:i], rest[i+1:]
	}
	place, query, _ := strings.Cut(place, "?")
	if err == nil && !strings.Contains(place, "@") {
		return nil
	}
	if found := unencoded(rest, len(rest)-len(query)); len(found) > 0 {
		return fmt.Errorf("user or password have characters that mean something else in a URL; write %s", strings.Join(found, ", "))
	}
	if cause := errors.Unwrap(err); credentials != "" && cause != nil {
		return fmt.Errorf("this is not a PostgreSQL URL (%w); write %s", cause, urlForm)
	}
	return errors.New("this is not a PostgreSQL URL; write " + urlForm)
}

// ParsePool parses the database's URL with its pool settings (pool_max_conns and the like). With writes, connections
// lead only to a writable server unless the URL chooses otherwise (target_session_attrs): after a failover a name may
// still lead to a standby, and the connection would be kept. Its error quotes neither user nor password.
func ParsePool(url string, writes bool) (*pgxpool.Config, error) {
	if err := CheckURL(url); err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("a setting of the connection pool in the URL (pool_…) is not right; write one such as pool_max_conns=10, or none")
	}
	noticeLoss(cfg.ConnConfig)
	cfg.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > pingAfter }
	if writes && cfg.ConnConfig.ValidateConnect == nil {
		cfg.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return cfg, nil
}

// pingAfter is how long a connection may be idle and still be used unchecked: longer than the pauses between the scans
// of a silent bot, which would else ping before each.
const pingAfter = 10 * time.Second

// lossTimeout is after how long a silently lost server is given up. Each of several hosts has a share of it to
// answer, so that the next one is reached in time: before a lease expires.
const (
	lossTimeout = 10 * time.Second
	hostTimeout = 3 * time.Second
)

// noticeLoss makes connections to a lost server fail, so that their users reach the next one.
func noticeLoss(cfg *pgx.ConnConfig) {
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = lossTimeout
		if slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != cfg.Host || f.Port != cfg.Port }) {
			cfg.ConnectTimeout = hostTimeout
		}
	}
	cfg.DialFunc = (&net.Dialer{
		Timeout: cfg.ConnectTimeout, Control: userTimeout(lossTimeout),
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: lossTimeout / 2, Interval: lossTimeout / 5, Count: 3},
	}).DialContext
}

// unencoded lists the encoding of those characters before the last @ (and before the query) that must be encoded in
// a URL.
func unencoded(rest string, query int) []string {
	end := strings.LastIndexByte(rest[:query], '@')
	if end < 0 {
		end = strings.LastIndexByte(rest, '@')
	}
	if end < 0 {
		return nil
	}
	var out []string
	for i := range end {
		how := ""
		switch rest[i] {
		case '/':
			how = "%2F for /"
		case ' ':
			how = "%20 for a space"
		case '@':
			how = "%40 for @"
		case '%':
			if _, err := neturl.PathUnescape(rest[i:min(i+3, end)]); err != nil {
				how = "%25 for %"
			}
		}
		if how != "" && !slices.Contains(out, how) {
			out = append(out, how)
		}
	}
	return out
}

// unreachable explains why no connection could be made.
func unreachable(cfg *pgconn.Config, err error) *UnreachableError {
	server := "PostgreSQL at " + at(cfg.Host, cfg.Port)
	say := func(problem, cure string) *UnreachableError {
		return &UnreachableError{problem: problem, cure: cure, err: err}
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		cure := cureRefusal(refused)
		switch refused.Code {
		case "28P01":
			return say(fmt.Sprintf("%s refuses the password of user %q", server, cfg.User), cure)
		case "3D000":
			return say(fmt.Sprintf("%s has no database %q", server, cfg.Database), cure)
		case "53300":
			return say(server+" has no connection left", cure)
		}
		return say(fmt.Sprintf("%s refuses user %q and database %q (%s)", server, cfg.User, cfg.Database, refused.Message), cure)
	}
	_, untrusted := errors.AsType[x509.UnknownAuthorityError](err)
	misnamed, isMisnamed := errors.AsType[x509.HostnameError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, isPlain := errors.AsType[tls.RecordHeaderError](err)
	dns, unknown := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return say(server+" takes no writes, nor does any other that is named", "let DATABASE_URL lead to the primary; after a failover, promote a standby")
	case isMisnamed:
		return say(fmt.Sprintf("the certificate of %s is for another host (%v)", server, misnamed), "name the host that it is for, or write sslmode=verify-ca")
	case untrusted:
		return say("the certificate of "+server+" is signed by nobody known here", "name the authority's file with sslrootcert=/path/ca.pem")
	case isInvalid:
		return say(fmt.Sprintf("the certificate of %s is not valid (%v)", server, invalid), "renew it, and see whether the clocks are right")
	case isPlain, strings.Contains(err.Error(), "server refused TLS connection"): // pgx has no error type for it
		return say(server+" speaks no TLS", "turn it on there (ssl = on), or write sslmode=disable if the way to it is safe")
	case unknown:
		return say(fmt.Sprintf("the host %q cannot be found (%s)", dns.Name, dns.Err), "correct the host; between containers it is the service's name, such as postgres")
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return say("nothing listens at "+at(cfg.Host, cfg.Port), "start PostgreSQL, or correct host and port")
	case errors.Is(err, fs.ErrPermission):
		return say("this user may not open the socket in "+cfg.Host, "let it, or write a host and a port")
	case pgconn.Timeout(err):
		return say(fmt.Sprintf("%s does not answer in %s", server, reachTimeout), "see whether host and port are right, and whether a firewall lets us through")
	}
	return say(fmt.Sprintf("the connection to %s fails (%v)", server, cause(err)), "see whether host and port are those of PostgreSQL; its own log says more")
}

// cause removes pgx's prefix, which is reported separately.
func cause(err error) error {
	if c, ok := errors.AsType[*pgconn.ConnectError](err); ok && c.Unwrap() != nil {
		return c.Unwrap()
	}
	return err
}

// at names a server: the folder of its socket, or host and port.
func at(host string, port uint16) string {
	if strings.HasPrefix(host, "/") {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
