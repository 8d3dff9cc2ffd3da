package transcript

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/store"
)

const (
	// mirrorEvery is how often a running turn's transcripts are copied, and mirrorAfter
	// how long after its end they are looked at again: the CLI writes a little more.
	mirrorEvery = 3 * time.Second
	mirrorAfter = time.Second
	// partBytes is how much is written at once, about.
	partBytes = 4 << 20
	// maxSubagents is how many subagents' files of a session are copied.
	maxSubagents = 500
	// mirrorLast bounds what is copied when a process has ended.
	mirrorLast = 10 * time.Second
)

// Store holds copies of the files of sessions: what a mirror needs of [*store.Store], which
// tells what each method does.
type Store interface {
	Transcripts(ctx context.Context, sessionID string) ([]store.Transcript, error)
	SaveTranscripts(ctx context.Context, l store.Lease, parts []store.TranscriptPart) (saved bool, err error)
}

// Options say what a mirror copies, and where to.
type Options struct {
	Store     Store
	Home      string // the folder of the thread's home
	Lease     store.Lease
	SessionID string
	// New says that the session is new: there are no copies of it yet.
	New   bool
	Limit int64 // of all copies of the session together, in bytes
	// Full is called when the copies of the session have reached the limit.
	Full func(context.Context)
	// Gap is called, once, when a line that another follows was not written.
	Gap func(context.Context)
	// One is held while copying beside a turn: one session of those that share it at a
	// time.
	One chan struct{}
	Log *zap.Logger
}

// Mirror copies what the CLI writes down of a session to the database, so that any replica
// can go on with it. A nil mirror copies nothing.
//
// The files are written by whatever runs in the session: they are found by the names that
// a home keeps, opened without following links, read within bounds, and not obeyed.
type Mirror struct {
	o   Options
	due chan struct{} // has a token when a turn has begun or ended

	mu      sync.Mutex
	running bool // a turn is
	session string
	files   map[string]*file // by their names; nil until the copies were looked at
	gap     bool             // Gap was called
}

// NewMirror returns the mirror of a session whose copies, if there may be some, are looked
// for when they are needed.
func NewMirror(o Options) *Mirror {
	m := &Mirror{o: o, session: o.SessionID, due: make(chan struct{}, 1)}
	if o.New {
		m.files = map[string]*file{}
	}
	return m
}

// MoveTo goes on with another session, of which there are no copies yet.
func (m *Mirror) MoveTo(sessionID string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session, m.files = sessionID, map[string]*file{}
}

// Begin says that a turn has begun.
func (m *Mirror) Begin() { m.turn(true) }

func (m *Mirror) turn(running bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.running = running
	m.mu.Unlock()
	select {
	case m.due <- struct{}{}:
	default:
	}
}

// End gives what is not copied yet to finish, which writes it with the end of a turn.
func (m *Mirror) End(ctx context.Context, finish func([]store.TranscriptPart) error) error {
	if m == nil {
		return finish(nil)
	}
	defer m.turn(false)
	m.mu.Lock()
	defer m.mu.Unlock()
	parts, then, err := m.news(ctx, atEnd)
	for err == nil && partsSize(parts) >= partBytes {
		if err = m.save(ctx, parts, then); err == nil {
			parts, then, err = m.news(ctx, atEnd)
		}
	}
	if err != nil {
		m.o.Log.Warn("copy the transcripts at a turn's end", zap.Error(err)) // it is tried again beside
		parts, then = nil, nil
	}
	if err := finish(parts); err != nil {
		return err
	}
	m.copied(ctx, then)
	return nil
}

// Run copies beside the turns until ctx ends.
func (m *Mirror) Run(ctx context.Context) {
	if m == nil {
		return
	}
	wait, looks := time.Duration(0), 1 // how often it is looked after a turn
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.due:
			looks = 2
			timer.Reset(mirrorAfter)
			continue
		case <-timer.C:
		}
		err := m.beside(ctx)
		m.mu.Lock()
		running := m.running
		m.mu.Unlock()
		switch {
		case errors.Is(err, store.ErrFenced) || ctx.Err() != nil:
			return
		case err != nil:
			m.o.Log.Warn("copy the transcripts", zap.Error(err))
			wait = min(max(2*wait, mirrorEvery), time.Minute)
			timer.Reset(wait)
			continue
		case !running:
			looks--
		}
		if wait = mirrorEvery; running || looks > 0 {
			timer.Reset(wait)
		}
	}
}

// beside copies what is new beside a turn, or after one: then also what was rewritten.
func (m *Mirror) beside(ctx context.Context) error {
	select {
	case m.o.One <- struct{}{}:
		defer func() { <-m.o.One }()
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running {
		return m.copyAll(ctx, inTurn)
	}
	return m.copyAll(ctx, afterTurn)
}

// moment is when files are looked at.
type moment int

const (
	inTurn    moment = iota // what is not worth its reading can wait
	atEnd                   // of a turn, which waits for it
	afterTurn               // nothing waits: what was rewritten is copied anew
)

// Last copies what a process has left when it has ended.
func (m *Mirror) Last(ctx context.Context) {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mirrorLast, fmt.Errorf("no end in %s", mirrorLast))
	defer cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.copyAll(ctx, afterTurn); err != nil && !errors.Is(err, store.ErrFenced) {
		m.o.Log.Warn("copy the transcripts of a process that has ended", zap.Error(err))
	}
}

func (m *Mirror) copyAll(ctx context.Context, when moment) error {
	for {
		parts, then, err := m.news(ctx, when)
		if err != nil || len(parts) == 0 {
			return err
		}
		if err := m.save(ctx, parts, then); err != nil {
			return err
		}
	}
}

// save writes parts. What is not as it was taken for is looked at again.
func (m *Mirror) save(ctx context.Context, parts []store.TranscriptPart, then map[string]file) error {
	saved, err := m.o.Store.SaveTranscripts(ctx, m.o.Lease, parts)
	if err != nil {
		return err
	}
	if !saved {
		m.files = nil
		return errors.New("the copies in the database are not what they were")
	}
	m.copied(ctx, then)
	return nil
}

// copied notes that files are copied as far as they were read.
func (m *Mirror) copied(ctx context.Context, then map[string]file) {
	for name, f := range then {
		if f.copied.Full && !m.full() {
			m.o.Full(ctx)
		}
		if f.gap && name == "" && !m.gap {
			m.gap = true
			m.o.Gap(ctx)
		}
		m.files[name] = &f
	}
}

// full reports whether a copy has reached the limit.
func (m *Mirror) full() bool {
	for _, f := range m.files {
		if f.copied.Full {
			return true
		}
	}
	return false
}

// news is what the session's files have that is not copied, in parts of bounded size, and
// the files as they are when the parts are written. What was rewritten is left for later
// unless it may be copied anew.
func (m *Mirror) news(ctx context.Context, when moment) (parts []store.TranscriptPart, then map[string]file, err error) {
	if err := m.lookUp(ctx); err != nil {
		return nil, nil, err
	}
	root, err := openHome(m.o.Home)
	if err != nil || root == nil {
		return nil, nil, err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	found, err := sessionFiles(root, m.session)
	if err != nil {
		return nil, nil, err
	}
	then = map[string]file{}
	var total int64
	for _, f := range m.files {
		total += f.copied.Bytes
	}
	var errs []error
	for _, k := range found {
		name := k.agentID()
		f := file{copied: store.Transcript{Agent: name}}
		if known := m.files[name]; known != nil {
			f = *known
		}
		if f.copied.Full || !f.changed(k.info, when) {
			continue
		}
		part, now, err := m.look(root, k, f, m.o.Limit-total+f.copied.Bytes, when)
		if errors.Is(err, errRewritten) {
			f.rewritten, f.info = true, k.info
			m.files[name] = &f
			if when != afterTurn {
				continue
			}
			part, now, err = m.look(root, k, f, m.o.Limit-total+f.copied.Bytes, when)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if len(part.Pieces) == 0 && !part.Full {
			m.files[name] = &now
			continue
		}
		total += part.Bytes - f.copied.Bytes
		then[name] = now
		if parts = append(parts, part); total > 0 && partsSize(parts) >= partBytes {
			break
		}
	}
	return parts, then, errors.Join(errs...)
}

func partsSize(parts []store.TranscriptPart) (n int) {
	for _, p := range parts {
		for _, piece := range p.Pieces {
			n += len(piece)
		}
	}
	return n
}

// look reads what a file has that is not copied. One that has far more than there is room
// for, whatever it is, is full.
func (m *Mirror) look(root *os.Root, k keptFile, f file, room int64, when moment) (part store.TranscriptPart, then file, err error) {
	src, err := k.open(root, keptProjects)
	if err != nil || src == nil {
		return part, f, err
	}
	defer src.Close() //nolint:errcheck // it is only read
	most := int64(partBytes)
	anew := f.rewritten && when == afterTurn
	if anew {
		most = math.MaxInt64 // in one transaction: what is there is better than half of the new one
	}
	f.info = k.info
	more := false
	if k.info.Size()-f.last.file > m.o.Limit+maxUnread {
		part, then = f.fill()
	} else if part, then, more, err = f.read(src, room, most, anew); more {
		then.info = nil // it is looked at again
	}
	part.SessionID = m.session
	return part, then, err
}

// maxUnread is how much may stand in a file beyond what is copied of it, in bytes: lines
// that are not kept.
const maxUnread = 64 << 20

// changed reports whether a file is worth a look: it is not what was read last. In a turn,
// one with a long line that does not come to its end is read again when it has become a
// good deal longer.
func (f *file) changed(info fs.FileInfo, when moment) bool {
	switch {
	case f.info == nil || !os.SameFile(f.info, info) || f.rewritten && when == afterTurn:
		return true
	case when == inTurn && f.unread > partBytes && info.Size() >= f.info.Size() && info.Size()-f.info.Size() < f.unread/4:
		return false
	}
	return info.Size() != f.info.Size() || !info.ModTime().Equal(f.info.ModTime())
}

// lookUp finds out what is copied of the session.
func (m *Mirror) lookUp(ctx context.Context) error {
	if m.files != nil {
		return nil
	}
	copies, err := m.o.Store.Transcripts(ctx, m.session)
	if err != nil {
		return err
	}
	m.files = map[string]*file{}
	for _, c := range copies {
		m.files[c.Agent] = &file{copied: c}
	}
	return nil
}
