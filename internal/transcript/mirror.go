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

	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
)

const (
	// mirrorEvery is how often a running turn's transcripts are copied, and mirrorAfter the delay after its end of
	// the next reads: the CLI writes a little more.
	mirrorEvery = 3 * time.Second
	mirrorAfter = time.Second
	// partBytes is about how much is written at once.
	partBytes = 4 << 20
	// maxSubagents bounds the copied subagents' files of a session.
	maxSubagents = 500
	// mirrorLast bounds the copying after a process has ended.
	mirrorLast = 10 * time.Second
)

// Store holds copies of sessions' files: the methods of [*store.Store] that a mirror needs.
type Store interface {
	Transcripts(ctx context.Context, sessionID string) ([]transcripts.Transcript, error)
	SaveTranscripts(ctx context.Context, l threads.Lease, parts []transcripts.Part) (saved bool, err error)
}

// Options configure a mirror.
type Options struct {
	Store     Store
	Home      string // the folder of the thread's home
	Lease     threads.Lease
	SessionID string
	// New says that the session is new, without copies yet.
	New   bool
	Limit int64 // of all copies of the session together, in bytes
	// Full is called when the copies of the session have reached the limit.
	Full func(context.Context)
	// Gap is called once, when a line that another one follows was not written.
	Gap func(context.Context)
	// One is held while copying during a turn, so that of the sessions that share it one copies at a time.
	One chan struct{}
	Log *zap.Logger
}

// Mirror copies the CLI's transcripts of a session to the database, so that any replica can continue it. A nil
// mirror copies nothing.
//
// Everything in the session can write the files: they are found by the names that a home keeps, opened without
// following links, read within bounds, and not obeyed.
type Mirror struct {
	o   Options
	due chan struct{} // has a token when a turn has begun or ended

	mu      sync.Mutex
	running bool // a turn is
	session string
	files   map[string]*file // by their names; nil until the copies were looked at
	gap     bool             // Gap was called
}

// NewMirror returns the mirror of a session. It looks up existing copies when they are needed.
func NewMirror(o Options) *Mirror {
	m := &Mirror{o: o, session: o.SessionID, due: make(chan struct{}, 1)}
	if o.New {
		m.files = map[string]*file{}
	}
	return m
}

// MoveTo switches to another session, without copies yet.
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

// End passes what is not copied yet to finish, which writes it with the end of a turn.
func (m *Mirror) End(ctx context.Context, finish func([]transcripts.Part) error) error {
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
		m.o.Log.Warn("copy the transcripts at a turn's end", zap.Error(err)) // it is retried during the next copy
		parts, then = nil, nil
	}
	if err := finish(parts); err != nil {
		return err
	}
	m.copied(ctx, then)
	return nil
}

// Run copies during and after turns until ctx ends.
func (m *Mirror) Run(ctx context.Context) {
	if m == nil {
		return
	}
	wait, looks := time.Duration(0), 1 // the number of reads after a turn
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
		case errors.Is(err, threads.ErrFenced) || ctx.Err() != nil:
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

// beside copies what is new during a turn, or after one: then also what was rewritten.
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

// moment is when files are read.
type moment int

const (
	inTurn    moment = iota // small changes can wait
	atEnd                   // of a turn, which waits for it
	afterTurn               // nothing waits: rewritten files are copied again
)

// Last copies what a process has left at its end.
func (m *Mirror) Last(ctx context.Context) {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mirrorLast, fmt.Errorf("no end in %s", mirrorLast))
	defer cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.copyAll(ctx, afterTurn); err != nil && !errors.Is(err, threads.ErrFenced) {
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

// save writes parts. If a copy is not as expected, it is looked up again.
func (m *Mirror) save(ctx context.Context, parts []transcripts.Part, then map[string]file) error {
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

// copied records that files are copied as far as they were read.
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

// news is what is not copied of the session's files, in parts of bounded size, and the files' state once the parts
// are written. Rewritten files are left for later unless they may be copied now.
func (m *Mirror) news(ctx context.Context, when moment) (parts []transcripts.Part, then map[string]file, err error) {
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
		f := file{copied: transcripts.Transcript{Agent: name}}
		if known := m.files[name]; known != nil {
			f = *known
		}
		if f.copied.Full || !f.changed(k.info, when) {
			continue
		}
		part, now, err := m.inspect(root, k, f, m.o.Limit-total+f.copied.Bytes, when)
		if errors.Is(err, errRewritten) {
			f.rewritten, f.info = true, k.info
			m.files[name] = &f
			if when != afterTurn {
				continue
			}
			part, now, err = m.inspect(root, k, f, m.o.Limit-total+f.copied.Bytes, when)
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

func partsSize(parts []transcripts.Part) (n int) {
	for _, p := range parts {
		for _, piece := range p.Pieces {
			n += len(piece)
		}
	}
	return n
}

// inspect reads what is not copied of a file. One with far more than there is room for counts as full.
func (m *Mirror) inspect(root *os.Root, k keptFile, f file, room int64, when moment) (part transcripts.Part, then file, err error) {
	src, err := k.open(root, keptProjects)
	if err != nil || src == nil {
		return part, f, err
	}
	defer src.Close() //nolint:errcheck // it is only read
	most := int64(partBytes)
	anew := f.rewritten && when == afterTurn
	if anew {
		most = math.MaxInt64 // in one transaction: the old copy is better than half of the new one
	}
	f.info = k.info
	more := false
	if k.info.Size()-f.last.file > m.o.Limit+maxUnread {
		part, then = f.fill()
	} else if part, then, more, err = f.read(src, room, most, anew); more {
		then.info = nil // it is read again
	}
	part.SessionID = m.session
	return part, then, err
}

// maxUnread is how much a file may have beyond its copy, in bytes: lines that are not kept.
const maxUnread = 64 << 20

// changed reports whether a file should be read: it has changed since the last read. During a turn, one with a long
// unfinished line is read again only after it has grown a good deal.
func (f *file) changed(info fs.FileInfo, when moment) bool {
	switch {
	case f.info == nil || !os.SameFile(f.info, info) || f.rewritten && when == afterTurn:
		return true
	case when == inTurn && f.unread > partBytes && info.Size() >= f.info.Size() && info.Size()-f.info.Size() < f.unread/4:
		return false
	}
	return info.Size() != f.info.Size() || !info.ModTime().Equal(f.info.ModTime())
}

// lookUp reads what is already copied of the session.
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
