package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
)

// BenchmarkTurnsEnd ends turns whose session is copied and turns whose session is not, in
// turns, and says what the copy costs: the time that a turn's end takes and what this
// process computes for it, each as a ratio, and what the database has of all, beside the
// file. A turn writes some 40 KiB: six tools that read source code.
func BenchmarkTurnsEnd(b *testing.B) {
	url := storetest.URL(b)
	s := storetest.Open(b, url, store.Options{})
	sources, err := filepath.Glob("../store/*.go")
	if err != nil || len(sources) == 0 {
		b.Fatal("no source code: ", err)
	}
	var sides [2]*benchSide // with copies, and without
	for i := range sides {
		if sides[i], err = newBenchSide(b.Context(), s, i, filepath.Join(b.TempDir(), "home")); err != nil {
			b.Fatal(err)
		}
	}
	sides[1].mirror = nil
	for n := 0; b.Loop(); n++ {
		for _, side := range sides {
			if err := side.turn(b.Context(), n, sources); err != nil {
				b.Fatal(err)
			}
		}
	}
	for i, side := range sides {
		slices.Sort(side.took)
		name := []string{"copied", "plain"}[i]
		b.ReportMetric(float64(side.took[len(side.took)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(side.cpu.Microseconds())/1000/float64(len(side.took)), name+"-cpu-ms")
	}
	with, without := sides[0], sides[1]
	b.ReportMetric(float64(with.took[len(with.took)/2])/float64(without.took[len(without.took)/2]), "p50-ratio")
	b.ReportMetric(float64(with.cpu)/float64(without.cpu), "cpu-ratio")
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context()) //nolint:errcheck // it only reads
	var live, all int64
	if err := conn.QueryRow(b.Context(), `
		SELECT (SELECT sum(octet_length(zstd)) FROM transcript_pieces), pg_total_relation_size('transcripts') + pg_total_relation_size('transcript_pieces')`).Scan(&live, &all); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(with.file)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/1024, "file-KiB")
	b.ReportMetric(float64(live)/1024, "rows-KiB")
	b.ReportMetric(float64(all)/1024, "tables-KiB")
}

// benchSide is a thread that has turns.
type benchSide struct {
	s       *store.Store
	key     threads.ThreadKey
	lease   threads.Lease
	session string
	epoch   int
	file    string
	mirror  *Mirror
	took    []time.Duration
	cpu     time.Duration
}

func newBenchSide(ctx context.Context, s *store.Store, n int, dir string) (*benchSide, error) {
	homes := Homes{Dir: dir}
	side := &benchSide{s: s, key: threads.ThreadKey{TeamID: "T", ChannelID: "C", ThreadTS: fmt.Sprintf("%d.1", n)}, session: uuid.NewString()}
	if err := side.prompt(ctx, -1); err != nil {
		return nil, err
	}
	th, err := s.ThreadByKey(ctx, side.key)
	if err != nil {
		return nil, err
	}
	th, ok, err := storetest.Acquire(ctx, s, th.ID, "A")
	if err != nil || !ok {
		return nil, errors.Join(err, errors.New("the lease is held"))
	}
	side.lease = threads.Lease{ThreadID: th.ID, Owner: "A", Epoch: th.LeaseEpoch}
	if err := s.NewSession(ctx, side.lease, side.session, ""); err != nil {
		return nil, err
	}
	if side.epoch, err = s.BeginEpoch(ctx, side.lease, side.session, "2.1.329", 0); err != nil {
		return nil, err
	}
	side.file = filepath.Join(homes.Of(th.ID), keptProjects, "-srv-web", side.session+".jsonl")
	side.mirror = NewMirror(Options{
		Store: s, Home: homes.Of(th.ID), Lease: side.lease, SessionID: side.session, New: true, Limit: 1 << 30, One: make(chan struct{}, 1), Log: zap.NewNop(), Full: func(context.Context) {}, Gap: func(context.Context) {},
	})
	return side, os.MkdirAll(filepath.Dir(side.file), 0o700)
}

func (side *benchSide) prompt(ctx context.Context, n int) error {
	ts := fmt.Sprintf("%s%d", side.key.ThreadTS, n)
	id, _, err := side.s.Receive(ctx, inbox.Envelope{EventID: ts, Kind: inbox.Message, TeamID: "T", ChannelID: "C", ThreadTS: side.key.ThreadTS, TS: ts, UserID: "U", Payload: json.RawMessage(`{}`)})
	if err != nil {
		return err
	}
	_, _, err = side.s.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: side.key, Project: "web", UserID: "U", UUID: uuid.NewString(), Text: "go"})
	return err
}

// turn has a turn that writes into the session's file, and notes what its end takes.
func (side *benchSide) turn(ctx context.Context, n int, sources []string) error {
	if n > 0 {
		if err := side.prompt(ctx, n); err != nil {
			return err
		}
	}
	turn, _, _, err := side.s.BeginTurn(ctx, side.lease, side.session, side.epoch)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(side.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for tool := range 6 {
		text, err := os.ReadFile(sources[(6*n+tool)%len(sources)])
		if err != nil {
			return err
		}
		if err := errors.Join(side.line(f, "assistant", "I look at another file."), side.line(f, "user", string(text[:min(len(text), 10<<10)]))); err != nil {
			return err
		}
	}
	if err := errors.Join(side.line(f, "assistant", strings.Repeat("It is done. ", 50)), f.Close()); err != nil {
		return err
	}
	before, began := computed(), time.Now()
	err = side.mirror.End(ctx, func(parts []transcripts.Part) error {
		_, _, err := side.s.FinishTurn(ctx, side.lease, store.FinishedTurn{ID: turn.ID, State: "done", Approvals: approvals.Interrupted, Answer: "It is done.", Transcripts: parts})
		return err
	})
	side.took = append(side.took, time.Since(began))
	side.cpu += computed() - before
	return err
}

// line is one of a transcript.
func (side *benchSide) line(f *os.File, kind, text string) error {
	b, err := json.Marshal(map[string]any{
		"type": kind, "uuid": uuid.NewString(), "parentUuid": uuid.NewString(), "sessionId": side.session, "timestamp": time.Now(), "cwd": "/srv/web", "version": "2.1.329", "gitBranch": "deckhand/7",
		"message": map[string]any{"role": kind, "content": []any{map[string]string{"type": "text", "text": text}}},
	})
	if err == nil {
		_, err = f.Write(append(b, '\n'))
	}
	return err
}

// computed is the processor time of this process.
func computed() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it is always there
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
