package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"deckhand/internal/freeport"
	"deckhand/internal/judge"
	"deckhand/internal/needtest"
	"deckhand/internal/playground"
	"deckhand/internal/playground/postgres"
	"deckhand/internal/playground/slack"
	"deckhand/internal/store/storetest"
	"deckhand/internal/waittest"
)

// chaos is a world of replicas that accidents happen to: each has a data folder and a way
// to the database of its own; Slack, the model and the projects are the same for all.
type chaos struct {
	*world
	plan       chaosPlan
	playground *playground.Playground
	database   *keptDatabase // nil where the server is not the history's own
	directly   string        // the database's address, with no accident in between
	model      string
	cutModel   func() // breaks the connections to it
	replicas   []*chaosReplica
	began      time.Time
	over       chan struct{} // closed when nothing more is to be started
	news       atomic.Bool   // something has changed in the workspace since the cards were looked at
	running    sync.WaitGroup

	mu        sync.Mutex
	threads   []chaosThread
	accidents []judge.Line
	cuts      []judge.Span
	ambushes  []chaosStep
	calm      bool // what is asked is approved at once
}

type chaosThread struct{ channel, ts string }

// chaosReplica is `bot run`, started again whenever it dies, as compose does it.
type chaosReplica struct {
	n       int
	program string // empty for this test's binary, which is the bot too
	cli     string
	inside  []string // the command that starts the program elsewhere
	dir     string
	env     []string
	ready   string // where it says that it is ready
	disk    string // that can be filled; empty where it cannot
	wire    *wire

	mu    sync.Mutex
	cmd   *exec.Cmd
	pause time.Duration // before it is started again
	back  chan struct{} // not nil: it is started again when this is closed
}

func newChaos(t testing.TB, p chaosPlan) *chaos {
	t.Helper()
	if _, err := postgres.Find(); err != nil {
		needtest.Missing(t, err.Error())
	}
	cli := needtest.Claude(t)
	dir, err := os.MkdirTemp("", "deckhand-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := &chaos{world: &world{t: t, dir: dir}, plan: p, began: time.Now(), over: make(chan struct{})}
	t.Cleanup(func() {
		for _, r := range c.replicas {
			if log, err := os.ReadFile(r.log()); t.Failed() && err == nil {
				log, stacks, _ := bytes.Cut(log, []byte("SIGQUIT: quit"))
				t.Logf("the end of replica %d's log:\n%s", r.n, log[max(0, len(log)-6000):])
				t.Logf("what it was doing:\n%.60000s", stacks)
			}
		}
		if t.Failed() && os.Getenv("DECKHAND_TEST_KEEP") != "" {
			t.Logf("everything is in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c.startDatabase()
	if c.playground, err = playground.Start(t.Context(), playground.Options{Listen: "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.playground.Close(context.Background()) })
	c.URL, c.BotUser = c.playground.URL(), slack.BotUser
	c.watch()
	c.model, c.cutModel = overhear(t, c.playground.ModelURL(), filepath.Join(dir, "model.log"), c.moment)
	c.furnish()
	for n := range p.replicas {
		c.launch(c.newReplica(n, cli))
	}
	return c
}

func (c *chaos) startDatabase() {
	if c.plan.postgres {
		dir := filepath.Join(c.dir, "postgres")
		db, err := startDatabase(c.t.Context(), postgres.Options{Dir: dir, Durable: true, Log: zap.NewNop()})
		if err != nil {
			c.t.Fatal(err)
		}
		db.keep(c.t.Context(), func() {})
		c.t.Cleanup(func() { _ = db.stop() })
		c.database, c.directly = db, db.current().URL()
		return
	}
	if c.directly = c.plan.database; c.directly == "" {
		c.directly = storetest.URL(c.t)
	}
}

// runScript is what every tool of a history runs; see package judge.
const runScript = `#!/bin/sh
say() { echo "$(date +%%s.%%N) $*" >>%[1]s; }
say begin "$1" "$2"
case $1 in
commit)
	[ ! -d .git ] || { echo "$2" >>notes.txt && git add notes.txt && git -c user.name=a -c user.email=a@example.com commit -qm "$2"; } || {
		if echo full >full.txt && [ -s full.txt ]; then say failed "$1" "$2"; else say full "$1" "$2"; fi 2>/dev/null
		rm -f full.txt; exit 1
	} ;;
loose) echo "$2" >>loose.txt ;;
further) (cd .deckhand/repos/lib && echo "$2" >>notes.txt && git add notes.txt && git -c user.name=a -c user.email=a@example.com commit -qm "$2" && echo "$2" >>loose.txt) || exit 1 ;;
look) say found "$1" "$2" "$(git log --format=%%s | tr '\n' ' ') $(cat loose.txt 2>/dev/null | tr '\n' ' ')"; exit ;;
esac
[ -z "$3" ] || sleep "$3"
say end "$1" "$2"
`

// furnish makes the projects' folders and the configuration.
func (c *chaos) furnish() {
	c.t.Helper()
	for _, name := range []string{"shop", "tree"} {
		dir := filepath.Join(c.dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			c.t.Fatal(err)
		}
		script := filepath.Join(dir, "run.sh")
		log := "work.log"
		if name == "tree" {
			script, log = filepath.Join(c.dir, "run.sh"), filepath.Join(c.dir, "tree.log")
			for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "start"}} {
				if out, err := exec.CommandContext(c.t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
					c.t.Fatalf("%v: %s", err, out)
				}
			}
		}
		if err := os.WriteFile(script, fmt.Appendf(nil, runScript, log), 0o755); err != nil {
			c.t.Fatal(err)
		}
	}
	shutIn := "none"
	if c.plan.sandboxed && strings.HasPrefix(demoSandbox(c.t.Context()), "sandbox: bwrap") {
		shutIn = "bwrap"
	}
	repos := ""
	if c.plan.further {
		lib := filepath.Join(c.dir, "lib.git")
		if out, err := exec.CommandContext(c.t.Context(), "git", "clone", "-q", "--bare", filepath.Join(c.dir, "tree"), lib).CombinedOutput(); err != nil {
			c.t.Fatalf("%v: %s", err, out)
		}
		repos = fmt.Sprintf(", repos: {lib: %q}", lib)
	}
	var free []string
	for _, script := range []string{"./run.sh", c.script(tree)} {
		for _, verb := range []string{"free", "commit", "loose", "further", "look", "sub"} {
			free = append(free, fmt.Sprintf("%q", "Bash("+script+" "+verb+" **)"))
		}
	}
	config := fmt.Sprintf(`projects:
  shop: {dir: %q, sandbox: %s}
  tree: {dir: %q, workspace: worktree, sandbox: none%s}
channels: {%s: shop, %s: tree}
roles: {admins: [%s], approvers: [%s], users: [%s]}
policy: {rules: [{allow: [%s]}]}
`, filepath.Join(c.dir, "shop"), shutIn, filepath.Join(c.dir, "tree"), repos, shop, tree, ada, slack.GroupApprovers, slack.GroupEngineers, strings.Join(free, ", "))
	if err := os.WriteFile(filepath.Join(c.dir, "deckhand.yaml"), []byte(config), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// script is how run.sh is called in a channel's project.
func (c *chaos) script(channel string) string {
	if channel == tree {
		return filepath.Join(c.dir, "run.sh")
	}
	return "./run.sh"
}

// newReplica prepares a replica with its data folder and its way to the database.
func (c *chaos) newReplica(n int, cli string) *chaosReplica {
	c.t.Helper()
	config, err := pgx.ParseConfig(c.directly)
	if err != nil {
		c.t.Fatal(err)
	}
	health, err := freeport.Address(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	r := &chaosReplica{n: n, program: c.plan.program, cli: cli, dir: filepath.Join(c.dir, fmt.Sprintf("replica%d", n)), ready: "http://" + health + "/readyz"}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
	c.ownDisk(r)
	r.wire = newWire(c.t, func() (string, string) {
		if strings.HasPrefix(config.Host, "/") {
			return "unix", filepath.Join(config.Host, fmt.Sprintf(".s.PGSQL.%d", config.Port))
		}
		return "tcp", net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
	})
	r.env = []string{
		asBot + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "SLACK_BOT_TOKEN=" + c.playground.Slack().BotToken(),
		"SLACK_APP_TOKEN=" + c.playground.Slack().AppToken(), "SLACK_API_URL=" + c.playground.SlackAPIURL(),
		fmt.Sprintf("DATABASE_URL=postgres://%s:%s@%s/%s?sslmode=disable", config.User, config.Password, r.wire.address(), config.Database),
		"CLAUDE_COMMAND=" + cli, "DECKHAND_CONFIG=" + filepath.Join(c.dir, "deckhand.yaml"), "DECKHAND_DATA_DIR=" + filepath.Join(r.dir, "data"),
		"DECKHAND_LISTEN=" + health, "DECKHAND_CLI_TIMEOUT=5m", "DECKHAND_IDLE_TIMEOUT=" + c.plan.idle.String(),
		fmt.Sprintf("DECKHAND_MAX_LIVE_SESSIONS=%d", c.plan.slots), "ANTHROPIC_BASE_URL=" + c.model, "ANTHROPIC_API_KEY=sk-ant-playground",
		"GORACE=" + os.Getenv("GORACE"), "DECKHAND_LOG_FORMAT=console",
	}
	r.env = append(r.env, c.plan.settings...)
	return r
}

// launch starts a replica for as long as the history lasts, and returns when it is ready.
func (c *chaos) launch(r *chaosReplica) {
	c.t.Helper()
	c.replicas = append(c.replicas, r)
	botLogs.Store(r.log(), nil)
	c.t.Cleanup(func() { botLogs.Delete(r.log()) })
	c.running.Go(func() { c.keepRunning(r) })
	c.eventually("a replica to be ready", func() bool { return ask(c.t.Context(), r.ready) == nil })
}

func (c *chaos) keepRunning(r *chaosReplica) {
	runtime.LockOSThread() // the kernel ends the bot with the thread that started it
	for {
		cmd, err := r.start()
		if err != nil {
			c.t.Errorf("start a replica: %v", err)
			return
		}
		err = cmd.Wait()
		c.mayCut(-c.plan.unwritten, 0)
		select {
		case <-c.over:
			if err != nil {
				c.t.Errorf("replica %d did not stop in good order: %v", r.n, err)
			}
			return
		default:
		}
		r.mu.Lock()
		pause := max(r.pause, restartPause)
		r.pause = 0
		r.mu.Unlock()
		c.note("replica %d ended: %v; it is started again in %v", r.n, err, pause)
		select {
		case <-c.over:
			return
		case <-time.After(pause):
		}
		r.mu.Lock()
		back := r.back
		r.mu.Unlock()
		if back == nil {
			continue
		}
		select {
		case <-c.over:
			return
		case <-back:
		}
	}
}

func (r *chaosReplica) start() (*exec.Cmd, error) {
	program := r.program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(r.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the bot has its own
	args := append(slices.Clone(r.inside), program, "run")
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it is stopped by hand
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.SysProcAttr = r.env, log, log, r.dir, childAttributes()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r.cmd = cmd
	return cmd, nil
}

func (r *chaosReplica) log() string { return filepath.Join(r.dir, "bot.log") }

func (r *chaosReplica) signal(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		_ = r.cmd.Process.Signal(s)
	}
}

func (r *chaosReplica) pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd == nil {
		return 0
	}
	return r.cmd.Process.Pid
}

// stop ends all replicas in good order, or, where something waits in vain, with what their
// goroutines do.
func (c *chaos) stop() {
	close(c.over)
	end := syscall.SIGTERM
	if c.t.Failed() {
		end = syscall.SIGQUIT
	}
	for _, r := range c.replicas {
		r.signal(syscall.SIGCONT)
		r.signal(end)
	}
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(waittest.Limit):
		c.t.Error("the replicas do not stop")
		for _, r := range c.replicas {
			r.signal(syscall.SIGKILL)
		}
		<-ended
	}
}

// note writes down what happens, for the transcripts.
func (c *chaos) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accidents = append(c.accidents, judge.Line{At: time.Now(), Text: "* " + fmt.Sprintf(format, args...)})
}

// mayCut notes that the bot's side may cut calls of the model, from one time to another after
// now, or not have written down what it knows of them.
func (c *chaos) mayCut(from, to time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cuts = append(c.cuts, judge.Span{From: time.Now().Add(from), To: time.Now().Add(to)})
}

// place is where to look for what happens.
func (c *chaos) place() judge.Place {
	return judge.Place{
		Control: c.URL, Database: c.directly, Bot: c.BotUser, Channels: []string{shop, tree}, Model: filepath.Join(c.dir, "model.log"),
		Work:       []string{filepath.Join(c.dir, "shop", "work.log"), filepath.Join(c.dir, "tree.log")},
		Branched:   tree,
		Repository: filepath.Join(c.dir, "tree"), Dir: filepath.Join(c.dir, "replica"), Self: os.Getpid(),
	}
}

// look is all that can be seen from outside.
func (c *chaos) look() (judge.Evidence, error) {
	e, err := judge.Scan(context.Background(), c.place())
	c.mu.Lock()
	defer c.mu.Unlock()
	e.Accidents, e.Cuts = c.accidents, c.cuts
	return e, err
}
