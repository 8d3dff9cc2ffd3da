package transcripts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// ForgetTranscripts deletes the transcript copies, answers and diffs of some threads in which nobody has written since. It
// returns their number; zero means that all is done.
func (s *Store) ForgetTranscripts(ctx context.Context, since time.Time) (found int, err error) {
	err = s.db.QueryRow(ctx, `
		WITH old AS (
			SELECT t.id FROM threads t
			WHERE t.active_at < $1 AND `+threads.Unheld+`
			  AND (EXISTS (SELECT FROM transcripts c WHERE c.thread_id = t.id)
			    OR EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND (r.answer <> '' OR r.diff IS NOT NULL)))
			ORDER BY t.active_at LIMIT 100 FOR NO KEY UPDATE OF t SKIP LOCKED),
		copies AS (DELETE FROM transcripts c USING old WHERE c.thread_id = old.id),
		answers AS (UPDATE turns r SET answer = '', diff = NULL FROM old WHERE r.thread_id = old.id AND (r.answer <> '' OR r.diff IS NOT NULL))
		SELECT count(*)::int FROM old`, since).Scan(&found)
	return found, pg.Wrap(err, "delete old transcripts")
}

// Transcript is the copy of a session's transcript file.
type Transcript struct {
	ID      int64
	Agent   string // the subagent's file without its extension; empty for the session's own
	Bytes   int64
	SHA256  []byte // of the whole file
	Full    bool   // its limit was reached: nothing is added
	SavedAt time.Time
}

// Part is a part of a transcript to write: everything from the offset From on, which is the beginning of
// a piece or the end of the last one. Nothing is written unless the copy matches WasBytes and WasSHA256, or there
// is none and WasSHA256 is nil.
type Part struct {
	SessionID string
	Agent     string
	WasBytes  int64
	WasSHA256 []byte

	From   int64
	Pieces [][]byte // whole lines, one piece after another; none of them empty
	// The copy's size and checksum afterwards.
	Bytes  int64
	SHA256 [sha256.Size]byte
	Full   bool
}

// MaxPiece is the largest piece of a transcript, in bytes. Pieces are smaller unless a line is long.
const MaxPiece = 80 << 20

// Transcripts are the copies of a session's files, the session's own first.
func (s *Store) Transcripts(ctx context.Context, sessionID string) ([]Transcript, error) {
	out, err := pg.Collect[Transcript](s.db.Query(ctx, `
		SELECT id, agent, bytes, sha256, "full", saved_at FROM transcripts WHERE session_id = $1 ORDER BY agent`, sessionID))
	return out, pg.Wrap(err, "look for the transcripts of session %s", sessionID)
}

// ErrDamaged means that a copy does not hold what was written.
var ErrDamaged = errors.New("it does not hold what was written")

// errTranscriptChanged means that a copy is not as its writer expects.
var errTranscriptChanged = errors.New("a transcript has changed")

// ReadTranscript writes a transcript to out. On [ErrDamaged] what was written to out is invalid.
func (s *Store) ReadTranscript(ctx context.Context, t Transcript, out io.Writer) error {
	err := func() error {
		rows, err := s.db.Query(ctx, `
			SELECT at_byte, bytes, zstd FROM transcript_pieces WHERE transcript_id = $1 ORDER BY at_byte`, t.ID)
		if err != nil {
			return err
		}
		var at, next int64
		var bytes int
		var packed, text []byte
		sum := sha256.New()
		_, err = pgx.ForEachRow(rows, []any{&at, &bytes, &packed}, func() error {
			if text, err = zstdReader().DecodeAll(packed, text[:0]); err != nil {
				return fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			if at != next || len(text) != bytes {
				return ErrDamaged
			}
			next += int64(bytes)
			sum.Write(text)
			_, err := out.Write(text)
			return err
		})
		if err == nil && (next != t.Bytes || string(sum.Sum(nil)) != string(t.SHA256)) {
			err = ErrDamaged
		}
		return err
	}()
	return pg.Wrap(err, "read transcript %d", t.ID)
}

// SaveTranscripts writes parts of the thread's transcripts, all or nothing. saved is false when a copy is not as
// its writer expects.
func (s *Store) SaveTranscripts(ctx context.Context, l threads.Lease, parts []Part) (saved bool, err error) {
	packed := Pack(parts)
	err = threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		saved, err = Save(ctx, tx, l, packed)
		if err == nil && !saved {
			return errTranscriptChanged
		}
		return err
	})
	if errors.Is(err, errTranscriptChanged) {
		return false, nil
	}
	return err == nil, pg.Wrap(err, "save transcripts of thread %d", l.ThreadID)
}

// Packed is a part with compressed pieces.
type Packed struct {
	Part
	at     []int64
	bytes  []int32
	packed [][]byte
}

// Pack compresses, before a transaction begins.
func Pack(parts []Part) []Packed {
	out := make([]Packed, len(parts))
	for i, p := range parts {
		out[i] = Packed{Part: p, at: []int64{}, bytes: []int32{}, packed: [][]byte{}} // nil would be NULL
		at := p.From
		for _, text := range p.Pieces {
			out[i].at = append(out[i].at, at)
			out[i].bytes = append(out[i].bytes, int32(min(len(text), math.MaxInt32))) //nolint:gosec // bounded
			out[i].packed = append(out[i].packed, zstdWriter().EncodeAll(text, nil))
			at += int64(len(text))
		}
	}
	return out
}

// Save writes parts in a transaction that holds the lease.
func Save(ctx context.Context, tx pg.Tx, l threads.Lease, parts []Packed) (saved bool, err error) {
	if len(parts) == 0 {
		return true, nil
	}
	batch := &pgx.Batch{}
	for _, p := range parts {
		batch.Queue(`
			WITH head AS (
				INSERT INTO transcripts AS t (thread_id, session_id, agent, bytes, sha256, lease_epoch, "full")
				SELECT $1, id, $3, $4, $5, $6, $7 FROM sessions
				WHERE id = $2 AND thread_id = $1
				  AND ($9::bytea IS NULL OR EXISTS (SELECT FROM transcripts WHERE session_id = $2 AND agent = $3)) -- a part alone is none
				ON CONFLICT (session_id, agent) DO UPDATE
				SET bytes = excluded.bytes, sha256 = excluded.sha256, lease_epoch = excluded.lease_epoch, "full" = excluded."full", saved_at = now()
				WHERE t.bytes = $8 AND t.sha256 = $9
				RETURNING id),
			gone AS (DELETE FROM transcript_pieces p USING head WHERE p.transcript_id = head.id AND p.at_byte >= $10 AND p.at_byte <> ALL ($11::bigint[])),
			pieces AS (
				INSERT INTO transcript_pieces AS p (transcript_id, at_byte, bytes, zstd)
				SELECT head.id, piece.at_byte, piece.bytes, piece.zstd
				FROM head, unnest($11::bigint[], $12::int[], $13::bytea[]) AS piece (at_byte, bytes, zstd)
				ON CONFLICT (transcript_id, at_byte) DO UPDATE SET bytes = excluded.bytes, zstd = excluded.zstd)
			SELECT EXISTS (SELECT FROM head)`,
			l.ThreadID, p.SessionID, p.Agent, p.Bytes, p.SHA256[:], l.Epoch, p.Full, p.WasBytes, p.WasSHA256, p.From, p.at, p.bytes, p.packed)
	}
	results := tx.SendBatch(ctx, batch)
	saved = true
	for range parts {
		var one bool
		if err = results.QueryRow().Scan(&one); err != nil {
			break
		}
		saved = saved && one
	}
	return saved, errors.Join(err, results.Close())
}

// The window is as large as a usual piece, which bounds the memory for all sessions.
var zstdWriter = sync.OnceValue(func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(256<<10), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are constants
	}
	return w
})

var zstdReader = sync.OnceValue(func() *zstd.Decoder {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(MaxPiece))
	if err != nil {
		panic(err)
	}
	return r
})
