package model

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

//go:embed scripts/*.yaml
var embedded embed.FS

// maxBody bounds a request, as the API does (32 MB), with some room.
const maxBody = 64 << 20

// maxCaches bounds the prompt caches kept; beyond it all are forgotten, and
// the next call of each session writes its prompt anew.
const maxCaches = 1024

// Options configure a Server. The zero value answers from the embedded
// scripts, as fast as it can.
type Options struct {
	// Scripts holds *.yaml script files at its root; nil = the embedded ones.
	Scripts fs.FS
	// Log gets one line per call; nil = none. Prompts and keys are not logged.
	Log *zap.Logger
	// CharsPerSecond is the pace of text that has no pace of its own in its
	// script. 0 = everything as fast as possible, also where a script has a
	// pace; still in several pieces. A "slow:" directive always holds.
	CharsPerSecond int
	// RecordTo gets every request as one line of JSON, for debugging; nil =
	// none. Lines hold whole prompts, but no keys.
	RecordTo io.Writer
}

// Server is the model. It is an http.Handler, safe for concurrent use, and
// owns no goroutines: every call is answered in the goroutine that serves it.
type Server struct {
	log     *zap.Logger
	scripts []script
	pace    int
	newID   func(prefix string) string

	faults faults
	ledger ledger

	mu     sync.Mutex
	caches map[string]*promptCache // by session and model
	erred  map[[sha256.Size]byte]int

	recordMu sync.Mutex
	record   io.Writer
}

// New returns a model server. The error names the script file that cannot be
// read, and what is wrong with it.
func New(o Options) (*Server, error) {
	scripts := o.Scripts
	if o.CharsPerSecond < 0 {
		return nil, fmt.Errorf("characters per second: %d is negative", o.CharsPerSecond)
	}
	if scripts == nil {
		sub, err := fs.Sub(embedded, "scripts")
		if err != nil {
			return nil, fmt.Errorf("open embedded scripts: %w", err)
		}
		scripts = sub
	}
	list, err := loadScripts(scripts)
	if err != nil {
		return nil, err
	}
	return &Server{
		log: cmp.Or(o.Log, zap.NewNop()), scripts: list, pace: o.CharsPerSecond, newID: randomID,
		caches: map[string]*promptCache{}, erred: map[[sha256.Size]byte]int{}, record: o.RecordTo,
	}, nil
}

// Bill returns what all calls so far cost, as the CLI counts it: a call is
// billed when its final usage is sent; a call that broke off in its stream,
// for its prompt and a guess at the output sent by then; one that failed
// before, not at all.
func (s *Server) Bill() Bill { return s.ledger.bill() }

// ServeHTTP serves POST /v1/messages and /v1/messages/count_tokens, and the same by the
// paths of Amazon Bedrock and of Google Vertex AI, under any path prefix. GET and HEAD of
// the root answer 200, for clients that probe.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := s.newID("req_01")
	w.Header().Set("Request-Id", id)
	f, ok := formOf(r.URL)
	var err error
	switch probe := r.Method == http.MethodHead || r.Method == http.MethodGet; {
	case !ok && probe && !strings.Contains(r.URL.Path, "/v1/"):
		w.WriteHeader(http.StatusOK)
		return
	case !ok:
		err = &apiError{Status: http.StatusNotFound}
	case r.Method != http.MethodPost:
		err = &apiError{Status: http.StatusMethodNotAllowed, Message: "Method Not Allowed"}
	case r.Header.Get("X-Api-Key") == "" && r.Header.Get("Authorization") == "":
		err = &apiError{Status: http.StatusUnauthorized, Message: "x-api-key header is required"}
	default:
		err = s.serve(w, r, f)
	}
	var e *apiError
	switch {
	case err == nil:
	case errors.As(err, &e):
		s.log.Info("model call refused", zap.String("path", r.URL.Path), zap.Error(err))
		writeError(w, id, e, f.frames)
	case errors.Is(err, http.ErrAbortHandler):
		panic(http.ErrAbortHandler) // net/http's way of breaking a connection
	default:
		s.log.Info("model call not finished", zap.String("path", r.URL.Path), zap.Error(err))
	}
}

// serve answers one API call. An *apiError means that nothing was written.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, f form) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return &apiError{Status: http.StatusRequestEntityTooLarge}
		}
		return fmt.Errorf("read request: %w", err)
	}
	req, err := f.read(body)
	if err != nil {
		return err
	}
	s.recordRequest(r, body)
	if f.count {
		return s.countTokens(w, &req)
	}
	if req.Model == "" || len(req.Messages) == 0 {
		return &apiError{Status: http.StatusBadRequest, Message: "model and messages: Field required"}
	}
	request := w.Header().Get("Request-Id")
	session := sessionOf(r.Header.Get("X-Claude-Code-Session-Id"), req.Metadata.UserID)
	conv := req.read()

	fault, _ := s.faults.take(session, req.Model, conv.Last)
	if err := fault.before(r.Context(), w); err != nil {
		return err
	}
	st, name, err := s.choose(&req, &conv)
	if err != nil {
		return err
	}
	if status, ok := s.nextError(session, &conv, st.Errors); ok {
		return &apiError{Status: status}
	}
	if st.Pace == 0 {
		st.Pace = s.pace
	}
	if fault.CharsPerSecond > 0 {
		st.Pace = fault.CharsPerSecond
	}
	a := s.build(st, req.Model, s.count(session, &req))
	log := s.log.With(zap.String("session", session), zap.String("model", req.Model), zap.String("script", name))
	bill := s.ledger.add
	if req.probe() {
		bill = s.ledger.addProbe
	}
	if !req.Stream {
		// Billed before it is written: who has the answer can trust the bill.
		bill(session, req.Model, request, a.Usage)
		log.Info("model call answered", zap.Int("output_tokens", a.Usage.OutputTokens))
		return writeJSON(w, &a)
	}
	out := newStream(r.Context(), w, req.Model, fault, f)
	err = out.answer(&a, func() { bill(session, req.Model, request, a.Usage) })
	if err != nil && out.open {
		// The client was told what the prompt costs, and counts that; a provider bills what
		// it had made besides.
		s.ledger.addCut(session, req.Model, request, a.Usage.opening(out.guess.tokens()), a.Usage.opening(out.made.tokens()))
	}
	switch {
	case errors.As(err, &cutError{}):
		log.Info("model call cut by a fault")
		return http.ErrAbortHandler
	case err != nil:
		return fmt.Errorf("answer session %s: %w", session, err)
	}
	log.Info("model call answered", zap.Int("output_tokens", a.Usage.OutputTokens))
	return nil
}

// before runs the part of a fault that comes before any answer.
func (f *Fault) before(ctx context.Context, w http.ResponseWriter) error {
	if f.Hang > 0 {
		if err := pause(ctx, time.Duration(f.Hang)); err != nil {
			return err
		}
	}
	if f.Garbage {
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("<html>this is not an answer\x00\xff")) // a client that left needs no garbage
		return errors.New("answered with garbage by a fault")
	}
	if f.Status > 0 {
		return &apiError{Status: f.Status, Message: f.Message, RetryAfter: f.RetryAfter}
	}
	return nil
}

// nextError returns the next status of an error directive that this place of
// the conversation has not answered yet: the retry gets the one after it.
func (s *Server) nextError(session string, c *conversation, statuses []int) (int, bool) {
	if len(statuses) == 0 {
		return 0, false
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%s", session, c.index, len(c.Rounds), c.Last))
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.erred[key]
	if n >= len(statuses) {
		return 0, false
	}
	s.erred[key] = n + 1
	return statuses[n], true
}

// count counts the prompt against the session's cache.
func (s *Server) count(session string, req *request) usage {
	segs := req.segments()
	s.mu.Lock()
	defer s.mu.Unlock()
	key := session + "\x00" + req.Model
	c := s.caches[key]
	if c == nil {
		if len(s.caches) >= maxCaches {
			clear(s.caches)
		}
		c = &promptCache{}
		s.caches[key] = c
	}
	return c.count(segs)
}

func (s *Server) countTokens(w http.ResponseWriter, req *request) error {
	w.Header().Set("Content-Type", "application/json")
	if _, err := fmt.Fprintf(w, `{"input_tokens":%d}`, req.promptTokens()); err != nil {
		return fmt.Errorf("write count: %w", err)
	}
	return nil
}

func (s *Server) recordRequest(r *http.Request, body []byte) {
	if s.record == nil {
		return
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return // it was decoded before, so this cannot happen
	}
	line, err := json.Marshal(struct {
		Path    string          `json:"path"`
		Session string          `json:"session"`
		Agent   string          `json:"agent"`
		Beta    string          `json:"beta"`
		Body    json.RawMessage `json:"body"`
	}{r.URL.RequestURI(), r.Header.Get("X-Claude-Code-Session-Id"), r.UserAgent(), r.Header.Get("Anthropic-Beta"), compact.Bytes()})
	if err != nil {
		s.log.Warn("record request", zap.Error(err))
		return
	}
	s.recordMu.Lock()
	defer s.recordMu.Unlock()
	if _, err := s.record.Write(append(line, '\n')); err != nil {
		s.log.Warn("record request", zap.Error(err))
	}
}
