package gitway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/gateway/gitway/forgetest"
	"deckhand/internal/redact"
	"deckhand/internal/waittest"
)

// raw is a conversation without a git: whatever a session's program can think of.
type raw struct {
	t    testing.TB
	conn net.Conn
}

func (v *visit) raw() *raw {
	v.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", filepath.Join(v.dir, socketName))
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(waittest.Limit))
	return &raw{v.t, conn}
}

// say sends bytes; the other side may have left.
func (r *raw) say(texts ...string) {
	for _, text := range texts {
		if _, err := io.WriteString(r.conn, text); err != nil {
			return
		}
	}
}

// rest ends what is sent and returns all that is answered.
func (r *raw) rest() string {
	if half, ok := r.conn.(*net.UnixConn); ok {
		_ = half.CloseWrite()
	}
	b, err := io.ReadAll(r.conn)
	if err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		r.t.Error(err)
	}
	return string(b)
}

// pushing begins a push and reads what there is.
func (v *visit) pushing() *raw {
	v.t.Helper()
	r := v.raw()
	r.say(v.token+"\n", string(packet("git-receive-pack /"+v.names[0]+"\x00host=git.invalid\x00")))
	for {
		_, err := readPacket(r.conn)
		if errors.Is(err, errFlush) {
			return r
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
}

const asks = "\x00report-status"

func line(text string) string { return string(packet(text)) }

// Pushes that no git would send. None passes, and the forge hears of none.
func TestHostilePushes(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	v.AllowPush("toolu_1", Pass{Force: true})
	v.must("push", "-q", "origin", "HEAD:deckhand/x")
	tip, first := strings.TrimSpace(v.must("rev-parse", "HEAD")), strings.TrimSpace(v.must("rev-parse", "HEAD~1"))
	tree := strings.TrimSpace(v.must("rev-parse", "HEAD^{tree}"))
	zero := strings.Repeat("0", 40)
	made := zero + " " + tip + " "
	empty := "PACK\x00\x00\x00\x02\x00\x00\x00\x00\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e"
	before := f.Refs()
	var many strings.Builder
	for i := range maxCommands + 1 {
		text := fmt.Sprintf("%srefs/heads/deckhand/%d", made, i)
		if i == 0 {
			text += asks
		}
		many.WriteString(line(text))
	}
	for _, c := range []struct{ name, says, want string }{
		{"a deletion", line(tip+" "+zero+" refs/heads/deckhand/x"+asks) + flush, "ng refs/heads/deckhand/x Deckhand deletes no branches"},
		{"a deletion of main", line(tip+" "+zero+" refs/heads/main"+asks) + flush, "ng refs/heads/main Deckhand pushes to branches below"},
		{"a deletion of nothing", line(zero+" "+zero+" refs/heads/deckhand/x"+asks) + flush, "ng refs/heads/deckhand/x Deckhand deletes"},
		{"a way up", line(made+"refs/heads/deckhand/../main"+asks) + flush + empty, "ng refs/heads/deckhand/../main Deckhand pushes to branches with plain"},
		{"two slashes", line(made+"refs/heads/deckhand//x"+asks) + flush + empty, "plain names"},
		{"an escape", line(made+"refs/heads/deckhand/%2e%2e/main"+asks) + flush + empty, "ng refs/heads/deckhand/%2e%2e/main"},
		{"a wildcard", line(made+"refs/heads/deckhand/*"+asks) + flush + empty, "plain names"},
		{"a colon", line(made+"refs/heads/deckhand/x:refs/heads/main"+asks) + flush + empty, "plain names"},
		{"a plus", line(made+"+refs/heads/main"+asks) + flush + empty, "branches below deckhand/ alone"},
		{"a second line", line(made+"refs/heads/deckhand/y\n"+made+"refs/heads/main"+asks) + flush + empty, "ERR this is not"},
		{"a name behind a NUL", line(made+"refs/heads/deckhand/y"+asks+"\x00refs/heads/main") + flush + empty, "unpack Deckhand does not know refs/heads/main"},
		{"a NUL in a later command", line(made+"refs/heads/deckhand/y"+asks) + line(made+"refs/heads/deckhand/z\x00refs/heads/main") + flush + empty, "ERR this is not"},
		{"a good one and a bad one", line(made+"refs/heads/deckhand/y"+asks) + line(made+"refs/heads/main") + flush + empty, "ng refs/heads/deckhand/y nothing of this push was done"},
		{"the same branch twice", line(made+"refs/heads/deckhand/y"+asks) + line(made+"refs/heads/deckhand/y") + flush + empty, "the same branch is named twice"},
		{"a value that it does not have", line(first+" "+tip+" refs/heads/deckhand/x"+asks) + flush + empty, "the branch has moved meanwhile"},
		{"a branch that is there as a new one", line(made+"refs/heads/deckhand/x"+asks) + flush + empty, "the branch has moved meanwhile"},
		{"a tree", line(zero+" "+tree+" refs/heads/deckhand/y"+asks) + flush + empty, "a branch names a commit"},
		{"an object that nobody has", line(zero+" "+strings.Repeat("1", 40)+" refs/heads/deckhand/y"+asks) + flush + empty, "a branch names a commit"},
		{"no pack", line(made+"refs/heads/deckhand/y"+asks) + flush, "ng refs/heads/deckhand/y nothing"},
		{"a pack that is none", line(made+"refs/heads/deckhand/y"+asks) + flush + "PUCK" + empty[4:], "unpack fatal: pack signature mismatch"},
		{"a pack with a wrong sum", line(made+"refs/heads/deckhand/y"+asks) + flush + empty[:20] + strings.Repeat("x", 12), "unpack fatal: pack is corrupted"},
		{"a certificate", line("push-cert\x00report-status\n") + flush, "ERR this is not git's protocol"},
		{"options", line(made+"refs/heads/deckhand/y"+asks+" push-options") + flush + line("ci.skip") + flush + empty, "unpack Deckhand does not know push-options"},
		{"another kind of object", line(strings.Repeat("0", 64)+" "+strings.Repeat("2", 64)+" refs/heads/deckhand/y"+asks) + flush + empty, "unpack fatal"},
		{"very many", many.String() + flush, "ERR a push has 100 refs at most"},
		{"a short packet", "0003", "ERR this is not"},
		{"no packet", "zzzz", "ERR this is not"},
		{"a packet without an end", "ffff" + strings.Repeat("x", 100), "ERR this is not"},
		{"commands of two lengths", line(zero+" "+strings.Repeat("2", 64)+" refs/heads/deckhand/y"+asks) + flush, "ERR this is not"},
		{"capital digits", line(zero+" "+strings.ToUpper(tip)+" refs/heads/deckhand/y"+asks) + flush, "ERR this is not"},
	} {
		r := v.pushing()
		r.say(c.says)
		got := r.rest()
		// A way that could be meant well is a branch of that very name.
		if c.name == "an escape" {
			if !strings.Contains(got, "ok refs/heads/deckhand/%2e%2e/main") {
				t.Errorf("%s: %q", c.name, got)
			}
			before = f.Refs()
			continue
		}
		if !strings.Contains(got, c.want) || strings.Contains(got, "\x00") {
			t.Errorf("%s: %q", c.name, got)
		}
		if now := f.Refs(); now != before {
			t.Fatalf("%s: the forge has\n%s", c.name, now)
		}
	}
}

// What comes before a push is read by the byte: nothing of it is taken for another thing.
func TestHostileGreetings(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	at := "/" + v.names[0]
	for _, c := range []struct{ says, want string }{
		{strings.Repeat("0", redact.TokenLength) + "\n" + line("git-upload-pack "+at+"\x00"), ""},
		{v.token + " " + line("git-upload-pack "+at+"\x00"), ""},
		{v.token[:10], ""},
		{v.token + "\nGET / HTTP/1.1\r\n\r\n", ""},
		{v.token + "\n" + line("git-upload-pack"), ""},
		{v.token + "\n" + line("git-upload-archive "+at+"\x00host=x\x00"), "ERR Deckhand carries fetches and pushes, and no git-upload-archive."},
		{v.token + "\n" + line("git-upload-pack\x00 "+at), ""},
		{v.token + "\n" + line("sh "+at), "and no sh."},
		{v.token + "\n" + line("git-upload-pack "+at+"/../other\x00host=x\x00"), "There is no way to this repository"},
		{v.token + "\n" + line("git-upload-pack --upload-pack=x\x00host=x\x00"), "There is no way to this repository"},
		{v.token + "\n" + line("git-upload-pack "+at+"\x00host=x\x00\x00version=2\x00") + line("command=object-info") + "0001" + line("size") + flush, "version 2"},
		{v.token + "\n" + line("git-upload-pack "+at+"\x00host=x\x00\x00version=2\x00") + strings.Repeat("x", 70_000), "version 2"},
	} {
		r := v.raw()
		r.say(c.says)
		if got := r.rest(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q: %q", c.says[:min(200, len(c.says))], got)
		}
	}
}

// A session that ends takes its conversations with it, whatever they are at.
func TestCloseEndsConversations(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	v.AllowPush("toolu_1", Pass{})
	tip := strings.TrimSpace(v.must("rev-parse", "HEAD"))
	waiting := []*raw{v.raw(), v.pushing(), v.pushing()}
	waiting[2].say(line(strings.Repeat("0", 40)+" "+tip+" refs/heads/deckhand/y"+asks)+flush, "PACK\x00\x00\x00\x02\x00\x00")
	v.Close()
	for i, r := range waiting {
		if b, err := io.ReadAll(r.conn); err == nil && len(b) > 0 {
			t.Errorf("%d: %q", i, b)
		}
	}
	left, err := filepath.Glob(filepath.Join(v.gate.scratch(), "push-*"))
	if err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

func FuzzReadOffer(f *testing.F) {
	zero, one := strings.Repeat("0", 40), strings.Repeat("1", 40)
	f.Add([]byte(line(zero+" "+one+" refs/heads/deckhand/x\x00report-status atomic") + flush + "PACK"))
	f.Add([]byte(line("shallow "+one) + line(one+" "+zero+" refs/heads/main") + flush))
	f.Add([]byte("0004"))
	f.Add([]byte(flush))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		o, err := readOffer(r)
		p := &push{offer: o, known: map[string]string{}}
		p.judge()
		p.refuseAll()
		for _, c := range o.commands {
			plain := strings.HasPrefix(c.ref, branches) && !strings.ContainsAny(c.ref, "\x00\n *?:^~\\[") && !strings.Contains(c.ref, "..") && !strings.Contains(c.ref, "//")
			if err == nil && c.refused == "" && (!plain || c.deletes() || p.refused()) {
				t.Errorf("%q passes", c.ref)
			}
		}
		if err == nil && p.refused() {
			for _, c := range o.commands {
				if c.refused == "" {
					t.Errorf("%q passes beside what does not", c.ref)
				}
			}
		}
		for rest := bytes.NewReader(p.answer()); ; { // it is git's protocol, whatever was asked
			if _, err := readPacket(rest); errors.Is(err, io.EOF) {
				break
			} else if err != nil && !errors.Is(err, errFlush) {
				t.Errorf("%q: %v", p.answer(), err)
				break
			}
		}
	})
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(line("git-upload-pack /h/a\x00host=git.invalid\x00\x00version=2\x00")))
	f.Add([]byte("0000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRequest(bytes.NewReader(b))
		if err == nil && (strings.Contains(r.service+r.repository, "\x00") || strings.Contains(r.service, " ")) {
			t.Errorf("%+v", r)
		}
		w := &wants{}
		for i := range b { // it matters not how it comes
			_, _ = w.Write(b[i : i+1])
		}
		whole := &wants{}
		_, _ = whole.Write(b)
		if fmt.Sprint(w.objects) != fmt.Sprint(whole.objects) {
			t.Errorf("%q and %q", w.objects, whole.objects)
		}
	})
}
