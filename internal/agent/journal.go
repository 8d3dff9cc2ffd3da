package agent

import (
	"context"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/audit"
)

// journal writes what became of tool calls into the audit, beside the worker's
// loop: a tool's result must not wait for the database. Entries keep their order,
// and a turn's end is written after them.
type journal struct {
	store   auditStore
	log     *zap.Logger
	commits func() []string // that the workspace's repositories are at
	signal  chan struct{}
	writing sync.Mutex // held over a flush; guards heads
	heads   []string   // the commits as last seen

	turn atomic.Int64 // the one that runs, or the last one

	mu      sync.Mutex
	waiting []audit.Entry
}

func newJournal(db auditStore, log *zap.Logger, commits func() []string) *journal {
	return &journal{store: db, log: log, commits: commits, signal: make(chan struct{}, 1)}
}

// run writes entries as they come until ctx ends, and what is left then. A write that is
// under way when ctx ends is not cut: nobody would know whether it was made, and what was
// made would be written again.
func (j *journal) run(ctx context.Context) {
	writing, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(5*time.Second, cut) })
	defer stop()
	j.writing.Lock()
	j.heads = j.commits()
	j.writing.Unlock()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-j.signal:
			j.flush(writing)
		}
	}
	j.flush(writing)
}

func (j *journal) add(entries ...audit.Entry) {
	if len(entries) == 0 {
		return
	}
	j.mu.Lock()
	j.waiting = append(j.waiting, entries...)
	j.mu.Unlock()
	select {
	case j.signal <- struct{}{}:
	default:
	}
}

// flush returns when everything added before is written. What cannot be written
// stays for the next time.
func (j *journal) flush(ctx context.Context) {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	entries := j.waiting
	j.waiting = nil
	j.mu.Unlock()
	if len(entries) == 0 {
		return
	}
	// A commit that appears with these results was made by one of them, unless
	// somebody else works in the same folder.
	if last := lastResult(entries); last != nil {
		now := j.commits()
		for i, head := range now {
			if head != "" && (i >= len(j.heads) || head != j.heads[i]) {
				last.Details["commit"] = head
			}
		}
		j.heads = now
	}
	if err := j.store.Audit(ctx, entries...); err != nil {
		j.log.Error("write the results of tools into the audit", zap.Int("entries", len(entries)), zap.Error(err))
		j.mu.Lock()
		j.waiting = append(entries, j.waiting...)
		j.mu.Unlock()
	}
}

// lastResult is the last entry of a tool's result, or nil.
func lastResult(entries []audit.Entry) *audit.Entry {
	for i, e := range slices.Backward(entries) {
		if e.Kind == audit.ToolResult {
			return &entries[i]
		}
	}
	return nil
}

// results are the audit entries of a message that brings results of tools.
func (s *session) results(m *claude.User, t *turn) []audit.Entry {
	var out []audit.Entry
	for _, b := range m.Content {
		if b.Type != "tool_result" {
			continue
		}
		sum, size := b.ResultSum()
		e := audit.Entry{
			Kind: audit.ToolResult, TeamID: s.thread.TeamID, ThreadID: s.thread.ID,
			Details: map[string]any{
				"tool_use": b.ToolUseID, "error": b.IsError, "bytes": size, "sha256": hex.EncodeToString(sum[:]),
			},
		}
		if t != nil {
			e.TurnID = t.row.ID
			if item, ok := t.content.Tool(b.ToolUseID); ok && item.Tool != nil {
				e.Details["tool"] = item.Tool.Name
			}
		}
		out = append(out, e)
	}
	return out
}

// git is the audit entry of a fetch or a push. It may be called by anybody.
func (j *journal) git(team string, thread int64, e gitway.Event) audit.Entry {
	entry := place.GitEntry(team, thread, e)
	entry.TurnID = j.turn.Load()
	return entry
}

// recordWeb writes down which hosts the session has visited since this was asked last.
func (s *session) recordWeb(t *turn) {
	visits := s.proc.Visits()
	if len(visits) == 0 {
		return
	}
	e := audit.Entry{
		Kind: audit.Web, TeamID: s.thread.TeamID, ThreadID: s.thread.ID, Details: map[string]any{"visits": visits},
	}
	if t != nil {
		e.TurnID = t.row.ID
	}
	s.journal.add(e)
}
