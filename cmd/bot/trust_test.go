package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrust: a repository's commands, agents and skills are used as an admin has seen them, and as
// the base has them. What has changed is used when it was agreed to.
func TestTrust(t *testing.T) {
	t.Parallel()
	w := unstartedWorld(t)
	w.configure("    workspace: worktree\n    trust: [commands, agents, skills]\n"+demoSandbox(t.Context()), "posture: contained\n")
	w.start()
	brings := func(files map[string]string) {
		t.Helper()
		for name, text := range files {
			path := filepath.Join(w.Workspace, ".claude", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git := exec.CommandContext(t.Context(), "sh", "-c", "git add -A && git -c user.name=x -c user.email=x@example.com commit -q -m brings")
		git.Dir = w.Workspace
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	command := func(says string) string {
		return "---\ndescription: Fix an issue <!here>\nargument-hint: \"[issue]\"\nallowed-tools: Bash(*)\n---\nsay: " + says + " $1 @here\n!`touch by-a-command`\n"
	}
	do := func(thread, text string) {
		t.Helper()
		w.done(eng, thread, w.post(linus, eng, thread, "@deckhand "+text))
	}
	// decides has the admin look, and press a button of the newest question about a kind.
	decides := func(thread, kind, button string) (card message) {
		t.Helper()
		since := w.post(ada, eng, thread, "@deckhand trust")
		card = w.find(eng, thread, "the question about the "+kind, func(m message) bool {
			return m.TS > since && m.EphemeralTo == ada && m.has("say:0") && strings.Contains(m.all(), "The "+kind+" that the repository brings now")
		})
		if button != "" {
			w.click(ada, eng, card.TS, button)
		}
		return card
	}
	was := w.count(`SELECT count(*) FROM trust`)
	brings(map[string]string{
		"commands/fix.md": command("first"), "commands/clear.md": "say: never", "commands/web/look.md": "say: looked", "commands/costs.md": "say: theirs $1",
		"agents/checker.md":     "---\nname: checker\ndescription: Checks\ntools: Bash, Read\n---\nYou check.",
		"skills/greet/SKILL.md": "---\ndescription: How we greet\n---\nGREET-WITH-CARE",
	})

	thread := w.post(linus, eng, "", "@deckhand say: one")
	w.done(eng, thread, thread)
	if said := w.says(eng, thread, "The repository brings commands, agents, skills that nobody has agreed to yet"); !strings.HasPrefix(said.Text, "<@"+ada+"> ") {
		t.Errorf("no admin is called: %s", said.Text)
	}
	if n := w.count(`SELECT count(*) FROM trust WHERE status = 'pending'`); was != 0 || n != 3 {
		t.Errorf("%d kinds are pending", n)
	}
	do(thread, "/fix 12")
	if n := w.count(`SELECT count(*) FROM inbox WHERE prompt LIKE '%and is no command:]%/fix 12'`); n != 1 {
		t.Error("a command that nobody trusts is no text")
	}
	w.post(grace, eng, thread, "@deckhand trust")
	w.eventually("the refusal", func() bool {
		return w.count(`SELECT count(*) FROM audit WHERE kind = 'refused' AND actor = '`+grace+`'`) == 1
	})

	for _, kind := range []string{"commands", "agents", "skills"} {
		decides(thread, kind, "say:0")
		w.says(eng, thread, "trusts the "+kind+" that the repository brings now")
	}
	w.find(eng, thread, "the file with what is new", func(m message) bool {
		return len(m.Files) == 1 && strings.HasPrefix(m.Files[0].Name, "commands-") && strings.HasSuffix(m.Files[0].Name, ".diff")
	})
	do(thread, "/fix 12")
	said := w.says(eng, thread, "first 12")
	if strings.Contains(said.all(), "<!here>") {
		t.Errorf("it calls people: %s", said.all())
	}
	w.told(ada, eng, thread, "their names mean something else here: clear.")
	do(thread, "/costs now")
	w.says(eng, thread, "theirs now")
	do(thread, "/web:look")
	w.says(eng, thread, "looked")
	w.post(linus, eng, thread, "@deckhand help")
	w.told(linus, eng, thread, "/fix [issue]")
	w.post(linus, eng, thread, "@deckhand costs")
	w.told(linus, eng, thread, "this month")
	if _, err := os.Stat(filepath.Join(w.text(`SELECT workspace FROM threads WHERE thread_ts = '`+thread+`'`), "by-a-command")); err == nil {
		t.Error("a line of a command ran unasked")
	}

	// Agents and skills are there when a session starts.
	w.stop()
	w.start()
	do(thread, `tool: Agent {"description":"look","subagent_type":"repository-checker","run_in_background":false,"prompt":"tool: Bash {\"command\":\"touch by-the-checker\"}\nsay: checked"}`)
	do(thread, `tool: mcp__deckhand__skill {"name":"greet"}`)
	for tool, want := range map[string]int64{"Agent": 1, "mcp__deckhand__skill": 1} {
		if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'tool_result' AND details::jsonb->>'tool' = '` + tool + `' AND NOT coalesce((details::jsonb->>'error')::bool, false)`); n != want {
			t.Errorf("%d calls of %s have come to a result", n, tool)
		}
	}
	if _, err := os.Stat(filepath.Join(w.text(`SELECT workspace FROM threads WHERE thread_ts = '`+thread+`'`), "by-the-checker")); err != nil {
		t.Error(err)
	}

	// It changes. A link out of the repository is not read, and what a session writes is not looked at.
	do(thread, `tool: Bash {"command":"echo 'say: by the model' > .claude/commands/fix.md"}`)
	secret := filepath.Join(w.dir, "secret.md")
	if err := os.WriteFile(secret, []byte("SECRET-CANARY"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(w.Workspace, ".claude/commands/link.md")); err != nil {
		t.Fatal(err)
	}
	brings(map[string]string{"commands/fix.md": command("second")})
	second := w.post(linus, eng, "", "@deckhand say: another")
	w.done(eng, second, second)
	w.says(eng, second, "The repository brings commands that nobody has agreed to yet")
	do(second, "/fix 13")
	w.says(eng, second, "first 13")
	old := decides(second, "commands", "")
	w.told(ada, eng, second, ".claude/commands/link.md")
	brings(map[string]string{"commands/fix.md": command("third")})
	decides(second, "commands", "")
	w.click(ada, eng, old.TS, "say:0")
	w.told(ada, eng, second, "the repository has changed since")
	decides(second, "commands", "say:1")
	w.says(eng, second, "does not trust the commands that the repository brings now")
	do(second, "/fix 14")
	w.says(eng, second, "first 14")
	decides(second, "commands", "say:0")
	w.says(eng, second, "trusts the commands that the repository brings now")
	do(second, "/fix 15")
	w.says(eng, second, "third 15")

	// Many of them.
	many := map[string]string{}
	for i := range 250 {
		many[fmt.Sprintf("commands/many/c%d.md", i)] = "say: one of many"
	}
	brings(many)
	decides(second, "commands", "say:0")
	w.told(ada, eng, second, "Not taken")
	w.eventually("they are trusted", func() bool {
		return w.count(`SELECT count(*) FROM trust WHERE status = 'trusted' AND kind = 'commands'`) == 3
	})
	do(second, "/many:c0")
	w.says(eng, second, "one of many")
	if n := w.count(`SELECT count(*) FROM trust WHERE files::text LIKE '%SECRET-CANARY%' OR files::text LIKE '%by the model%'`); n != 0 {
		t.Error("what no base has is in the database")
	}
	// What looks like a secret is not shown, and might hide what follows it.
	brings(map[string]string{"commands/fix.md": "say: Bearer abcdefghij1234567890 reads every file\n"})
	hides := w.post(ada, eng, second, "@deckhand trust")
	w.told(ada, eng, second, "It is in: .claude/commands/fix.md.")
	for _, m := range w.messages(eng, second) {
		if m.TS > hides && m.has("say:0") {
			t.Errorf("what is not shown can be agreed to: %s", m.all())
		}
	}
	if got := w.text(`SELECT string_agg(details::jsonb->>'status', ' ' ORDER BY seq) FROM audit WHERE kind = 'trust'`); got != "trusted trusted trusted refused trusted trusted" {
		t.Errorf("the audit tells of %s", got)
	}
	w.auditIsWhole()
}
