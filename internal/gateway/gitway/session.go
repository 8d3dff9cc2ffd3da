package gitway

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"deckhand/internal/redact"
)

const (
	socketName = "git"
	// host is the forge's name inside. It never resolves (RFC 6761).
	host = "git.invalid"
	// tokenVariable holds the session's token, which begins each conversation.
	tokenVariable = "DECKHAND_GIT_TOKEN"
	// maxConversations bounds a session's concurrent conversations.
	maxConversations = 8
	// burst is how many may follow at once; then one every two seconds.
	burst = 30
	// greetingTimeout bounds the time until a request, and idleTimeout the silence after it, in which a pack is
	// made.
	greetingTimeout = 10 * time.Second
	idleTimeout     = 10 * time.Minute
)

// Event is a finished conversation, as the audit records it.
type Event struct {
	Push       bool
	Repository string // its name inside: host and path
	// Refs are those named by a push. Wanted are objects that a fetch asked for.
	Refs   []Ref
	Wanted []string
	Bytes  int64 // of the pushed pack, or of the whole answer
	// Refused is why nothing was done, a sentence; empty if it was done.
	Refused string
	// ToolUse is the one that was allowed to push.
	ToolUse string
}

// Ref is a ref of a push.
type Ref struct{ Name, Old, New, Refused string }

// Session is the way to the repositories for one process and all that it starts. The methods of a nil Session do
// nothing. They are safe for concurrent use.
type Session struct {
	gate         *Gate
	dir          string
	token        string
	repositories map[string]*mirror // by their names inside
	spellings    map[string][]string
	names        []string
	log          *zap.Logger
	pace         *rate.Limiter       // of conversations: each asks the forge, and is a row of the audit
	pushing      *semaphore.Weighted // one push at a time: a slow one delays only its own session
	signing      *rate.Limiter       // of commits: a rebase has many

	cancel  context.CancelFunc
	socket  net.Listener
	running sync.WaitGroup

	mu      sync.Mutex
	allowed map[string]Pass // by the tool uses that may push
	report  func(Event)
	pending []Event     // not reported yet
	key     *SigningKey // nil where commits are not signed
	made    func() Made
	closed  bool
}

// maxPending bounds the events that wait for a receiver.
const maxPending = 100

// Open makes a socket in a folder that one session sees, and serves it until
// [Session.Close]. Its error is a sentence.
func (g *Gate) Open(dir, project string, remotes []Remote) (*Session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{
		gate: g, dir: dir, token: redact.Token(), repositories: map[string]*mirror{}, spellings: map[string][]string{},
		log: g.log.With(zap.String("project", project)), pace: rate.NewLimiter(rate.Every(2*time.Second), burst), pushing: semaphore.NewWeighted(1), signing: rate.NewLimiter(20, 200), cancel: cancel, allowed: map[string]Pass{},
	}
	for _, r := range remotes {
		p, err := parse(r.URL)
		if err != nil {
			cancel()
			return nil, err
		}
		if s.repositories[p.name()] == nil {
			s.repositories[p.name()] = g.mirror(project, r)
			s.names = append(s.names, p.name())
		}
		s.spellings[p.name()] = append(s.spellings[p.name()], p.spellings(r.URL)...)
	}
	err := g.provide(filepath.Join(dir, helperName))
	if err == nil {
		s.socket, err = (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(dir, socketName))
	}
	if err == nil {
		err = os.Chmod(filepath.Join(dir, socketName), 0o666) //nolint:gosec // the folder keeps others out
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open the way to the project's forge: %w", err)
	}
	s.running.Go(func() { s.serve(ctx) })
	return s, nil
}

// Env are the variables added to the session's environment.
func (s *Session) Env() []string {
	if s == nil {
		return nil
	}
	return []string{tokenVariable + "=" + s.token}
}

// Settings make the session's git find the repositories, name and value.
func (s *Session) Settings() [][2]string {
	if s == nil {
		return nil
	}
	out := [][2]string{
		{"core.gitProxy", filepath.Join(s.dir, helperName) + " for " + host},
		{"protocol.git.allow", "always"},
		{"push.default", "current"},
	}
	if s.key != nil {
		out = append(out, [2]string{"gpg.format", "ssh"}, [2]string{"gpg.ssh.program", s.signer()}, [2]string{"user.signingKey", s.key.public()}, [2]string{"commit.gpgSign", "true"})
	}
	for _, name := range s.names {
		spellings := s.spellings[name]
		slices.Sort(spellings)
		for _, written := range slices.Compact(spellings) {
			out = append(out, [2]string{"url.git://" + host + "/" + name + suffix(written) + ".insteadOf", written})
		}
	}
	return out
}

// signer is the program that git starts to sign.
func (s *Session) signer() string { return filepath.Join(s.dir, signerName) }

// suffix keeps an address's ending, so that longer addresses stay unchanged.
func suffix(written string) string {
	if filepath.Ext(written) == ".git" {
		return ".git"
	}
	return ""
}

// Pass is what a tool use's pushes may do.
type Pass struct {
	// Force says that it was allowed as a push that may move a branch other than forward.
	Force bool
	// Repository and Refs are what people have approved: only these branches of this repository may move, from Old,
	// if that is known, to New. Without Refs any branch may move, as the rule allows.
	Repository string
	Refs       []Ref
}

// AllowPush allows a tool use's pushes until [Session.EndPush]: call it before the tool use runs.
func (s *Session) AllowPush(toolUse string, p Pass) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed[toolUse] = p
}

// EndPush ends a tool use's permission; without a name, that of all.
func (s *Session) EndPush(toolUse string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if toolUse == "" {
		clear(s.allowed)
	}
	delete(s.allowed, toolUse)
}

// passes are the current passes by tool use.
func (s *Session) passes() map[string]Pass {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.allowed)
}

// OnEvent sets the receiver of conversations, which gets pending ones at once. It must return at once.
func (s *Session) OnEvent(tell func(Event)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.report = tell
	pending := s.pending
	s.pending = nil
	s.mu.Unlock()
	for _, e := range pending {
		tell(e)
	}
}

func (s *Session) tell(e Event) {
	s.mu.Lock()
	tell := s.report
	if tell == nil && len(s.pending) < maxPending {
		s.pending = append(s.pending, e)
	}
	s.mu.Unlock()
	if tell != nil {
		tell(e)
	}
}

// Close ends the session's conversations and removes the socket. It may be called more than once.
func (s *Session) Close() {
	if s == nil {
		return
	}
	s.cancel()
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first && s.socket != nil {
		_ = s.socket.Close() // this also removes its file
	}
	s.running.Wait()
}

func (s *Session) serve(ctx context.Context) {
	l := netutil.LimitListener(s.socket, maxConversations)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of files, for a moment
			continue
		}
		s.running.Go(func() {
			defer conn.Close() //nolint:errcheck // nothing is left to write
			defer func() { s.survive(recover()) }()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			s.converse(ctx, conn)
		})
	}
}

// survive recovers from a panic so that it ends one conversation only, as the server of net/http does.
func (s *Session) survive(fault any) {
	if fault != nil {
		s.log.Error("a conversation about git has failed", zap.Any("panic", fault), zap.Stack("stack"))
	}
}

// converse reads what a git wants, and does or refuses it.
func (s *Session) converse(ctx context.Context, conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(greetingTimeout))
	token := make([]byte, redact.TokenLength+1)
	if _, err := io.ReadFull(conn, token); err != nil || subtle.ConstantTimeCompare(token, []byte(s.token+"\n")) != 1 {
		return // it belongs to another session
	}
	r, err := readRequest(conn)
	if err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	if r.service == signService {
		s.sign(ctx, conn)
		return
	}
	if s.pace.Wait(ctx) != nil {
		return // it has ended
	}
	c := &idling{Conn: conn}
	m := s.repositories[r.repository]
	e := Event{Push: r.service == "git-receive-pack", Repository: r.repository}
	switch {
	case r.service != "git-upload-pack" && r.service != "git-receive-pack":
		e.Refused = "Deckhand carries fetches and pushes, and no " + printable(r.service) + "."
	case m == nil:
		e.Repository = printable(r.repository)
		e.Refused = "There is no way to this repository from here: a session reaches those of its project, and no others."
	case e.Push:
		s.receive(ctx, c, m, &e)
	default:
		s.upload(ctx, c, m, r, &e)
	}
	if m == nil || e.Refused != "" && len(e.Refs) == 0 {
		_, _ = c.Write(packet("ERR " + e.Refused))
		hangUp(c)
	}
	if ctx.Err() == nil && (e.Refused != "" || !e.Push || len(e.Refs) > 0) {
		s.tell(e)
	}
}

// fresh syncs a mirror. If that fails, it returns a sentence for the session; the log has the details.
func (s *Session) fresh(ctx context.Context, m *mirror) (refused string) {
	err := m.sync(ctx)
	switch {
	case err == nil:
		return ""
	case ctx.Err() != nil:
		return "The session has ended."
	}
	s.log.Warn("bring a repository's mirror up to date", zap.String("repository", m.remote.URL), zap.Error(err))
	return "The bot could not reach the forge (" + oneLine(err.Error()) + "). An admin finds more in its log, and by bot doctor."
}

// idling is a connection with an idle timeout.
type idling struct{ net.Conn }

func (c *idling) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(idleTimeout))
	return c.Conn.Read(p)
}

func (c *idling) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(idleTimeout))
	return c.Conn.Write(p)
}

// hangUp closes a conversation so that our last message arrives. It drains what the peer still sends, since closing
// a socket with unread data discards what is unsent.
func hangUp(c *idling) {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(idleTimeout))
	_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, 2*maxPack))
}

// printable makes a session's text short and harmless in a sentence.
func printable(s string) string {
	out := []rune{}
	for _, r := range s {
		if len(out) == 100 {
			return string(out) + "…"
		}
		if r < ' ' || r == 0x7f || r == 0xfffd || r >= 0x80 && r < 0xa0 {
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}
