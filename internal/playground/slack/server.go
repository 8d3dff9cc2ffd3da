package slack

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Options say how a workspace is kept and how strict it is. The zero value is a
// workspace in memory with every limit of Slack's enforced.
type Options struct {
	// StateFile is where the workspace is kept over restarts: one JSON file,
	// replaced atomically, with a folder of uploaded files beside it. Empty
	// keeps everything in memory.
	StateFile string
	// Fresh forgets what StateFile holds and starts a new workspace there.
	Fresh bool
	// PublicURL gives the address that links carry (files, permalinks, response
	// URLs), for example http://127.0.0.1:8065. Nil, or an empty answer, means
	// the address of the latest request.
	PublicURL func() string
	// Log receives what an operator may want to know. Nil logs nothing.
	Log *zap.Logger
	// NoRateLimits switches the limits per method and minute off.
	NoRateLimits bool
	// Scopes are the bot token's scopes; nil means [DefaultScopes].
	Scopes []string
	// OtherFaults takes the faults of POST /_control/faults that are not about
	// Slack (the model's). Nil refuses them.
	OtherFaults FaultSink
}

// FaultSink takes faults that this package does not know.
type FaultSink interface {
	// AddFault is given one JSON object. It says whether the fault is one of
	// its own; the error says what is wrong with one that is.
	AddFault(raw []byte) (bool, error)
	// ClearFaults forgets all faults.
	ClearFaults()
}

// Server is one workspace. It is safe for concurrent use. Close it when done.
type Server struct {
	opts   Options
	log    *zap.Logger
	mux    *http.ServeMux
	scopes []string

	ctx    context.Context // ends with Close; for the goroutines that the Server owns
	cancel context.CancelFunc
	wg     sync.WaitGroup

	host atomic.Pointer[string] // the latest request's Host

	mu         sync.Mutex // guards everything below
	closed     bool
	ws         *workspace
	dirty      chan struct{} // wakes the state file's writer
	triggers   map[string]*trigger
	hooks      map[string]*hook
	stacks     map[string][]*view // open modals by user, the root first
	msgState   map[string]stateValues
	ephemerals []*message
	uploads    map[string]*upload
	statuses   map[string]*threadStatus
	sessions   map[string]*agentSession
	limits     *limiter
	faults     faultSet
	refusals   []refusal
	calls      callLog
	// notifications are what people's devices would have shown since the start.
	notifications notificationLog
	// unfit is what the app has sent that not everybody can use.
	unfit []unfitCall

	live    *hub
	sockets *switchboard
}

// New makes a workspace: the one in o.StateFile if there is one, else a new one
// with the people, groups and channels of the playground. A state file that
// cannot be read is an error; Options.Fresh ignores it.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	s := &Server{
		opts:     o,
		log:      o.Log,
		scopes:   o.Scopes,
		triggers: map[string]*trigger{},
		hooks:    map[string]*hook{},
		stacks:   map[string][]*view{},
		msgState: map[string]stateValues{},
		uploads:  map[string]*upload{},
		statuses: map[string]*threadStatus{},
		sessions: map[string]*agentSession{},
		limits:   newLimiter(),
		live:     newHub(),
		dirty:    make(chan struct{}, 1),
	}
	if s.scopes == nil {
		s.scopes = DefaultScopes()
	}
	ws, err := loadWorkspace(o)
	if err != nil {
		return nil, fmt.Errorf("load workspace: %w", err)
	}
	s.ws = ws
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.sockets = newSwitchboard(s.ctx, s.log, &s.wg)
	s.sockets.onLost = s.eventLost
	s.mux = s.routes()
	if o.StateFile != "" {
		s.touch() // tokens of a new workspace must survive
		s.wg.Go(s.keepState)
	}
	return s, nil
}

// Handler serves the workspace. [Routes] lists the paths that it answers.
func (s *Server) Handler() http.Handler { return s.mux }

// Routes lists the path prefixes that [Server.Handler] answers, for mounting it
// beside others.
func Routes() []string {
	return []string{"/api/", "/socket", "/files/", "/hooks/", "/_control/"}
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveAPI)
	mux.HandleFunc("GET /socket", s.serveSocket)
	mux.HandleFunc("POST /files/upload/{ticket}", s.serveUpload)
	mux.HandleFunc("PUT /files/upload/{ticket}", s.serveUpload)
	mux.HandleFunc("GET /files/avatar/{user}", s.serveAvatar)
	mux.HandleFunc("GET /files/{team}/{id}/{name}", s.serveFile)
	mux.HandleFunc("POST /hooks/{kind}/{team}/{id}/{secret}", s.serveHook)
	s.controlRoutes(mux)
	return mux
}

// Close disconnects the sockets, ends every goroutine and writes the state file
// a last time. It waits no longer than ctx. Closing twice is harmless.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for _, m := range s.ws.liveStreams() {
		m.Stream.stopTimer()
	}
	for _, st := range s.statuses {
		st.stopTimer()
	}
	s.mu.Unlock()

	s.cancel()
	s.live.close()
	s.sockets.close()
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("close workspace: connections still open: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saveState()
}

// BotToken returns the token for the Web API.
func (s *Server) BotToken() string { return s.ws.BotToken }

// AppToken returns the token for Socket Mode.
func (s *Server) AppToken() string { return s.ws.AppToken }

// Connections returns how many sockets the app has open now.
func (s *Server) Connections() int { return s.sockets.count() }

// seen remembers the address that a client used, for links.
func (s *Server) seen(r *http.Request) {
	if p := s.host.Load(); p == nil || *p != r.Host {
		host := r.Host
		s.host.Store(&host)
	}
}

// base is the address that links begin with, without a slash at its end.
func (s *Server) base() string {
	if s.opts.PublicURL != nil {
		if u := s.opts.PublicURL(); u != "" {
			return u
		}
	}
	if p := s.host.Load(); p != nil {
		return "http://" + *p
	}
	return "http://127.0.0.1"
}

// later runs f under the workspace's mutex after d, unless the Server closes.
// The returned timer stops it.
func (s *Server) later(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			f()
		}
	})
}
