package judge

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Place says where everything to read is.
type Place struct {
	Control    string   // the playground's address
	Database   string   // a connection to Postgres without accidents
	Bot        string   // the bot's user id
	Channels   []string // that work on a project
	Model      string   // a file of [ModelCall], a JSON object to a line
	Work       []string // files of lines that run.sh wrote
	Branched   string   // the channel whose threads have a branch each
	Repository string   // of its project
	Dir        string   // whatever runs in it, or names it, is a bot's
	Self       int      // except this process
}

// Evidence is everything that was read.
type Evidence struct {
	Bot       string
	Branched  string
	Threads   []Thread
	Calls     []ModelCall      // in order
	Runs      []Run            // in the order of writing
	Bill      map[string]int64 // of the model's provider, in micro-USD, by the id of the call's request
	Cuts      []Span           // in which calls may have been cut on the bot's side: by its end, or by a person's Stop
	Rows      Rows
	Branches  map[string][]string // subjects of the commits, by branch
	Processes []string
	Accidents []Line // of the history, for the transcripts
}

// Thread is a Slack thread with its messages in order.
type Thread struct {
	Channel  string
	Messages []Message
}

// Message is a message in its current state.
type Message struct {
	TS          string          `json:"ts"`
	User        string          `json:"user"`
	Text        string          `json:"text"`
	ThreadTS    string          `json:"thread_ts"`
	Blocks      json.RawMessage `json:"blocks"`
	EphemeralTo string          `json:"ephemeral_to"`
	Edits       int             `json:"edits"`
	Reactions   []struct {
		Name string `json:"name"`
	} `json:"reactions"`
}

// ModelCall is a call of the model, recorded on its way.
type ModelCall struct {
	At      time.Time `json:"at"`
	Ended   time.Time `json:"ended"`
	Request string    `json:"request"` // the id that the provider gave it; empty until it answers
	Session string    `json:"session"`
	Main    bool      `json:"main"` // it has tools, and asks for no summary: the main loop's or a subagent's
	Told    bool      `json:"told"` // what it used, to the end
	Status  int       `json:"status"`
	Seen    []string  `json:"seen"` // the answers in its conversation, in order
	Uses    []ToolUse `json:"uses"` // of the answer
}

// ToolUse is a tool call of the model's.
type ToolUse struct {
	ID    string `json:"id"`
	Input string `json:"input"`
}

// Run is one line of run.sh.
type Run struct {
	At    time.Time
	What  string // begin, end, found, failed, or full for a full disk
	Verb  string
	ID    string
	Found []string // for look: the ids that it found
}

// Span is a stretch of time.
type Span struct{ From, To time.Time }

// Line is one line of a transcript.
type Line struct {
	At   time.Time
	Text string
}

// answerOf and toolOf find a post's expectations.
var (
	answerOf = regexp.MustCompile(`say: (answer-\d{4})\b`)
	toolOf   = regexp.MustCompile(`run\.sh (ask|free|commit|loose|look|sub) (t\d{4}-\d)`)
)

// Glance reads what [Evidence.Unsettled] needs, at a tenth of the cost of a [Scan]: the threads since one, and the
// database only if nothing waits in them.
func Glance(ctx context.Context, p Place, since string) (Evidence, error) {
	e := Evidence{Bot: p.Bot}
	if err := e.readThreadsSince(ctx, p, since); err != nil {
		return Evidence{}, err
	}
	if len(e.Unsettled()) > 0 {
		return e, nil
	}
	err := e.readRows(ctx, p)
	return e, err
}

// Scan reads everything. It fails if something could not be read at all.
func Scan(ctx context.Context, p Place) (Evidence, error) {
	e := Evidence{Bot: p.Bot, Branched: p.Branched}
	for _, step := range []func(context.Context, Place) error{e.readThreads, e.readBill, e.readCalls, e.readRuns, e.readRows, e.readBranches} {
		if err := step(ctx, p); err != nil {
			return Evidence{}, err
		}
	}
	e.Processes = processes(p)
	return e, nil
}

func get(ctx context.Context, address string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("read the playground: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end or broken
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("read the playground: %s: %s", address, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

func (e *Evidence) readThreads(ctx context.Context, p Place) error {
	return e.readThreadsSince(ctx, p, "")
}

func (e *Evidence) readThreadsSince(ctx context.Context, p Place, since string) error {
	for _, channel := range p.Channels {
		var top struct{ Messages []Message }
		if err := get(ctx, p.Control+"/_control/messages?channel="+channel, &top); err != nil {
			return err
		}
		for _, root := range top.Messages {
			if root.User == p.Bot || root.EphemeralTo != "" || root.TS < since {
				continue
			}
			t := struct{ Messages []Message }{}
			if err := get(ctx, p.Control+"/_control/messages?channel="+channel+"&thread_ts="+url.QueryEscape(root.TS), &t); err != nil {
				return err
			}
			e.Threads = append(e.Threads, Thread{Channel: channel, Messages: t.Messages})
		}
	}
	return nil
}

func (e *Evidence) readBill(ctx context.Context, p Place) error {
	var bill struct{ Requests map[string]int64 }
	if err := get(ctx, p.Control+"/_control/bill", &bill); err != nil {
		return err
	}
	e.Bill = bill.Requests
	return nil
}

func (e *Evidence) readCalls(_ context.Context, p Place) error {
	err := lines(p.Model, func(line string) error {
		var c ModelCall
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return err
		}
		e.Calls = append(e.Calls, c)
		return nil
	})
	slices.SortStableFunc(e.Calls, func(a, b ModelCall) int { return a.At.Compare(b.At) })
	return err
}

func (e *Evidence) readRuns(_ context.Context, p Place) error {
	for _, file := range p.Work {
		err := lines(file, func(line string) error {
			words := strings.Fields(line)
			if len(words) < 4 {
				return fmt.Errorf("%q has no time, event, verb and id", line)
			}
			seconds, err := strconv.ParseFloat(words[0], 64)
			if err != nil {
				return err
			}
			whole, part := math.Modf(seconds)
			e.Runs = append(e.Runs, Run{At: time.Unix(int64(whole), int64(part*1e9)), What: words[1], Verb: words[2], ID: words[3], Found: words[4:]})
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(e.Runs, func(a, b Run) int { return a.At.Compare(b.At) })
	return nil
}

// lines calls use with each line of a file, which may be missing.
func lines(path string, use func(string) error) error {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		if err := use(in.Text()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return in.Err()
}

func (e *Evidence) readBranches(ctx context.Context, p Place) error {
	e.Branches = map[string][]string{}
	names, err := git(ctx, p.Repository, "for-each-ref", "--format=%(refname)", "refs/heads/deckhand/")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(names) {
		subjects, err := git(ctx, p.Repository, "log", "--format=%s", name)
		if err != nil {
			return err
		}
		e.Branches[strings.TrimPrefix(name, "refs/heads/")] = strings.Fields(subjects)
	}
	return nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-C", dir}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("read the repository: git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// processes are those that run in the bots' folders, or whose arguments or environment name them. Those that this
// user may not read do not count.
func processes(p Place) (out []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == p.Self {
			continue
		}
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		words := strings.ReplaceAll(string(args), "\x00", " ")
		if words != "" && (strings.Contains(words, p.Dir) || strings.Contains(string(environ), p.Dir) || strings.HasPrefix(cwd, p.Dir)) {
			out = append(out, fmt.Sprintf("%d: %.200s", pid, words))
		}
	}
	return out
}
