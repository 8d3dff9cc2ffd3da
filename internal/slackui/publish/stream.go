package publish

import (
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn"
)

// Slack ends a stream about five minutes after its start, or after half a minute of silence, and accepts about
// 11,000 characters. It does not announce these limits, and shows an error when it ends one, so we end it before.
const (
	streamLife   = 225 * time.Second
	streamIdle   = 25 * time.Second
	streamBytes  = 9000
	streamBlocks = 45 // of 50
	// lastBytes and lastBlocks are the limits for a last state.
	lastBytes, lastBlocks = 10_500, 50
)

const (
	// fewLive is the gap between edits of one message up to which edits suffice.
	fewLive = 3 * time.Second
	// stillLive is how long after its last change a message counts as live.
	stillLive = 15 * time.Second
	// streamsAgain is when a place that refused streams is tried again.
	streamsAgain = 6 * time.Hour
)

// stream is Slack's state of a message that was begun as a stream.
type stream struct {
	open        bool
	broken      bool // its content is unknown: it is stopped, and the message edited
	stop        bool // it must end, as the scheduler stops
	since, last time.Time
	bytes       int
	blocks      int
	pieces      []render.Piece
	plan        []render.Task
}

// growth is what must be appended to a stream for a state, and its state afterwards.
type growth struct {
	chunks []slack.StreamChunk
	then   stream
	leads  bool // appending suffices
	fits   bool // within the limits for continuing
}

func (g *growth) put(c slack.StreamChunk, bytes, blocks int) {
	g.chunks = append(g.chunks, c)
	g.then.bytes += bytes
	g.then.blocks += blocks
}

func (g *growth) text(s string, blocks int) {
	if s != "" {
		g.put(slack.NewMarkdownTextChunk(s), len(s), blocks)
	}
}

// task appends a task's state. Slack concatenates outputs, so each is sent once.
func (g *growth) task(had *render.Task, t render.Task) render.Task {
	blocks := 1
	c := slack.NewTaskUpdateChunk(t.ID, t.Title)
	c.Status, c.Output = t.Status, t.Output
	if had != nil {
		blocks = 0
		if had.Output != "" {
			c.Output, t.Output = "", had.Output
		}
		if *had == t {
			return t
		}
	}
	g.put(c, len(c.Title)+len(c.Output), blocks)
	return t
}

// grow returns the growth from a stream's content to a state.
func (st stream) grow(want *render.Stream) growth {
	g := growth{then: st}
	g.then.pieces, g.then.plan = slices.Clone(st.pieces), slices.Clone(st.plan)
	if want == nil || len(want.Pieces) < len(st.pieces) {
		return g
	}
	if !st.open && len(want.Head) > 0 {
		g.put(slack.NewBlocksChunk(want.Head...), 0, len(want.Head))
	}
	last := len(st.pieces) - 1
	for i, had := range st.pieces {
		now := want.Pieces[i]
		switch {
		case had.Task != nil && now.Task != nil && had.Task.ID == now.Task.ID:
			t := g.task(had.Task, *now.Task)
			now.Task = &t
		case had.Task != nil || now.Task != nil || had.Line != now.Line || !strings.HasPrefix(now.Text, had.Text),
			i != last && now.Text != had.Text:
			return g
		default:
			g.text(now.Text[len(had.Text):], 0)
		}
		g.then.pieces[i] = now
	}
	g.steps(want, last)
	for _, p := range want.Pieces[len(st.pieces):] {
		switch {
		case p.Task != nil:
			t := g.task(nil, *p.Task)
			p.Task = &t
		case p.Line != "":
			g.put(slack.NewBlocksChunk(slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, p.Line, false, false))), len(p.Line), 1)
		default:
			g.text(p.Text, 1)
		}
		g.then.pieces = append(g.then.pieces, p)
	}
	g.leads = g.then.bytes <= lastBytes && g.then.blocks <= lastBlocks
	g.fits = g.then.bytes <= streamBytes && g.then.blocks <= streamBlocks
	return g
}

// steps appends the list of work. New items would split a text that is being written.
func (g *growth) steps(want *render.Stream, last int) {
	parts := last >= 0 && g.then.pieces[last].Text != "" && len(want.Pieces) == last+1
	for _, t := range want.Plan {
		i := slices.IndexFunc(g.then.plan, func(x render.Task) bool { return x.ID == t.ID })
		switch {
		case i >= 0:
			g.then.plan[i] = g.task(&g.then.plan[i], t)
		case !parts:
			g.then.plan = append(g.then.plan, g.task(nil, t))
		}
	}
}

// sign is a chunk that keeps a stream alive without a visible change: a running task, again.
func (st stream) sign() slack.StreamChunk {
	tasks := slices.Clone(st.plan)
	for _, p := range st.pieces {
		if p.Task != nil {
			tasks = append(tasks, *p.Task)
		}
	}
	for _, t := range slices.Backward(tasks) {
		if t.Status == slack.TaskCardStatusInProgress {
			c := slack.NewTaskUpdateChunk(t.ID, t.Title)
			c.Status = t.Status
			return c
		}
	}
	return nil
}

// closer closes a code block at a stream's end.
func (st stream) closer() string {
	if n := len(st.pieces) - 1; n >= 0 && mrkdwn.InFence(st.pieces[n].Text) {
		return "\n```"
	}
	return ""
}

// growth returns the growth of the job's stream to its latest state.
func (j *job) growth() *growth {
	if j.grown == nil {
		g := j.stream.grow(j.msg.Page.Stream)
		j.grown = &g
	}
	return j.grown
}

// due is when an open stream needs attention, whatever is shown.
func (st stream) due() time.Time {
	if end := st.since.Add(streamLife); end.Before(st.last.Add(streamIdle)) {
		return end
	}
	return st.last.Add(streamIdle)
}

// closes reports whether to stop an open stream now, and to edit the message.
func (j *job) closes(now time.Time) bool {
	st, g := j.stream, j.growth()
	return st.broken || st.stop || !g.fits || j.msg.priority() > Live || now.Sub(st.since) >= streamLife ||
		len(g.chunks) == 0 && now.Sub(st.last) >= streamIdle && st.sign() == nil
}

// step decides the method and priority of a message's next call.
func (s *Scheduler) step(j *job, now time.Time) (Method, Priority) {
	switch {
	case j.ts == "" && s.starts(j, now):
		return StartStream, max(Normal, j.msg.priority())
	case j.ts == "":
		return PostMessage, max(Normal, j.msg.priority())
	case j.tidies():
		return UpdateMessage, Normal
	case !j.stream.open:
		return UpdateMessage, j.msg.priority()
	}
	urgent := j.msg.priority()
	if j.stream.stop {
		urgent = Answer
	}
	if !j.closes(now) {
		if !now.Before(j.stream.due()) {
			return AppendStream, Normal
		}
		return AppendStream, urgent
	}
	// A last state does not wait until the stream may be stopped: the rest is appended.
	if g := j.growth(); j.msg.Final && !j.stream.broken && g.leads && len(g.chunks) > 0 &&
		now.Sub(j.stream.since) < streamLife && s.bucket(StopStream, now).when(now, 1).After(now) {
		return AppendStream, max(Answer, urgent)
	}
	return StopStream, max(Normal, urgent)
}

// tidies reports whether a message's next call is an edit without news: its content is already there or below, or
// has become useless.
func (j *job) tidies() bool {
	return j.call == nil && j.ts != "" && !j.stream.open && j.msg.Final && (j.told || j.msg.Priority < Answer)
}

// starts reports whether a message is posted as a stream: that must be possible, and lead to more frequent changes
// than edits. Starts are few: one is reserved for watched groups, and later messages of a turn get one only while
// there are many, since messages without one are worse off.
func (s *Scheduler) starts(j *job, now time.Time) bool {
	m := &j.msg
	if m.Page.Stream == nil || len(m.Page.Stream.Pieces) == 0 || m.Recipient.User == "" || m.ThreadTS == "" || m.Wanted != nil ||
		m.Broadcast || m.priority() > Live || j.edited || j.doubt || s.draining || s.refusals.noStreams() ||
		now.Before(s.noStreams[""]) || now.Before(s.noStreams[m.Channel]) {
		return false
	}
	if first := s.messages[m.After]; first != nil && first.ts == "" {
		return false
	}
	edits, streams := s.lively(j, now)
	// All last states are edits, too; turns are assumed to last three minutes.
	edit, appending := s.bucket(UpdateMessage, now).rate, s.bucket(AppendStream, now).period()
	update := time.Duration(float64(time.Minute) / max(edit.perMinute/4, edit.perMinute-float64(edits+streams+1)/3))
	perEdit, perAppend := time.Duration(edits+1)*update, time.Duration(streams+1)*appending
	if perEdit <= fewLive || perAppend > perEdit || !s.room(now) && s.oldest(now) == nil {
		return false
	}
	start, stop := s.bucket(StartStream, now), s.bucket(StopStream, now)
	need := min(2, start.burst)
	if first := s.messages[m.After]; first != nil && first.streamed {
		need = 0.8 * start.burst
	}
	if s.isWatched(m.Group, now) {
		need = 1
	}
	return !start.when(now, need).After(now) && !stop.when(now, 1).After(now.Add(streamIdle))
}

// room reports whether one more stream can be kept alive.
func (s *Scheduler) room(now time.Time) bool {
	return time.Duration(len(s.open)+1)*s.bucket(AppendStream, now).period() <= streamIdle+2*time.Second
}

// oldest is the unwatched stream that is ended to make room for another: it has changed often, and is edited from
// then on.
func (s *Scheduler) oldest(now time.Time) (oldest *job) {
	for j := range s.open {
		if !j.flying && !j.stream.stop && !j.stream.broken && !s.isWatched(j.msg.Group, now) && (oldest == nil || j.stream.since.Before(oldest.stream.since)) {
			oldest = j
		}
	}
	return oldest
}

// makeWay ends a stream if there is no room for the one that begins now.
func (s *Scheduler) makeWay(now time.Time) {
	if s.room(now) {
		return
	}
	if j := s.oldest(now); j != nil {
		j.stream.stop = true
		if j.index < 0 {
			s.enqueue(j)
		}
	}
}

// lively counts the other live messages, by how they are changed.
func (s *queue) lively(j *job, now time.Time) (edits, streams int) {
	for _, x := range s.messages {
		switch {
		case x == j, x.msg.priority() > Live || now.Sub(x.changed) > stillLive:
		case x.stream.open:
			streams++
		default:
			edits++
		}
	}
	return edits, streams
}

// attend makes open streams pending that need a call of their own, and returns when the next one will.
func (s *queue) attend(now time.Time) (next time.Time) {
	for j := range s.open {
		if j.index >= 0 || j.flying {
			continue
		}
		if at := j.stream.due(); at.After(now) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			continue
		}
		s.enqueue(j)
	}
	return next
}
