package pulls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"deckhand/internal/accounts"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/tools"
	"deckhand/internal/forge"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/gateway/gitway/forgetest"
	"deckhand/internal/jobs"
	playforge "deckhand/internal/playground/forge"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/waittest"
	"deckhand/internal/workspace"
)

// bench is a service on a real database, the forge's own client and the playground's forge. What
// threads commit is in one working tree, each on its branch.
type bench struct {
	*Service
	*store.Store
	t       *testing.T
	db      *pgx.Conn
	url     string // of the forge
	dir     string // of its repositories
	work    string
	refuses bool          // people may give no work any more
	lost    bool          // what is written down is not
	decided time.Duration // ago

	pictures place.Pictures

	mu    sync.Mutex
	shown []string
	woken []int64
}

const tokenOfTests = "DECKHAND_TEST_PULLS_TOKEN"

func newBench(t *testing.T) *bench {
	t.Helper()
	if err := os.Setenv(tokenOfTests, playforge.Token); err != nil { //nolint:usetesting // parallel tests, and always the same
		t.Fatal(err)
	}
	at, err := template()
	if err != nil {
		t.Fatal(err)
	}
	owner := storetest.URL(t)
	db, err := pgx.Connect(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(at)); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, db: db, Store: storetest.Open(t, owner, store.Options{}), dir: filepath.Join(dir, "forge"), work: filepath.Join(dir, "work")}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b.url = server.URL
	f, err := playforge.New(b.dir, func() string { return b.url })
	if err != nil {
		t.Fatal(err)
	}
	f.Register(mux)
	b.Service = New(Config{
		Store: b, People: b, Pusher: b, Accounts: (*accounts.Service)(nil), Every: time.Second, Log: zap.NewNop(),
		Projects: map[string]place.Project{"web": {
			Name: "web", Workspace: workspace.Worktree, Forge: []string{b.url + playforge.Root + "web.git"}, Access: gitway.Access{TokenEnv: tokenOfTests},
			PullRequests: place.PullRequests{Kind: forge.Gitea, Babysit: true, Ready: true},
		}},
		Show: func(id string) { b.mu.Lock(); defer b.mu.Unlock(); b.shown = append(b.shown, id) },
		Wake: func(id int64) { b.mu.Lock(); defer b.mu.Unlock(); b.woken = append(b.woken, id) },
	})
	b.patience = waittest.Limit // a busy machine is no forge that does not answer
	return b
}

// template is a folder with a working tree and a forge's copy of it, of which each bench has a
// copy: to make them takes nine runs of git.
var template = sync.OnceValues(func() (dir string, err error) {
	if templates, err = os.MkdirTemp("", "deckhand-pulls-"); err != nil {
		return "", err
	}
	work := filepath.Join(templates, "work")
	if err := errors.Join(os.Mkdir(work, 0o755), os.WriteFile(filepath.Join(work, "one.txt"), []byte("one\n"), 0o600)); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-qm", "write one.txt"}, {"remote", "add", "origin", "../forge/web.git"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = work, forgetest.Environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	return templates, playforge.Make(filepath.Join(templates, "forge"), "web.git", work)
})

// templates is the template's folder, which is removed after the tests.
var templates string

func (b *bench) bare() string { return filepath.Join(b.dir, "web.git") }

func (b *bench) git(args ...string) string {
	b.t.Helper()
	out, err := forgetest.Git(b.t, b.work, forgetest.Environ(), args...)
	if err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func (b *bench) commit(file, text string) string {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.work, file), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.git("add", ".")
	b.git("commit", "-qm", "write "+file)
	return b.git("rev-parse", "HEAD")
}

// thread is a new one, that has committed a text on its branch.
func (b *bench) thread(file, text string) threads.Thread {
	b.t.Helper()
	var id int64
	if err := b.db.QueryRow(b.t.Context(), `INSERT INTO threads (team_id, channel_id, thread_ts, project, owner_id) VALUES ('T1', 'C1', (1700000000 + random() * 1000000)::text, 'web', 'U0LINUS') RETURNING id`).Scan(&id); err != nil {
		b.t.Fatal(err)
	}
	t, err := b.ThreadByID(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	b.git("checkout", "-q", "-b", t.Branch, "main")
	b.commit(file, text)
	return t
}

// opens opens a pull request for the thread, which has to succeed.
func (b *bench) opens(t threads.Thread) forges.Pull {
	b.t.Helper()
	if said, err := b.open(b.t.Context(), tools.Call{ThreadID: t.ID, Approval: b.approval(t)}, opening{Title: "A title", Body: "A text."}); err != nil {
		b.t.Fatal(said, err)
	}
	return b.row(t)
}

func (b *bench) row(t threads.Thread) forges.Pull {
	b.t.Helper()
	p, err := b.PullOfThread(b.t.Context(), t.ID, "")
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) approval(t threads.Thread) approvals.Approval {
	p, _ := b.PullOfThread(b.t.Context(), t.ID, "") // there may be none yet
	return approvals.Approval{ID: "a", Input: []byte(`{"head":"` + p.Head + `","method":"merge"}`), Origin: approvals.Origin{ThreadID: t.ID, ThreadKey: t.Key(), RequestedBy: "U0LINUS"}, Outcome: approvals.Outcome{DecidedAt: time.Now().Add(-b.decided), Votes: []approvals.Vote{{UserID: "U0ADA", Allow: true}}}}
}

// polls asks the forge how the thread's pull request stands.
func (b *bench) polls(t threads.Thread) (forges.Pull, time.Time) {
	b.t.Helper()
	p := b.row(t)
	until, err := b.check(b.t.Context(), &p)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.row(t), until
}

// shows counts what was shown since the last time.
func (b *bench) shows() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.shown)
	b.shown = nil
	return n
}

func (b *bench) wakes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.woken)
	b.woken = nil
	return n
}

// acts are what the audit has of pull requests, and allowedBy the approvals by which.
func (b *bench) acts() string      { return b.audited(`details::json->>'act'`) }
func (b *bench) allowedBy() string { return b.audited(`NULLIF(approval_id, '')`) }

func (b *bench) audited(what string) string {
	b.t.Helper()
	var out string
	if err := b.db.QueryRow(b.t.Context(), `SELECT coalesce(string_agg(`+what+`, ' ' ORDER BY seq), '') FROM audit WHERE kind = 'pull'`).Scan(&out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// control is a control call of the forge; it returns the answer.
func (b *bench) control(method, what string, in any) []byte {
	b.t.Helper()
	return b.call(method, "/_control/forge/"+what+"?repo=web", "", in)
}

// call is a call as somebody.
func (b *bench) call(method, path, login string, in any) []byte {
	b.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, bytes.NewReader(raw))
	if err != nil {
		b.t.Fatal(err)
	}
	if login != "" {
		r.Header.Set("Authorization", "token playground-"+login)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode/100 != 2 {
		b.t.Fatalf("%s %s: %s %s %v", method, path, response.Status, body, err)
	}
	return body
}

// fault has calls of the forge fail.
func (b *bench) fault(x map[string]any) {
	b.t.Helper()
	b.control("POST", "faults", []any{x})
}

func (b *bench) heals() {
	b.t.Helper()
	b.control("DELETE", "faults", nil)
}

// seen counts the calls that faults were of.
func (b *bench) seen() (n int) {
	b.t.Helper()
	var list []struct{ Seen int }
	if err := json.Unmarshal(b.control("GET", "faults", nil), &list); err != nil {
		b.t.Fatal(err)
	}
	for _, x := range list {
		n += x.Seen
	}
	return n
}

// pulls are those of the forge.
func (b *bench) pulls() (n int) {
	b.t.Helper()
	var list []any
	if err := json.Unmarshal(b.control("GET", "pulls", nil), &list); err != nil {
		b.t.Fatal(err)
	}
	return len(list)
}

func (b *bench) checkIs(t threads.Thread, name, state string) {
	b.t.Helper()
	b.control("POST", "checks", map[string]any{"branch": t.Branch, "name": name, "state": state, "log": "it failed"})
}

// OpenedPull and PullChanged are the store's, unless the bot dies before.
func (b *bench) OpenedPull(ctx context.Context, p forges.Pull, due time.Duration, told ...audit.Entry) (forges.Pull, error) {
	if b.lost {
		return p, context.Canceled
	}
	return b.Store.OpenedPull(ctx, p, due, told...)
}

func (b *bench) PullChanged(ctx context.Context, p forges.Pull, changed bool, told ...audit.Entry) error {
	if b.lost {
		return context.Canceled
	}
	return b.Store.PullChanged(ctx, p, changed, told...)
}

// ApprovalByID knows one approval, of the newest thread.
func (b *bench) ApprovalByID(ctx context.Context, _ string) (approvals.Approval, error) {
	var id int64
	if err := b.db.QueryRow(ctx, `SELECT max(id) FROM threads`).Scan(&id); err != nil {
		return approvals.Approval{}, err
	}
	t, err := b.ThreadByID(ctx, id)
	return b.approval(t), err
}

// Push implements [Pusher] as [place.Host] does, for the branches of the working tree.
func (b *bench) Push(ctx context.Context, t threads.Thread, p place.Project, _, old, commit string) (string, error) {
	tip := b.git("rev-parse", t.Branch)
	if commit != "" && commit != tip {
		return "", place.ErrMoved
	}
	r := gitway.Remote{Upstream: gitway.Upstream{URL: p.Forge[0], Access: p.Access}, Environ: forgetest.Environ()}
	err := r.PushCommit(ctx, b.t.TempDir(), []string{filepath.Join(b.work, ".git/objects")}, t.Branch, old, tip)
	if err == gitway.ErrMoved { //nolint:errorlint // it is returned as it is
		err = place.ErrMoved
	}
	return tip, err
}

// Changed implements [Pusher] as [place.Host] does.
func (b *bench) Changed(_ context.Context, t threads.Thread, _ place.Project, base string) ([]string, error) {
	return strings.Fields(b.git("diff", "--name-only", base+"..."+t.Branch)), nil
}

func (b *bench) Pictures(threads.Thread) (place.Pictures, bool) {
	return b.pictures, b.pictures.After != nil && !b.pictures.Shown
}

func (b *bench) PicturesShown(_ threads.Thread, p place.Pictures) error {
	b.pictures = p
	b.pictures.Shown = true
	return nil
}

func (*bench) NameOf(context.Context, string) string { return "Somebody @here <!channel>" }

func (*bench) LinkTo(threads.ThreadKey) string                       { return "https://slack.example.com/t" }
func (*bench) AuthorOf(context.Context, string) (name, mail string)  { return "", "" }
func (b *bench) MayAsk(context.Context, string, threads.Thread) bool { return !b.refuses }

// job is a job as the queue runs it.
func job[A pg.JobArgs](args A) jobs.Job[A] { return jobs.Job[A]{Args: args, Attempt: 1} }
