package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/gateway/gitway/forgetest"
)

// rewound is a thread of a project with working trees, of which something is taken back.
type rewound struct {
	*chaos
	thread string
	n      int
}

// inLib is where the threads' working trees of the project's further repository are.
const inLib = ".deckhand/repos/lib/"

// begins begins it with a turn that leaves a commit and a file in both of its repositories.
func begins(t *testing.T) *rewound {
	t.Helper()
	r := &rewound{chaos: newChaos(t, chaosPlan{replicas: 1, idle: 30 * time.Minute, slots: 20, further: true})}
	r.DatabaseURL = r.directly
	r.thread = r.work("@deckhand ", r.run("commit", "one"), r.run("loose", "a"), r.run("further", "one"))
	return r
}

func (r *rewound) run(verb, word string) string {
	return `tool: Bash {"command":"` + r.script(tree) + " " + verb + " " + word + `"}`
}

// work has the model call tools and answer, in the thread or a new one, and waits until its files are kept: if the
// next turn begins sooner, nobody can come back to the end of this one.
func (r *rewound) work(before string, tools ...string) (prompt string) {
	r.t.Helper()
	r.n++
	prompt = r.post(linus, tree, r.thread, before+strings.Join(append(tools, "say: answer-000"+strconv.Itoa(r.n)), "\n"))
	if r.thread == "" {
		r.thread = prompt
	}
	r.done(tree, r.thread, prompt)
	r.saved()
	return prompt
}

// goesOn has the model answer, which is shown what was answered in some turns alone.
func (r *rewound) goesOn(thread string, knows ...int) {
	r.t.Helper()
	was := r.thread
	r.thread = thread
	r.work("")
	r.thread = was
	var want []string
	for _, n := range append(knows, r.n) {
		want = append(want, "answer-000"+strconv.Itoa(n))
	}
	if seen := r.seen(); !slices.Equal(seen, want) {
		r.t.Errorf("the model was shown %v, want %v", seen, want)
	}
}

// has checks the files of the thread's folder, by their names; empty is of one that is not there. subjects are those of
// the branch's commits, the newest first.
func (r *rewound) has(thread, subjects string, files map[string]string) {
	r.t.Helper()
	dir := r.text(`SELECT workspace FROM threads WHERE thread_ts = '` + thread + `'`)
	for name, want := range files {
		if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != want {
			r.t.Errorf("%s is %q, %v; want %q", name, b, err, want)
		}
	}
	log, err := exec.CommandContext(r.t.Context(), "git", "-C", dir, "log", "--format=%s").CombinedOutput()
	if got := strings.Join(strings.Fields(string(log)), " "); err != nil || got != subjects {
		r.t.Errorf("the branch has %q, %v; want %q", got, err, subjects)
	}
}

// saved waits until what the last turn has left is kept.
func (r *rewound) saved() {
	r.t.Helper()
	r.eventually("the work to be saved", func() bool {
		return r.count(`SELECT count(*) FROM work w JOIN threads t ON t.id = w.thread_id WHERE w.repository = '' AND t.thread_ts = '`+r.thread+`'
			AND w.states @> jsonb_build_array(jsonb_build_object('turn', (SELECT max(id) FROM turns WHERE thread_id = t.id)))`) == 1
	})
}

// choose presses one of the buttons that somebody alone sees below a question.
func (r *rewound) choose(question, button string) {
	r.t.Helper()
	asked := r.find(tree, r.thread, question, func(m message) bool {
		return m.EphemeralTo == linus && strings.Contains(m.all(), question) && m.has(button)
	})
	r.click(linus, tree, asked.TS, button)
}

// TestRewind: somebody takes a thread back to before a message, after a look at what that changes: a file that a command
// has made, an edit and a commit. It is done once, whoever presses how often; what was taken back the model does not know,
// and it can be had again. Another thread begins as this one was after a message.
func TestRewind(t *testing.T) {
	t.Parallel()
	r := begins(t)
	defer r.stop()
	dir := r.text(`SELECT workspace FROM threads`)
	notes := filepath.Join(dir, "notes.txt")
	edited := r.post(linus, tree, r.thread, strings.Join([]string{
		r.run("commit", "two"), r.run("loose", "b"), r.run("further", "two"), `tool: Read {"file_path":"` + notes + `"}`,
		`tool: Edit {"file_path":"` + notes + `","old_string":"one","new_string":"ONE"}`, "say: answer-0002",
	}, "\n"))
	r.n = 2

	card := r.card(tree, r.thread)
	r.post(linus, tree, r.thread, "@deckhand rewind")
	r.told(linus, tree, r.thread, "is still being worked on, or waits. Write “stop” first")
	r.click(grace, tree, card.TS, "approve")
	r.done(tree, r.thread, edited)
	r.saved()
	two := map[string]string{"notes.txt": "ONE\ntwo\n", "loose.txt": "a\nb\n", inLib + "notes.txt": "one\ntwo\n", inLib + "loose.txt": "one\ntwo\n"}
	r.has(r.thread, "two one start", two)

	r.post(mallory, tree, r.thread, "@deckhand rewind")
	r.told(mallory, tree, r.thread, "You don't have access")
	r.post(linus, tree, r.thread, "@deckhand rewind")
	r.choose("message to go back to", "say:0")
	shown := r.says(tree, r.thread, "would change this; nothing is changed yet")
	for _, want := range []string{"Files: 2, +1 −3 lines.", "notes.txt +1 −2", "loose.txt +0 −1", "Commits that leave the branch: 1.", "two", "In the repository lib:", "Files: 2, +0 −2 lines.", "Rewind 4 files and drop 2 commits"} {
		if !strings.Contains(shown.all(), want) {
			t.Errorf("the dry run does not say %q:\n%s", want, shown.all())
		}
	}
	r.has(r.thread, "two one start", two)
	r.click(mallory, tree, shown.TS, "say:0")
	r.told(mallory, tree, r.thread, "You don't have access")
	r.click(grace, tree, shown.TS, "say:0")
	r.click(linus, tree, shown.TS, "say:0")
	r.says(tree, r.thread, "took this thread back to before")
	again := r.find(tree, r.thread, "that it is done once", func(m message) bool {
		return strings.Contains(m.all(), "Nothing was rewound: this thread has gone on since")
	})
	if again.EphemeralTo != linus {
		t.Errorf("not only who pressed second is told: %+v", again)
	}
	one := map[string]string{"notes.txt": "one\n", "loose.txt": "a\n", inLib + "notes.txt": "one\n", inLib + "loose.txt": "one\n"}
	r.has(r.thread, "one start", one)
	r.goesOn(r.thread, 1)

	// Another thread begins after the first message.
	r.post(linus, tree, r.thread, "@deckhand fork from")
	r.choose("message after which", "say:1")
	r.says(tree, r.thread, "forked this thread")
	forked := r.text(`SELECT thread_ts FROM threads WHERE forked_from IS NOT NULL`)
	r.goesOn(forked, 1)
	r.has(forked, "one start", one)

	// Before the first message there was nothing; and then all of it again.
	r.post(linus, tree, r.thread, "@deckhand rewind")
	r.choose("message to go back to", "say:1")
	r.find(tree, r.thread, "what that changes", func(m message) bool {
		return strings.Contains(m.all(), "goes") && strings.Contains(m.all(), "Commits that leave the branch: 1.")
	})
	r.confirms("Rewind 4 files and drop 2 commits", 2)
	r.has(r.thread, "start", map[string]string{"notes.txt": "", "loose.txt": "", inLib + "notes.txt": "", inLib + "loose.txt": ""})
	r.goesOn(r.thread)
	for i := range 2 {
		r.post(linus, tree, r.thread, "@deckhand rewind back")
		r.confirms("before the last rewind", 3+i)
	}
	r.has(r.thread, "two one start", two)
	r.goesOn(r.thread, 1, 2)
	if n := r.count(`SELECT count(*) FROM audit WHERE kind = 'rewound'`); n != 4 {
		t.Errorf("the audit tells of %d rewinds", n)
	}
}

// confirms presses the last button that does what was shown, and waits until so many rewinds are done.
func (r *rewound) confirms(says string, done int) {
	r.t.Helper()
	shown := r.find(tree, r.thread, "the look at "+says, func(m message) bool {
		return m.User == r.BotUser && strings.Contains(m.all(), "nothing is changed yet") && strings.Contains(m.all(), says) && m.has("say:0")
	})
	r.click(linus, tree, shown.TS, "say:0")
	r.eventually("the rewind to be done", func() bool { return r.count(`SELECT count(*) FROM audit WHERE kind = 'rewound'`) == int64(done) })
	r.eventually("the button to go", func() bool { return !r.message(tree, shown.TS).has("say:0") })
}

// TestRewindKilled: a bot that is killed when the files are taken back, and what Claude knows is not, goes on with that
// when it starts again, and before anything else.
func TestRewindKilled(t *testing.T) {
	t.Parallel()
	r := begins(t)
	defer r.stop()
	r.work("", r.run("commit", "two"), r.run("loose", "b"), r.run("further", "two"))
	db, err := pgx.Connect(t.Context(), r.directly)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background()) //nolint:errcheck // the test ends
	// The rewound session cannot be written while this connection holds the lock.
	if _, err := db.Exec(t.Context(), `
		SELECT pg_advisory_lock(39);
		CREATE FUNCTION await() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(39); RETURN NEW; END $$;
		CREATE TRIGGER await BEFORE INSERT ON sessions FOR EACH ROW WHEN (NEW.rewound_to IS NOT NULL) EXECUTE FUNCTION await()`); err != nil {
		t.Fatal(err)
	}
	r.post(linus, tree, r.thread, "@deckhand rewind")
	r.choose("message to go back to", "say:0")
	shown := r.says(tree, r.thread, "nothing is changed yet")
	r.click(linus, tree, shown.TS, "say:0")
	dir := r.text(`SELECT workspace FROM threads`)
	r.eventually("the files to be taken back", func() bool {
		b, _ := os.ReadFile(filepath.Join(dir, "loose.txt"))
		return string(b) == "a\n"
	})
	r.away(r.replicas[0], syscall.SIGKILL)
	if _, err := db.Exec(t.Context(), `SELECT pg_advisory_unlock(39)`); err != nil {
		t.Fatal(err)
	}
	if n := r.count(`SELECT count(*) FROM audit WHERE kind = 'rewound'`); n != 0 {
		t.Error("the conversation has been taken back")
	}
	r.post(linus, tree, r.thread, "say: answer-0003")
	r.n++
	r.comeBack(r.replicas[0])
	r.says(tree, r.thread, "took this thread back to before")
	r.has(r.thread, "one start", map[string]string{"notes.txt": "one\n", "loose.txt": "a\n", inLib + "notes.txt": "one\n", inLib + "loose.txt": "one\n"})
	r.says(tree, r.thread, "answer-0003")
	r.doneWithAll()
	if seen := r.seen(); !slices.Equal(seen, []string{"answer-0001", "answer-0003"}) {
		t.Errorf("the model was shown %v", seen)
	}
	if left, err := filepath.Glob(filepath.Dir(dir) + "*/*.*"); err != nil || len(left) != 0 {
		t.Errorf("%v, %v are left", left, err)
	}
}

// TestRewindOverAPush: whoever looks at what a rewind takes away is told which commits the remote keeps, and what that
// means for the next push; the remote stays as it is.
func TestRewindOverAPush(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	w := unstartedWorld(t)
	w.env = []string{forgetest.TokenEnv + "=" + forgetest.Password}
	config := fmt.Sprintf(`git: {token_env: %s}
posture: contained
projects: {web: {repo: %q, workspace: worktree}}
channels: {%s: web}
roles: {admins: [%s], approvers: [%s], users: [%s]}
`, forgetest.TokenEnv, f.URL("web"), eng, ada, grace, linus)
	if err := os.WriteFile(filepath.Join(w.dir, "deckhand.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	thread := w.runs(linus, eng, "", "true")
	w.done(eng, thread, thread)
	r := &rewound{chaos: &chaos{world: w}, thread: thread}
	r.saved()
	commits := func(name string) {
		t.Helper()
		w.done(eng, thread, w.runs(linus, eng, thread, "echo "+name+" > "+name+" && git add "+name+" && git commit -qm "+name))
		r.saved()
	}
	commits("x")
	pushed := w.runs(linus, eng, thread, "git push -q origin HEAD")
	w.click(grace, eng, w.card(eng, thread).TS, "approve")
	w.done(eng, thread, pushed)
	r.saved()
	commits("y")
	refs := f.Refs()

	w.post(linus, eng, thread, "@deckhand rewind")
	asked := w.find(eng, thread, "the list", func(m message) bool { return m.EphemeralTo == linus && m.has("say:2") })
	w.click(linus, eng, asked.TS, "say:2") // before y, the push and x
	shown := w.says(eng, thread, "Commits that leave the branch: 2.")
	if !strings.Contains(shown.all(), "1 of them is pushed: the remote keeps") || !strings.Contains(shown.all(), "a forced one, which is asked about in two steps") {
		t.Errorf("the dry run says\n%s", shown.all())
	}
	w.click(linus, eng, shown.TS, "say:0")
	w.says(eng, thread, "took this thread back to before")
	if got := f.Refs(); got != refs {
		t.Errorf("the remote has\n%s\nand had\n%s", got, refs)
	}
	commits("z")
	again := w.runs(linus, eng, thread, "git push -q -f origin HEAD")
	w.opens(grace, eng, w.card(eng, thread).TS, "approve") // the second step
	w.post(linus, eng, thread, "@deckhand stop")
	w.find(eng, thread, "the turn to stop", func(m message) bool { return m.TS == again && len(m.Reactions) > 0 })
}
