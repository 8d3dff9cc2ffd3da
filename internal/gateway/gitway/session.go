package gitway

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
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
)

const (
	socketName = "git"
	// host is the forge's name inside. Nothing of that name can ever be found (RFC 6761).
	host = "git.invalid"
	// tokenVariable holds the session's token, which each conversation begins with.
	tokenVariable = "DECKHAND_GIT_TOKEN"
	tokenLength   = 64
	// maxConversations bounds those of a session at once.
	maxConversations = 8
	// burst is how many may follow one another at once; after them, one in two seconds.
	burst = 30
	// greetingTimeout bounds how long a conversation may take to say what it wants, and
	// idleTimeout how long it may say nothing: a pack is made meanwhile.
	greetingTimeout = 10 * time.Second
	idleTimeout     = 10 * time.Minute
)

// Event tells of a conversation that has ended: what the audit holds of it.
type Event struct {
	Push       bool
	Repository string // its name inside: host and path
	// Refs are those that a push named. Wanted are objects that a fetch asked for.
	Refs   []Ref
	Wanted []string
	Bytes  int64 // of the pack that was pushed, or of all that was answered
	// Refused is why nothing was done, a sentence; empty if it was.
	Refused string
	// ToolUse is the one that was allowed to push.
	ToolUse string
}

// Ref is one of a push.
type Ref struct{ Name, Old, New, Refused string }

// Session is the way to the repositories of one process and all that it starts. The
// methods of a nil Session do nothing. They are safe for concurrent use.
type Session struct {
	gate         *Gate
	dir          string
	token        string
	repositories map[string]*mirror // by their names inside
	spellings    map[string][]string
	names        []string
	log          *zap.Logger
	pace         *rate.Limiter       // of conversations: each asks the forge, and is a row of the audit
	pushing      *semaphore.Weighted // one push at a time: a slow one holds up nobody else's

	cancel  context.CancelFunc
	socket  net.Listener
	running sync.WaitGroup

	mu      sync.Mutex
	allowed map[string]Pass // by the tool uses that may push
	report  func(Event)
	unsaid  []Event // of which nobody could be told yet
	closed  bool
}

// maxUnsaid bounds the events that wait for somebody to be told.
const maxUnsaid = 100

// Open makes a socket in a folder that one session sees, and serves it until
// [Session.Close]. Its error is a sentence.
func (g *Gate) Open(dir, project string, remotes []Remote) (*Session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{
		gate: g, dir: dir, token: random(tokenLength / 2), repositories: map[string]*mirror{}, spellings: map[string][]string{},
		log: g.log.With(zap.String("project", project)), pace: rate.NewLimiter(rate.Every(2*time.Second), burst), pushing: semaphore.NewWeighted(1), cancel: cancel, allowed: map[string]Pass{},
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
	err := g.lend(filepath.Join(dir, helperName))
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

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// Env are the variables that the session gets besides.
func (s *Session) Env() []string {
	if s == nil {
		return nil
	}
	return []string{tokenVariable + "=" + s.token}
}

// Settings are those by which the session's git finds the repositories, name and value.
func (s *Session) Settings() [][2]string {
	if s == nil {
		return nil
	}
	out := [][2]string{
		{"core.gitProxy", filepath.Join(s.dir, helperName) + " for " + host},
		{"protocol.git.allow", "always"},
		{"push.default", "current"},
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

// suffix keeps what an address ends in, so that longer ones stay what they are.
func suffix(written string) string {
	if filepath.Ext(written) == ".git" {
		return ".git"
	}
	return ""
}

// Pass is what pushes of a tool use may do.
type Pass struct {
	// Force says that it was allowed as a push that may move a branch other than forward.
	Force bool
	// Repository and Refs are what people have approved: these branches of this repository
	// are moved from Old, where that is known, to New, and nothing else is. No Refs allow
	// what a rule allows: any.
	Repository string
	Refs       []Ref
}

// AllowPush lets pushes through until [Session.EndPush]: a tool use is about to run that
// was allowed as a push.
func (s *Session) AllowPush(toolUse string, p Pass) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed[toolUse] = p
}

// EndPush tells that a tool use has ended; without a name, that all have.
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

// passes are what tool uses may push now, by their names.
func (s *Session) passes() map[string]Pass {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.allowed)
}

// OnEvent names who is told of conversations, those included of which nobody was told yet.
// It must return at once.
func (s *Session) OnEvent(tell func(Event)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.report = tell
	unsaid := s.unsaid
	s.unsaid = nil
	s.mu.Unlock()
	for _, e := range unsaid {
		tell(e)
	}
}

func (s *Session) tell(e Event) {
	s.mu.Lock()
	tell := s.report
	if tell == nil && len(s.unsaid) < maxUnsaid {
		s.unsaid = append(s.unsaid, e)
	}
	s.mu.Unlock()
	if tell != nil {
		tell(e)
	}
}

// Close ends the session's conversations and removes the socket. It may be called more
// than once.
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
		_ = s.socket.Close() // and with it goes its file
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
			defer conn.Close() //nolint:errcheck // whatever was to be said has been said
			defer func() { s.survive(recover()) }()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			s.converse(ctx, conn)
		})
	}
}

// survive ends a conversation and nothing else where we are wrong about what a session may
// send, as the server of net/http does.
func (s *Session) survive(fault any) {
	if fault != nil {
		s.log.Error("a conversation about git has failed", zap.Any("panic", fault), zap.Stack("stack"))
	}
}

// converse takes what a git wants, and does or refuses it.
func (s *Session) converse(ctx context.Context, conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(greetingTimeout))
	token := make([]byte, tokenLength+1)
	if _, err := io.ReadFull(conn, token); err != nil || subtle.ConstantTimeCompare(token, []byte(s.token+"\n")) != 1 {
		return // it belongs to another session
	}
	r, err := readRequest(conn)
	if err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
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

// fresh brings a mirror up to date. Where it cannot, it returns why, a sentence for who
// asks; the log has the whole.
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

// idling is a connection on which nothing may be waited for too long.
type idling struct{ net.Conn }

func (c *idling) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(idleTimeout))
	return c.Conn.Read(p)
}

func (c *idling) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(idleTimeout))
	return c.Conn.Write(p)
}

// hangUp ends a conversation so that what was said last arrives: what the other side still
// sends is read, since a socket that is closed with something unread takes along what it
// was about to hand over.
func hangUp(c *idling) {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(idleTimeout))
	_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, 2*maxPack))
}

// printable is a text of a session's, short and harmless in a sentence.
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
