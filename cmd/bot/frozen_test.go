package main

import (
	"bytes"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/needtest"
)

// acceptances are the transactions in which a bot accepts prompts, each held up at another
// of its statements: the first before its first one, and the last before its end.
type acceptances struct {
	most int
	full chan struct{} // closed when so many are held up
	free chan struct{} // closed when they may go on

	mu     sync.Mutex
	opens  []byte           // the name of the prepared statement that each begins with
	of     map[net.Conn]int // which one a connection is in, from 1
	passed map[net.Conn]int // how many statements of it have passed
	begun  int
	at     []string
}

// openingThread is how the statement is prepared that opens a thread.
var openingThread = regexp.MustCompile(`(stmtcache_[0-9a-f]+)\x00\s*INSERT INTO threads AS t`)

func (a *acceptances) watch(from net.Conn, sent []byte) {
	a.mu.Lock()
	if found := openingThread.FindSubmatch(sent); found != nil {
		a.opens = bytes.Clone(found[1])
	}
	if a.of[from] == 0 {
		if a.begun == a.most || a.opens == nil || !bytes.Contains(sent, a.opens) {
			a.mu.Unlock()
			return
		}
		a.begun++
		a.of[from], a.passed[from] = a.begun, 0
	}
	n := a.of[from]
	commits := bytes.Contains(sent, []byte("commit"))
	if a.passed[from]++; a.passed[from] != n && !commits || n == a.most && !commits {
		a.mu.Unlock()
		return
	}
	delete(a.of, from)
	a.at = append(a.at, fmt.Sprintf("%d before statement %d (ends: %t)", n, a.passed[from], commits))
	if len(a.at) == a.most {
		close(a.full)
	}
	a.mu.Unlock()
	<-a.free
}

// TestABotFrozenWhileItAcceptsPrompts: a bot that is frozen for so long that PostgreSQL ends
// its transactions, as on a laptop whose lid was closed, answers what it was told, wherever
// in the acceptance of a prompt it was.
func TestABotFrozenWhileItAcceptsPrompts(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		needtest.Missing(t, "a process group is frozen as Linux does it")
	}
	c := newChaos(t, chaosPlan{slots: 8, idle: time.Hour})
	c.DatabaseURL = c.directly
	defer c.stop()
	r := c.newReplica(0, needtest.Claude(t))
	for i, kv := range r.env {
		if strings.HasPrefix(kv, "DATABASE_URL=") {
			r.env[i] += "&pool_max_conns=20" // each held transaction has one
		}
	}
	a := &acceptances{full: make(chan struct{}), free: make(chan struct{}), of: map[net.Conn]int{}, passed: map[net.Conn]int{}}
	free := sync.OnceFunc(func() { close(a.free) })
	defer free()
	r.wire.watch = a.watch
	c.launch(r)
	warm := c.post(ada, shop, "", "@deckhand say: warm")
	c.says(shop, warm, "warm")

	a.mu.Lock()
	a.most = 5
	a.mu.Unlock()
	var threads []string
	for n := range a.most {
		threads = append(threads, c.post(ada, shop, "", fmt.Sprintf("@deckhand say: answer %d", n)))
	}
	c.eventually("each mention to be in the middle of its transaction", func() bool {
		select {
		case <-a.full:
			return true
		default:
			return false
		}
	})
	r.signal(syscall.SIGSTOP)
	began := time.Now()
	database := c.text(`SELECT current_database()`)
	c.eventually("the server to end the transactions", func() bool {
		return c.text(`SELECT count(*)::text FROM pg_stat_activity WHERE datname = '`+database+`' AND state LIKE 'idle in transaction%'`) == "0"
	})
	free()
	r.signal(syscall.SIGCONT)
	a.mu.Lock()
	t.Logf("frozen for %s: %s", time.Since(began).Round(time.Millisecond), strings.Join(a.at, "; "))
	a.mu.Unlock()
	for n, thread := range threads {
		c.says(shop, thread, fmt.Sprintf("answer %d", n))
	}
	if failed := c.text(`SELECT count(*)::text FROM inbox WHERE outcome = 'failed' OR outcome LIKE 'given up%'`); failed != "0" {
		t.Errorf("%s messages ended as failed", failed)
	}
}
