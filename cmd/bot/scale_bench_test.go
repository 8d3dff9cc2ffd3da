package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/needtest"
)

// fakeCLI answers every prompt at once, with a process that costs next to nothing: what
// is measured with it is the bot.
const fakeCLI = `#!/bin/sh
[ "$1" = --version ] && echo '2.1.329 (Claude Code)' && exit
while [ $# -gt 0 ]; do
	case $1 in --session-id | --resume) session=$2 ;; esac
	shift
done
while read -r line; do
	case $line in
	*'"type":"control_request"'*)
		id=${line#*'"request_id":"'}
		echo '{"type":"control_response","response":{"subtype":"success","request_id":"'"${id%%'"'*}"'","response":{"session":{"total_cost_usd":0,"model_usage":{}}}}}' ;;
	*'"type":"user"'*)
		echo '{"type":"system","subtype":"init","session_id":"'"$session"'","model":"claude-opus-5-5","claude_code_version":"2.1.329"}'
		echo '{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"Done."}]},"session_id":"'"$session"'","parent_tool_use_id":null}'
		echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"Done.","total_cost_usd":0,"modelUsage":{},"session_id":"'"$session"'"}' ;;
	esac
done
`

// manyThreads is a database with threads that sleep, each with a session and a turn, and a
// replica, not yet started, whose sessions are fake.
func manyThreads(b *testing.B, threads int) (*chaos, *chaosReplica) {
	b.Helper()
	c := newChaos(b, chaosPlan{slots: 200, idle: time.Hour})
	cli := filepath.Join(c.dir, "claude")
	if err := os.WriteFile(cli, []byte(fakeCLI), 0o755); err != nil {
		b.Fatal(err)
	}
	r := c.newReplica(0, cli)
	r.program = builtBot(b)
	c.DatabaseURL = c.directly
	if err := c.tamper(fmt.Sprintf(`
		INSERT INTO threads (team_id, channel_id, thread_ts, project, owner_id)
			SELECT 'T0DECKHAND', '%s', format('1600000000.%%s', lpad(n::text, 6, '0')), 'shop', '%s' FROM generate_series(1, %d) n;
		INSERT INTO sessions (id, thread_id, started) SELECT gen_random_uuid(), id, true FROM threads;
		UPDATE threads t SET session_id = s.id FROM sessions s WHERE s.thread_id = t.id;
		INSERT INTO epochs (session_id, epoch, cli_version, baseline_micro_usd) SELECT id, 1, '2.1.329', 0 FROM sessions;
		INSERT INTO turns (thread_id, session_id, epoch, lease_epoch, requested_by, state, ended_at)
			SELECT thread_id, id, 1, 1, '%s', 'done', now() FROM sessions;
		ANALYZE`, shop, linus, threads, linus)); err != nil {
		b.Fatal(err)
	}
	return c, r
}

// awaitCount waits until a count in the database has come to n.
func (c *chaos) awaitCount(what string, n int64, sql string) {
	c.t.Helper()
	c.withDatabase(func(ctx context.Context, conn *pgx.Conn) {
		c.eventually(what, func() bool {
			var have int64
			if err := conn.QueryRow(ctx, sql).Scan(&have); err != nil {
				c.t.Fatal(err)
			}
			return have >= n
		})
	})
}

// BenchmarkManyThreads is what one bot takes with 10,000 threads that sleep and 200 live
// sessions, whose processes are fake: resident memory, at most 250 MB of it; processor time
// for each turn; and how much of a core it takes when all are silent, at most one.
func BenchmarkManyThreads(b *testing.B) {
	const live = 200
	c, r := manyThreads(b, 10_000)
	c.launch(r)
	for round := 1; round <= 2; round++ {
		before, began := processorTime(b, r.pid()), time.Now()
		for i := range live {
			if round == 1 {
				c.threads = append(c.threads, chaosThread{shop, c.post(linus, shop, "", "@deckhand go")})
			} else {
				c.post(linus, shop, c.threads[i].ts, "go on")
			}
		}
		c.awaitCount("all turns", int64(round*live), `SELECT count(*) FROM turns WHERE id > 10000 AND state = 'done'`)
		took := processorTime(b, r.pid()) - before
		b.ReportMetric(float64(took.Milliseconds())/live, fmt.Sprintf("cpu-ms/turn-%d", round))
		b.ReportMetric(time.Since(began).Seconds(), fmt.Sprintf("seconds-%d", round))
	}
	reportMemory(b, r.pid())
	const silence = 10 * time.Second
	before := processorTime(b, r.pid())
	time.Sleep(silence)
	b.ReportMetric(100*float64(processorTime(b, r.pid())-before)/float64(silence), "%core-silent")
	b.ReportMetric(float64(c.count(`SELECT count(*) FROM turns WHERE id > 10000 AND state <> 'done'`)), "failed")
	b.ReportMetric(0, "ns/op")
	c.stop()
}

// processorTime is what a process has taken of the processors.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("no /proc here: ", err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64 // of 10 ms
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks*10) * time.Millisecond
}

// BenchmarkRestart is how long a bot takes to serve when it starts with 10,000 threads
// and 2,000 envelopes that were acknowledged and not acted on: until it says that it is
// ready, at most two seconds; until a new mention is taken in; and until all are acted on.
func BenchmarkRestart(b *testing.B) {
	const unacted = 2000
	c, r := manyThreads(b, 10_000)
	c.launch(r)
	c.post(linus, shop, "", "@deckhand go")
	c.awaitCount("the first turn", 1, `SELECT count(*) FROM turns WHERE id > 10000 AND state = 'done'`)
	// Copies of that envelope, as replies in as many threads.
	r.mu.Lock()
	r.pause = time.Hour // this replica comes no more
	r.mu.Unlock()
	r.signal(syscall.SIGKILL)
	if err := c.tamper(fmt.Sprintf(`
		INSERT INTO inbox (event_id, kind, team_id, channel_id, ts, thread_ts, user_id, payload)
			SELECT 'Ev' || n, i.kind, i.team_id, i.channel_id, format('1700000000.%%s', lpad(n::text, 6, '0')), format('1600000000.%%s', lpad(n::text, 6, '0')), i.user_id,
				replace(i.payload::text, i.ts, format('1700000000.%%s', lpad(n::text, 6, '0')))::json
			FROM inbox i, generate_series(1, %d) n WHERE i.id = (SELECT min(id) FROM inbox)`, unacted)); err != nil {
		b.Fatal(err)
	}
	again := &chaosReplica{n: 1, program: r.program, dir: r.dir, env: r.env, ready: r.ready, wire: r.wire}
	began := time.Now()
	c.launch(again)
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ready-ms")
	c.post(linus, shop, "", "@deckhand go")
	c.awaitCount("the new mention", 1, fmt.Sprintf(`SELECT count(*) FROM inbox WHERE ts > '1700000001' AND received_at > to_timestamp(%d.%09d)`, began.Unix(), began.Nanosecond()))
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "mention-ms")
	c.awaitCount("all to be acted on", unacted, `SELECT count(*) FROM inbox WHERE event_id LIKE 'Ev%' AND ts < '1700000001' AND state <> 'received'`)
	b.ReportMetric(time.Since(began).Seconds(), "acted-s")
	b.ReportMetric(0, "ns/op")
	c.stop()
}

// BenchmarkManyMentions is sixty people who begin a thread at the same time, with the real
// CLI: how many are answered, and how many fail, of which there is to be none; how long the
// first and the last one wait; and how many sessions the machine lets start at once.
func BenchmarkManyMentions(b *testing.B) {
	const mentions = 60
	c := newChaos(b, chaosPlan{slots: 20, idle: 2 * time.Second})
	r := c.newReplica(0, needtest.Claude(b))
	r.env = append(r.env, "DECKHAND_CLI_TIMEOUT=30s") // as people have it
	c.DatabaseURL = c.directly
	c.launch(r)
	began := time.Now()
	var posting sync.WaitGroup
	for i := range mentions {
		posting.Go(func() {
			_ = c.do(http.MethodPost, "/_control/messages", map[string]any{"user": linus, "channel": shop, "text": fmt.Sprintf("@deckhand say: hello %d", i)}, nil)
		})
	}
	posting.Wait()
	c.awaitCount("the first answer", 1, `SELECT count(*) FROM turns WHERE state = 'done'`)
	b.ReportMetric(time.Since(began).Seconds(), "first-s")
	c.awaitCount("all ends", mentions, `SELECT count(*) FROM inbox WHERE kind = 'message' AND state = 'done'`)
	b.ReportMetric(time.Since(began).Seconds(), "last-s")
	answered := c.count(`SELECT count(DISTINCT thread_id) FROM turns WHERE state = 'done'`)
	b.ReportMetric(float64(answered), "answered")
	b.ReportMetric(float64(mentions-answered), "failed")
	b.ReportMetric(0, "ns/op")
	c.stop()
}
