package slackui

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// announce keeps an answer of the model's, which asks for uses of tools, in the conversation.
func (d *desk) announce(lines ...string) {
	text := strings.Join(lines, "\n") + "\n"
	saved, err := d.books.SaveTranscripts(context.Background(), d.lease, []store.TranscriptPart{{
		SessionID: d.session, Pieces: [][]byte{[]byte(text)}, Bytes: int64(len(text)), SHA256: sha256.Sum256([]byte(text)),
	}})
	d.must(err)
	if !saved {
		d.t.Fatal("the conversation was not kept")
	}
}

// announces is a line of a conversation, in which an answer asks for a use of a tool.
func announces(answer, id, tool string, input object) string {
	return string(mustJSON(object{"type": "assistant", "message": object{"id": answer, "role": "assistant", "content": []any{
		object{"type": "tool_use", "id": id, "name": tool, "input": input},
	}}}))
}

// asksToWrite is a request to write a file of the desk's workspace.
func (d *desk) asksToWrite(id, file string) store.Approval {
	return d.asksFor("ULINUS", id, file)
}

// asksFor is asksToWrite for a person, who may decide themselves.
func (d *desk) asksFor(user, id, file string) store.Approval {
	a, err := d.books.Ask(context.Background(), d.lease, store.Approval{
		ID: newID(), SessionID: d.session, TurnID: d.turn.ID, Kind: store.ApprovalTool, RequestID: uuid.NewString(), ToolUseID: id,
		ToolName: "Write", Input: mustJSON(object{"file_path": file, "content": "x\n"}), RequestedBy: user,
		Terms: store.Terms{Rule: "default", Quorum: 1, Grantable: true, RequesterMay: true}, ExpiresAt: time.Now().Add(time.Hour),
	})
	d.must(err)
	d.front().ShowApproval(a)
	return a
}

// allowFiles sends the form about files, with some of its choices ticked.
func (d *desk) allowFiles(user, metadata string, which, further []string) string {
	picked := func(values []string) object {
		options := []any{}
		for _, v := range values {
			options = append(options, object{"value": v})
		}
		return object{"selected_options": options}
	}
	in, err := decode(envelope{ID: uuid.NewString(), Type: "interactive", Payload: mustJSON(object{
		"type": "view_submission", "team": object{"id": deskTeam}, "user": object{"id": user, "team_id": deskTeam},
		"view": object{"callback_id": render.CallbackApproveFiles, "private_metadata": metadata, "state": object{"values": object{
			render.FilesWhich: object{render.FilesWhich: picked(which)}, render.FilesFurther + "0": object{render.FilesFurther + "0": picked(further)},
			render.FilesUntil: object{render.FilesUntil: object{"selected_option": object{"value": "1h"}}},
		}}},
	})})
	d.must(err)
	return d.bot.app.act(context.Background(), in)
}

// granted are the patterns that hold for writing files.
func (d *desk) granted() (patterns []string) {
	live, err := d.books.LiveGrants(context.Background(), d.lease, d.session, policy.Siblings("Write"), [32]byte{})
	d.must(err)
	for _, g := range live {
		patterns = append(patterns, g.Pattern)
	}
	slices.Sort(patterns)
	return patterns
}

// inWorkspace has the desk's thread work in a folder, by rules.
func (d *desk) inWorkspace(dir string, rules ...policy.Rule) {
	p, err := policy.New(rules, policy.Terms{RequesterMayApprove: true})
	d.must(err)
	a := d.bot.app
	a.agent = agent.New(agent.Config{Store: d.books, Frontend: a.Frontend(), Authoriser: a, Reminder: a, Policy: p, Replica: "replica-1", Log: zap.NewNop()})
	d.must(d.books.SetWorkspace(context.Background(), d.lease, dir))
}

// aWorkspace is a folder with files that are not what they seem.
func aWorkspace(t *testing.T) (ws, outside string) {
	t.Helper()
	ws, outside = t.TempDir(), filepath.Join(t.TempDir(), "outside.txt")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(ws, ".git", "hooks"), 0o700), os.MkdirAll(filepath.Join(ws, "sub"), 0o700),
		os.WriteFile(outside, nil, 0o600), os.Symlink(outside, filepath.Join(ws, "link.txt")),
		os.WriteFile(filepath.Join(ws, ".git", "config"), nil, 0o600), os.Link(filepath.Join(ws, ".git", "config"), filepath.Join(ws, "twin.txt")),
		os.WriteFile(filepath.Join(ws, "run.txt"), nil, 0o700), //nolint:gosec // it is to be a program
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return ws, outside
}

// The form about a file offers the files that the same answer goes on to write: plain files,
// whose requests this person could decide about with the one that waits, and no others. What
// it gives is looked at again.
func TestFilesThatAnAnswerGoesOnToWrite(t *testing.T) {
	t.Parallel()
	ws, outside := aWorkspace(t)
	rule := func(v policy.Verdict, pattern string) policy.Rule {
		return policy.Rule{Verdict: v, Patterns: []policy.Pattern{policy.MustParsePattern(pattern)}}
	}
	dangerous, others, hers, two := rule(policy.Ask, "Edit(danger/**)"), rule(policy.Ask, "Edit(ops/**)"), rule(policy.Ask, "Edit(hers/**)"), rule(policy.Ask, "Edit(two/**)")
	dangerous.Dangerous, others.Approvers, hers.Approvers, two.Quorum = true, []string{"UADA"}, []string{"UGRACE"}, 2
	n := 0
	announced := func(answer, tool, path string) string {
		n++
		return announces(answer, fmt.Sprintf("toolu_next_%d", n), tool, object{"file_path": path, "content": "of " + filepath.Base(path) + "\n"})
	}
	lines := []string{
		announced("msg_old", "Write", ws+"/of-another-answer.txt"),
		announced("msg_1", "Write", ws+"/before.txt"),
		announces("msg_1", "toolu_1", "Write", object{"file_path": ws + "/first.txt", "content": "x\n"}),
	}
	for _, path := range []string{ws + "/second.txt", ws + "/sub/./../third.txt", ws + "/Third.txt", ws + "/gone.txt"} {
		lines = append(lines, announced("msg_1", "Write", path))
	}
	for _, path := range []string{
		ws + "/link.txt", ws + "/twin.txt", ws + "/run.txt", outside, "relative.txt", ws + "/../beside.txt", ws + "/.git/hooks/pre-commit", ws + "/sub/.git/config",
		ws + "/Makefile", ws + "/package.json", ws + "/.claude/settings.json", ws + "/.env", ws + "/.ｇｉｔ/config", ws + "/bi\u202edi.txt", ws + "/zero\u200b.txt", ws + "/blank.txt ",
		ws + "/danger/a.txt", ws + "/ops/a.txt", ws + "/hers/a.txt", ws + "/two/a.txt", ws + "/denied/a.txt", ws + "/free/a.txt", ws + "/first.txt",
	} {
		lines = append(lines, announced("msg_1", "Write", path))
	}
	lines = append(lines,
		announced("msg_1", "Read", ws+"/read.txt"), announces("msg_1", "toolu_bash", "Bash", object{"command": "echo > bash.txt"}),
		announces("msg_1", "toolu_twice", "Write", object{"file_path": ws + "/twice.txt", "content": "x", "FILE_PATH": ws + "/Makefile"}),
		announces("msg_1", "toolu_done", "Write", object{"file_path": ws + "/done.txt", "content": "x"}),
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_done","content":"written"}]}}`,
		announced("msg_2", "Write", ws+"/later.txt"),
	)
	atDesk(t, func(d *desk) {
		d.inWorkspace(ws, dangerous, others, hers, two, rule(policy.Deny, "Edit(denied/**)"), rule(policy.Allow, "Edit(free/**)"))
		a := d.asksToWrite("toolu_1", ws+"/first.txt")
		d.announce(lines...)
		d.rest()
		if got := d.click("ULINUS", render.ActionApproveFiles, a); got != "refused" || d.opened() != "" {
			t.Errorf("somebody who may not decide: %s", got)
		}
		if got := d.click("UGRACE", render.ActionApproveFiles, a); got != "asked for more" {
			t.Fatalf("the click: %s", got)
		}
		view := d.opened()
		var v struct {
			Metadata string `json:"private_metadata"`
		}
		d.must(json.Unmarshal([]byte(view), &v))
		var ref render.FilesRef
		d.must(json.Unmarshal([]byte(v.Metadata), &ref))
		offered := regexp.MustCompile(`"File \d+: ([^"]*)"`).FindAllStringSubmatch(view, -1)
		var names []string
		for _, m := range offered {
			if !slices.Contains(names, m[1]) { // of the initial options, too
				names = append(names, m[1])
			}
		}
		if want := []string{"first.txt", "second.txt", "third.txt", "Third.txt", "gone.txt"}; !slices.Equal(names, want) || len(ref.Further) != 4 {
			t.Errorf("the form offers %q, want %q: %s", names, want, v.Metadata)
		}
		for _, want := range []string{"4 more files", `of second.txt\n`, "All 4 that are shown here", "whatever is written into them"} {
			if !strings.Contains(view, want) {
				t.Errorf("the form does not say %q: %s", want, view)
			}
		}
		first := regexp.MustCompile(`"0:([0-9a-f]{32})"`).FindStringSubmatch(view)[0]
		first = strings.Trim(first, `"`)
		if got := d.allowFiles("UGRACE", v.Metadata, nil, []string{render.FilesAll}); got != "incomplete answer" || len(d.granted()) > 0 {
			t.Errorf("further files alone: %s, %q", got, d.granted())
		}
		if got := d.allowFiles("ULINUS", v.Metadata, []string{first}, []string{render.FilesAll}); got != "refused" || len(d.granted()) > 0 {
			t.Errorf("by somebody who may not: %s, %q", got, d.granted())
		}
		d.must(os.Symlink(outside, filepath.Join(ws, "gone.txt"))) // since the form was opened
		if got := d.allowFiles("UGRACE", v.Metadata, []string{first}, []string{render.FilesAll}); got != "1 allowed" {
			t.Errorf("sent: %s", got)
		}
		if want := []string{"Edit(Third.txt)", "Edit(first.txt)", "Edit(second.txt)", "Edit(third.txt)"}; !slices.Equal(d.granted(), want) {
			t.Errorf("granted are %q, want %q", d.granted(), want)
		}
		if got := d.allowFiles("UGRACE", v.Metadata, []string{first}, []string{render.FilesAll}); got != "too late" || len(d.granted()) != 4 {
			t.Errorf("sent again: %s, %q", got, d.granted())
		}
		d.rest()
		if said := strings.Join(d.slack.whispers(), "\n"); !strings.Contains(said, "UGRACE: Some of these requests were decided or changed meanwhile") {
			t.Errorf("people were told:\n%s", said)
		}
	})
}

// What was asked about since the form was opened waits like the first: it is approved if it
// was ticked. What was not ticked gets nothing, and what was decided meanwhile neither.
func TestFurtherFilesWhoseTurnHasCome(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	var lines []string
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		lines = append(lines, announces("msg_1", fmt.Sprint("toolu_", i), "Write", object{"file_path": filepath.Join(ws, name), "content": "x\n"}))
	}
	atDesk(t, func(d *desk) {
		d.inWorkspace(ws)
		a := d.asksToWrite("toolu_0", filepath.Join(ws, "a"))
		d.rest()
		if d.click("UGRACE", render.ActionApproveFiles, a); strings.Contains(d.opened(), "goes on to write") {
			t.Errorf("further files of an answer that is not kept: %s", d.opened())
		}
		d.announce(lines...)
		d.rest()
		d.kill() // another process has only what is kept
		d.inWorkspace(ws)
		if got := d.click("UGRACE", render.ActionApproveFiles, a); got != "asked for more" {
			t.Fatalf("the click: %s", got)
		}
		view := d.opened()
		var v struct {
			Metadata string `json:"private_metadata"`
		}
		d.must(json.Unmarshal([]byte(view), &v))
		values := map[string]string{}
		for _, m := range regexp.MustCompile(`"File \d+: (\w+)"[^{}]*}[^{}]*"value":"(\d+:[0-9a-f]{32})"`).FindAllStringSubmatch(view, -1) {
			values[m[1]] = m[2]
		}
		if len(values) != 5 {
			t.Fatalf("the form offers %v: %s", values, view)
		}
		decide := func(a store.Approval, status store.ApprovalStatus) {
			_, err := d.books.Decide(context.Background(), store.Decision{ApprovalID: a.ID, Status: status, By: "UHEIDI", Via: "button"})
			d.must(err)
		}
		decide(a, store.ApprovalAllowed)
		decide(d.asksToWrite("toolu_1", filepath.Join(ws, "b")), store.ApprovalDenied)
		c := d.asksToWrite("toolu_2", filepath.Join(ws, "c"))
		if got := d.allowFiles("UGRACE", v.Metadata, []string{values["a"]}, []string{values["b"], values["c"], values["d"]}); got != "1 allowed" {
			t.Errorf("sent: %s", got)
		}
		if now, err := d.books.ApprovalByID(context.Background(), c.ID); err != nil || now.Status != store.ApprovalAllowed {
			t.Errorf("the one that waits is %s (%v)", now.Status, err)
		}
		if want := []string{"Edit(c)", "Edit(d)"}; !slices.Equal(d.granted(), want) {
			t.Errorf("granted are %q, want %q", d.granted(), want)
		}
	})
}

// What somebody else has to decide about is not offered to the person who asked, also where
// they may decide about what waits.
func TestFurtherFilesOfWhoAsked(t *testing.T) {
	t.Parallel()
	ws, mayNot := t.TempDir(), false
	peers := policy.Rule{Verdict: policy.Ask, Patterns: []policy.Pattern{policy.MustParsePattern("Edit(peers/**)")}, RequesterMayApprove: &mayNot}
	atDesk(t, func(d *desk) {
		d.inWorkspace(ws, peers)
		a := d.asksFor("UGRACE", "toolu_0", filepath.Join(ws, "own.txt"))
		d.announce(
			announces("msg_1", "toolu_0", "Write", object{"file_path": filepath.Join(ws, "own.txt"), "content": "x"}),
			announces("msg_1", "toolu_1", "Write", object{"file_path": filepath.Join(ws, "peers", "a.txt"), "content": "x"}),
		)
		d.rest()
		for user, want := range map[string]bool{"UGRACE": false, "UHEIDI": true} {
			if got := d.click(user, render.ActionApproveFiles, a); got != "asked for more" || strings.Contains(d.opened(), "peers/a.txt") != want {
				t.Errorf("%s: %s, %s", user, got, d.opened())
			}
		}
	})
}

// Where the turn runs the form knows what the model has written so far: the kept conversation
// has an answer when it is whole.
func TestFurtherFilesWhileTheAnswerIsWritten(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	next := func(id, name string) string {
		return announces("msg_1", id, "Write", object{"file_path": filepath.Join(ws, name), "content": "x"})
	}
	atDesk(t, func(d *desk) {
		d.inWorkspace(ws)
		says := func(line string) {
			m, err := claude.Decode([]byte(line))
			d.must(err)
			d.turn.Content = d.turn.Content.Fold(m)
			d.show()
		}
		says(next("toolu_0", "first.txt"))
		a := d.asksToWrite("toolu_0", filepath.Join(ws, "first.txt"))
		d.rest()
		for _, step := range []struct{ says, offers, without string }{
			{announces("msg_2", "toolu_9", "Write", object{"file_path": filepath.Join(ws, "other.txt"), "content": "x"}), "first.txt", "goes on to write"},
			{next("toolu_1", "second.txt"), "1 more file*", "third.txt"},
			{next("toolu_2", "third.txt"), "2 more files*", "other.txt"},
		} {
			says(step.says)
			if got := d.click("UGRACE", render.ActionApproveFiles, a); got != "asked for more" || !strings.Contains(d.opened(), step.offers) || strings.Contains(d.opened(), step.without) {
				t.Errorf("%s: %s, %s", step.offers, got, d.opened())
			}
		}
	})
}

// An announcement that is longer than what any model writes, as something in the session may
// have put into the kept conversation, is not looked at, and what stands beside it is.
func TestFurtherFilesThatAreTooLong(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	long := object{"file_path": filepath.Join(ws, "long.txt"), "content": strings.Repeat("x", furtherBytes)}
	atDesk(t, func(d *desk) {
		d.inWorkspace(ws)
		a := d.asksToWrite("toolu_0", filepath.Join(ws, "first.txt"))
		d.announce(
			announces("msg_1", "toolu_0", "Write", object{"file_path": filepath.Join(ws, "first.txt"), "content": "x"}), announces("msg_1", "toolu_1", "Write", long),
			announces("msg_1", "toolu_2", "Write", object{"file_path": filepath.Join(ws, "short.txt"), "content": "x"}),
		)
		d.rest()
		if got := d.click("UGRACE", render.ActionApproveFiles, a); got != "asked for more" || !strings.Contains(d.opened(), "1 more file*") || !strings.Contains(d.opened(), "short.txt") {
			t.Errorf("%s, %s", got, d.opened())
		}
	})
}
