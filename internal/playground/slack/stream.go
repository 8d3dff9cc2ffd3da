package slack

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	streamLife      = 5 * time.Minute
	streamIdle      = 30 * time.Second // without a chunk, as reported from the field
	maxStreamSize   = 11000            // characters in all, as reported from the field
	maxStreamBlocks = 50               // by chunks; as many again when it is stopped
	maxTaskText     = 256
)

// The states of a stream.
const (
	streamLive    = "live"
	streamStopped = "stopped"
	streamExpired = "expired"
)

// stream is what makes a message grow: it is live until it is stopped, or until
// its time is up.
type stream struct {
	State    string    `json:"state"`
	Display  string    `json:"display"` // timeline or plan
	Plan     string    `json:"plan,omitempty"`
	Segments []segment `json:"segments,omitempty"`
	Size     int       `json:"size"` // characters so far

	timer *time.Timer // of its end
	idle  *time.Timer // of its end if nothing comes
}

// segment is one piece of a stream, in the order of arrival: text, a task or blocks.
type segment struct {
	ID     string `json:"id"` // its block's id
	Text   string `json:"text,omitempty"`
	Task   object `json:"task,omitempty"`
	Blocks []any  `json:"blocks,omitempty"`
}

func (st *stream) stopTimer() {
	if st.timer != nil {
		st.timer.Stop()
	}
	if st.idle != nil {
		st.idle.Stop()
	}
}

// chunksArg reads markdown_text and chunks as chunks.
func (s *Server) chunksArg(c *call) ([]any, error) {
	chunks, err := c.list("chunks")
	if err != nil {
		return nil, fail("invalid_chunks")
	}
	if t := c.str("markdown_text"); t != "" {
		chunks = append([]any{object{"type": "markdown_text", "text": t}}, chunks...)
	}
	var out []any
	for i, raw := range chunks {
		chunk, ok := raw.(object)
		if !ok {
			return nil, failBecause("invalid_chunks", "must provide an object [json-pointer:/chunks/"+itoa(i)+"]")
		}
		at := "/chunks/" + itoa(i)
		if kind := chunkBlocks[text(chunk["type"])]; kind != "" {
			if err := s.refuseBlocks([]any{object{"type": kind}}, "stream", at, "invalid_chunks"); err != nil {
				return nil, err
			}
		}
		switch text(chunk["type"]) {
		case "markdown_text":
			t, ok := chunk["text"].(string)
			if !ok {
				return nil, failBecause("invalid_chunks", "missing required field: text [json-pointer:"+at+"]")
			}
			if utf8.RuneCountInString(t) > maxMarkdownText {
				return nil, fail("msg_too_long")
			}
			if err := s.refuseText(t, "stream"); err != nil {
				return nil, err
			}
		case "task_update":
			if problems := checkTaskChunk(chunk, at); len(problems) > 0 {
				return nil, failBecause("invalid_chunks", problems...)
			}
		case "plan_update":
			if t, ok := chunk["title"].(string); !ok || t == "" || utf8.RuneCountInString(t) > maxTaskText {
				return nil, failBecause("invalid_chunks", "must be between 1 and 256 characters [json-pointer:"+at+"/title]")
			}
		case "blocks":
			list, ok := chunk["blocks"].([]any)
			if !ok {
				return nil, failBecause("invalid_chunks", "missing required field: blocks [json-pointer:"+at+"]")
			}
			if err := s.refuseBlocks(list, "stream", at+"/blocks", "invalid_blocks"); err != nil {
				return nil, err
			}
			checked, problems := checkBlocks(list, surfaceStream, at+"/blocks", s.fileKnown)
			if len(problems) > 0 {
				return nil, failBecause("invalid_blocks", problems...)
			}
			chunk = object{"type": "blocks", "blocks": checked}
		default:
			return nil, failBecause("invalid_chunks", "unsupported type: "+text(chunk["type"])+" [json-pointer:"+at+"/type]")
		}
		out = append(out, chunk)
	}
	return out, nil
}

// chunkBlocks are the blocks that chunks become.
var chunkBlocks = map[string]string{"markdown_text": "markdown", "task_update": "task_card", "plan_update": "plan"}

// taskStatuses are those of a task card.
var taskStatuses = []string{"pending", "in_progress", "complete", "error"}

func checkTaskChunk(chunk object, at string) []string {
	var problems []string
	for _, k := range []string{"id", "title"} {
		if t, ok := chunk[k].(string); !ok || t == "" {
			problems = append(problems, "missing required field: "+k+" [json-pointer:"+at+"]")
		}
	}
	for _, k := range []string{"title", "details", "output"} {
		if utf8.RuneCountInString(text(chunk[k])) > maxTaskText {
			problems = append(problems, "must be less than 257 characters [json-pointer:"+at+"/"+k+"]")
		}
	}
	if v, ok := chunk["status"]; ok && !slices.Contains(taskStatuses, text(v)) {
		problems = append(problems, "must be one of pending, in_progress, complete, error [json-pointer:"+at+"/status]")
	}
	return problems
}

// grow adds chunks to a stream, which may have so many blocks then.
func (st *stream) grow(chunks []any, most int) error {
	size := st.Size
	_, had := st.render()
	blocks := len(had)
	for _, raw := range chunks {
		chunk := raw.(object)
		size += chunkSize(chunk)
		list, _ := chunk["blocks"].([]any)
		blocks += len(list)
		if chunk["type"] == "task_update" && !slices.ContainsFunc(st.Segments, func(x segment) bool { return x.Task != nil && x.Task["id"] == chunk["id"] }) {
			blocks++
		}
	}
	if size > maxStreamSize || blocks > most {
		return fail("msg_too_long")
	}
	st.Size = size
	for _, raw := range chunks {
		chunk := raw.(object)
		switch chunk["type"] {
		case "markdown_text":
			if n := len(st.Segments); n > 0 && st.Segments[n-1].Task == nil && st.Segments[n-1].Blocks == nil {
				st.Segments[n-1].Text += text(chunk["text"])
			} else {
				st.Segments = append(st.Segments, segment{ID: newBlockID(), Text: text(chunk["text"])})
			}
		case "task_update":
			i := slices.IndexFunc(st.Segments, func(x segment) bool { return x.Task != nil && x.Task["id"] == chunk["id"] })
			if i < 0 {
				st.Segments = append(st.Segments, segment{ID: newBlockID(), Task: clone(chunk)})
				continue
			}
			merged := clone(st.Segments[i].Task)
			maps.Copy(merged, chunk)
			st.Segments[i].Task = merged
		case "plan_update":
			st.Plan = text(chunk["title"])
		case "blocks":
			st.Segments = append(st.Segments, segment{ID: newBlockID(), Blocks: chunk["blocks"].([]any)})
		}
	}
	return nil
}

func chunkSize(chunk object) int {
	n := 0
	for _, k := range []string{"text", "title", "details", "output"} {
		n += utf8.RuneCountInString(text(chunk[k]))
	}
	if list, ok := chunk["blocks"].([]any); ok {
		n += textSize(list)
	}
	return n
}

// render makes a message's text and blocks of a stream.
func (st *stream) render() (string, []any) {
	var plain strings.Builder
	var blocks, tasks []any
	planAt := -1
	for _, g := range st.Segments {
		switch {
		case g.Task != nil:
			card := object{"type": "task_card", "task_id": g.Task["id"], "title": g.Task["title"], "status": "pending"}
			if v := g.Task["status"]; v != nil {
				card["status"] = v
			}
			for _, k := range []string{"details", "output"} {
				if t := text(g.Task[k]); t != "" {
					card[k] = richText(t)
				}
			}
			if v := g.Task["sources"]; v != nil {
				card["sources"] = v
			}
			if st.Display != "plan" {
				card["block_id"] = g.ID
				blocks = append(blocks, card)
				continue
			}
			if planAt < 0 {
				planAt = len(blocks)
				blocks = append(blocks, object{"type": "plan", "block_id": g.ID})
			}
			tasks = append(tasks, card)
		case g.Blocks != nil:
			blocks = append(blocks, g.Blocks...)
		default:
			plain.WriteString(g.Text)
			blocks = append(blocks, object{"type": "markdown", "block_id": g.ID, "text": g.Text})
		}
	}
	if planAt >= 0 {
		p := blocks[planAt].(object)
		p["title"], p["tasks"] = st.Plan, tasks
	}
	return plain.String(), blocks
}

// richText is a plain text as a rich_text block.
func richText(t string) object {
	return object{"type": "rich_text", "elements": []any{
		object{"type": "rich_text_section", "elements": []any{object{"type": "text", "text": t}}},
	}}
}

func (s *Server) chatStartStream(c *call) (object, error) {
	ch, err := s.postable(c.str("channel"))
	if err != nil {
		return nil, err
	}
	if ch.Kind != kindIM {
		if c.str("recipient_team_id") == "" {
			return nil, fail("missing_recipient_team_id")
		}
		if c.str("recipient_user_id") == "" {
			return nil, fail("missing_recipient_user_id")
		}
		if s.ws.user(c.str("recipient_user_id")) == nil {
			return nil, fail("user_not_found")
		}
	} else if c.str("thread_ts") == "" {
		return nil, fail("invalid_thread_ts")
	}
	thread, err := s.threadOf(ch, c.str("thread_ts"))
	if err != nil {
		return nil, err
	}
	chunks, err := s.chunksArg(c)
	if err != nil {
		return nil, err
	}
	display := c.str("task_display_mode")
	if display == "" {
		display = "timeline"
	}
	if display != "timeline" && display != "plan" {
		return nil, failBecause("invalid_arguments", "task_display_mode must be timeline or plan [json-pointer:/task_display_mode]")
	}
	m := &message{
		Channel: ch.ID, User: BotUser, Bot: true, ThreadTS: thread,
		Stream: &stream{State: streamLive, Display: display},
	}
	if err := s.customised(c, m); err != nil {
		return nil, err
	}
	if err := m.Stream.grow(chunks, maxStreamBlocks); err != nil {
		return nil, err
	}
	m.TS = s.ws.nextTS(now())
	m.Text, m.Blocks = m.Stream.render()
	m.Stream.timer = s.later(streamLife, func() { s.endStream(m, streamExpired) })
	m.Stream.idle = s.later(streamIdle, func() { s.endStream(m, streamExpired) })
	s.post(m)
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

// streaming finds the app's live stream that a call names.
func (s *Server) streaming(c *call) (*channel, *message, error) {
	ch, m, err := s.own(c, "message_not_owned_by_app")
	if err != nil {
		return nil, nil, err
	}
	if m.Stream == nil || m.Stream.State != streamLive {
		return nil, nil, fail("message_not_in_streaming_state")
	}
	return ch, m, nil
}

func (s *Server) chatAppendStream(c *call) (object, error) {
	ch, m, err := s.streaming(c)
	if err != nil {
		return nil, err
	}
	chunks, err := s.chunksArg(c)
	if err != nil {
		return nil, err
	}
	if len(chunks) == 0 {
		return nil, fail("no_text")
	}
	if err := m.Stream.grow(chunks, maxStreamBlocks); err != nil {
		return nil, err
	}
	m.Text, m.Blocks = m.Stream.render()
	m.Stream.idle.Reset(streamIdle)
	s.liveMessage(m)
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

func (s *Server) chatStopStream(c *call) (object, error) {
	ch, m, err := s.streaming(c)
	if err != nil {
		return nil, err
	}
	chunks, err := s.chunksArg(c)
	if err != nil {
		return nil, err
	}
	blocks, err := s.blocksArg(c, surfaceMessage)
	if err != nil {
		return nil, err
	}
	if len(blocks) > 0 {
		chunks = append(chunks, object{"type": "blocks", "blocks": blocks})
	}
	metadata, err := c.value("metadata")
	if err != nil {
		return nil, fail("invalid_metadata_format")
	}
	if err := m.Stream.grow(chunks, 2*maxStreamBlocks); err != nil {
		return nil, err
	}
	m.Metadata = metadata
	s.endStream(m, streamStopped)
	return object{"channel": ch.ID, "ts": m.TS, "message": s.wire(m)}, nil
}

// endStream makes a stream a plain message.
func (s *Server) endStream(m *message, state string) {
	if m.Stream == nil || m.Stream.State != streamLive {
		return
	}
	before := s.wire(m)
	m.Stream.stopTimer()
	m.Stream.State = state
	m.Text, m.Blocks = m.Stream.render()
	s.liveMessage(m)
	s.emitChanged(m, before)
	s.touch()
}
