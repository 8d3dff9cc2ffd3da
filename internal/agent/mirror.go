package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/sandbox"
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

// mirror copies what the CLI writes down of a session into the books, so that any replica
// can go on with it. A nil mirror copies nothing.
//
// The files are written by whatever runs in the session: they are found by the names that
// a home keeps, opened without following links, read within bounds, and not obeyed.
type mirror struct {
	books transcriptBook
	dir   string // of the home
	lease store.Lease
	limit int64                         // of all copies of the session together, in bytes
	say   func(context.Context, string) // to the thread
	one   chan struct{}                 // held while copying beside a turn: one session of the replica at a time
	log   *zap.Logger

	due chan struct{} // has a token when a turn has begun or ended

	mu      sync.Mutex
	running bool // a turn is
	session string
	files   map[string]*transcriptFile // by their names; nil until the copies were looked at
}

// newMirror returns the mirror of a session whose copies, if there may be some, are looked
// for when they are needed.
func (w *worker) newMirror(sessionID string, resumed bool) *mirror {
	dir := w.machine.home(w.threadID)
	if dir == "" {
		return nil
	}
	m := &mirror{
		books: w.books, dir: dir, lease: w.heldLease(), limit: w.limits.Transcript, one: w.copying, log: w.log, session: sessionID,
		due: make(chan struct{}, 1),
	}
	key := w.thread.Key()
	m.say = func(ctx context.Context, sentence string) { w.sayIn(ctx, key, sentence) }
	if !resumed {
		m.files = map[string]*transcriptFile{}
	}
	return m
}

// moveTo goes on with another session, of which there are no copies yet.
func (m *mirror) moveTo(sessionID string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session, m.files = sessionID, map[string]*transcriptFile{}
}

// begin says that a turn has begun.
func (m *mirror) begin() { m.turn(true) }

func (m *mirror) turn(running bool) {
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

// end gives what is not copied yet to finish, which writes it with the end of a turn.
func (m *mirror) end(ctx context.Context, finish func([]store.TranscriptPart) error) error {
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
		m.log.Warn("copy the transcripts at a turn's end", zap.Error(err)) // it is tried again beside
		parts, then = nil, nil
	}
	if err := finish(parts); err != nil {
		return err
	}
	m.copied(ctx, then)
	return nil
}

// run copies beside the turns until ctx ends.
func (m *mirror) run(ctx context.Context) {
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
			m.log.Warn("copy the transcripts", zap.Error(err))
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
func (m *mirror) beside(ctx context.Context) error {
	select {
	case m.one <- struct{}{}:
		defer func() { <-m.one }()
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

// last copies what a process has left when it has ended.
func (m *mirror) last(ctx context.Context) {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mirrorLast, fmt.Errorf("no end in %s", mirrorLast))
	defer cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.copyAll(ctx, afterTurn); err != nil && !errors.Is(err, store.ErrFenced) {
		m.log.Warn("copy the transcripts of a process that has ended", zap.Error(err))
	}
}

func (m *mirror) copyAll(ctx context.Context, when moment) error {
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
func (m *mirror) save(ctx context.Context, parts []store.TranscriptPart, then map[string]transcriptFile) error {
	saved, err := m.books.SaveTranscripts(ctx, m.lease, parts)
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
func (m *mirror) copied(ctx context.Context, then map[string]transcriptFile) {
	for name, f := range then {
		if f.copied.Full && !m.full() {
			m.say(ctx, fmt.Sprintf("This conversation has grown beyond %s: what is said from here on is not copied any more, and is lost if the bot's machine is. `/clear`, or a new thread, begins a new one.", sandbox.Size(m.limit)))
		}
		m.files[name] = &f
	}
}

// full reports whether a copy has reached the limit.
func (m *mirror) full() bool {
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
func (m *mirror) news(ctx context.Context, when moment) (parts []store.TranscriptPart, then map[string]transcriptFile, err error) {
	if err := m.lookUp(ctx); err != nil {
		return nil, nil, err
	}
	root, err := openHome(m.dir)
	if err != nil || root == nil {
		return nil, nil, err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	found, err := sessionFiles(root, m.session)
	if err != nil {
		return nil, nil, err
	}
	then = map[string]transcriptFile{}
	var total int64
	for _, f := range m.files {
		total += f.copied.Bytes
	}
	var errs []error
	for _, k := range found {
		name := k.agentID()
		f := transcriptFile{copied: store.Transcript{Agent: name}}
		if known := m.files[name]; known != nil {
			f = *known
		}
		if f.copied.Full || !f.changed(k.info, when) {
			continue
		}
		part, now, err := m.look(root, k, f, m.limit-total+f.copied.Bytes, when)
		if errors.Is(err, errRewritten) {
			f.rewritten, f.info = true, k.info
			m.files[name] = &f
			if when != afterTurn {
				continue
			}
			part, now, err = m.look(root, k, f, m.limit-total+f.copied.Bytes, when)
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
func (m *mirror) look(root *os.Root, k keptFile, f transcriptFile, room int64, when moment) (part store.TranscriptPart, then transcriptFile, err error) {
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
	if k.info.Size()-f.last.file > m.limit+maxUnread {
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
func (f *transcriptFile) changed(info fs.FileInfo, when moment) bool {
	switch {
	case f.info == nil || !os.SameFile(f.info, info) || f.rewritten && when == afterTurn:
		return true
	case when == inTurn && f.unread > partBytes && info.Size() >= f.info.Size() && info.Size()-f.info.Size() < f.unread/4:
		return false
	}
	return info.Size() != f.info.Size() || !info.ModTime().Equal(f.info.ModTime())
}

// lookUp finds out what is copied of the session.
func (m *mirror) lookUp(ctx context.Context) error {
	if m.files != nil {
		return nil
	}
	copies, err := m.books.Transcripts(ctx, m.session)
	if err != nil {
		return err
	}
	m.files = map[string]*transcriptFile{}
	for _, c := range copies {
		m.files[c.Agent] = &transcriptFile{copied: c}
	}
	return nil
}

// keptProjects is where the transcripts lie in a home.
const keptProjects = ".claude/projects"

// openHome opens a home, which is a folder and no link to one; nil if there is none.
func openHome(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seen, err := os.Lstat(dir)
	if err == nil {
		var is fs.FileInfo
		if is, err = root.Stat("."); err == nil && !os.SameFile(seen, is) {
			err = fmt.Errorf("%s is not the folder that it was", dir)
		}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// sessionFiles are the transcripts of a session in a home: its own first, the one that was
// written last if there are several, then those of its subagents.
func sessionFiles(root *os.Root, sessionID string) ([]keptFile, error) {
	l := lister{root: root, left: maxKeptFiles}
	own, agents := map[string]keptFile{}, map[string]keptFile{}
	newest := func(in map[string]keptFile, name string, f keptFile) {
		if was, ok := in[name]; !ok || was.info.ModTime().Before(f.info.ModTime()) {
			in[name] = f
		}
	}
	for _, slug := range l.folder(keptProjects) {
		if !slug.IsDir() || !slugName.MatchString(slug.Name()) {
			continue
		}
		at := path.Join(slug.Name(), sessionID)
		if info, err := root.Lstat(path.Join(keptProjects, at+".jsonl")); err == nil && keepable(info) {
			newest(own, "", keptFile{path: at + ".jsonl", session: sessionID, info: info})
		}
		for _, a := range l.folder(path.Join(keptProjects, at, "subagents")) {
			if keepable(a) && agentName.MatchString(a.Name()) && len(agents) < maxSubagents {
				f := keptFile{path: path.Join(at, "subagents", a.Name()), session: sessionID, agent: true, info: a}
				newest(agents, f.agentID(), f)
			}
		}
	}
	out := slices.Collect(maps.Values(own))
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		out = append(out, agents[name])
	}
	return out, l.err
}
