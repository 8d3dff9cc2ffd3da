package trust_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/agent/trust"
)

func TestRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, kind string
		files      map[string]string
		want       []trust.Entry
		unusable   []string
	}{
		{"a command with front matter", trust.Commands, map[string]string{
			".claude/commands/fix.md": "---\ndescription: Fix an issue\nargument-hint: [issue] [priority]\nallowed-tools: Bash(*)\nmodel: opus\n---\nFix $1 @here !`id`\n",
		}, []trust.Entry{{Name: "fix", Path: ".claude/commands/fix.md", Description: "Fix an issue", Hint: "[issue] [priority]", Model: "opus", Body: "Fix $1 @here !`id`\n"}}, nil},
		{
			"a command of a folder, without front matter", trust.Commands,
			map[string]string{".claude/commands/web/check.md": "# Check it\nAll of it."},
			[]trust.Entry{{Name: "web:check", Path: ".claude/commands/web/check.md", Description: "Check it", Body: "# Check it\nAll of it."}},
			nil,
		},
		{
			"the folder that sessions work in is nearer", trust.Commands,
			map[string]string{".claude/commands/fix.md": "top", "services/web/.claude/commands/fix.md": "web"},
			[]trust.Entry{{Name: "fix", Path: "services/web/.claude/commands/fix.md", Description: "web", Body: "web"}},
			[]string{".claude/commands/fix.md"},
		},
		{
			"no names", trust.Commands,
			map[string]string{".claude/commands/-x.md": "a", ".claude/commands/ü.md": "a", ".claude/commands/empty.md": "---\ndescription: x\n---\n \n"},
			nil,
			[]string{".claude/commands/-x.md", ".claude/commands/empty.md", ".claude/commands/ü.md"},
		},
		{
			"an agent", trust.Agents,
			map[string]string{".claude/agents/check.md": "---\nname: checker\ndescription: >\n  Checks\n  with care\ntools:\n  - Read\n  - Grep\nhooks: x\n---\r\nYou check."},
			[]trust.Entry{{Name: "checker", Path: ".claude/agents/check.md", Description: "Checks with care", Tools: []string{"Read", "Grep"}, Body: "You check."}},
			nil,
		},
		{
			"a skill and its files", trust.Skills,
			map[string]string{".claude/skills/pdf/SKILL.md": "---\nname: other\ndescription: Reads PDF\n---\nRun it.", ".claude/skills/pdf/ref.md": "more"},
			[]trust.Entry{{Name: "pdf", Path: ".claude/skills/pdf/SKILL.md", Description: "Reads PDF", Body: "Run it."}},
			nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			entries, unusable := trust.Read(tt.kind, tt.files)
			if diff := cmp.Diff(tt.want, entries); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.unusable, unusable); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"All: $ARGUMENTS.":      "All: 12 $2.",
		"One: $1, two: $2, $3.": "One: 12, two: $2, .",
		"None.":                 "None.\n\nARGUMENTS: 12 $2",
	} {
		got := trust.Entry{Name: "fix", Path: ".claude/commands/fix.md", Body: body}.Expand("12 $2")
		if _, text, _ := strings.Cut(got, "]\n"); text != want || strings.HasPrefix(got, "/") {
			t.Errorf("%q gives %q, want %q", body, got, want)
		}
	}
}

func TestSumAndDiff(t *testing.T) {
	t.Parallel()
	a, b := map[string]string{"a": "bc"}, map[string]string{"ab": "c"}
	if trust.Sum(a) == trust.Sum(b) || trust.Sum(a) != trust.Sum(map[string]string{"a": "bc"}) || trust.Sum(nil) == trust.Sum(a) {
		t.Error("sums do not tell files apart")
	}
	if got := trust.Diff(map[string]string{"x.md": "one\n", "gone.md": "old\n"}, map[string]string{"x.md": "two\n"}); !strings.Contains(got, "-old") || !strings.Contains(got, "-one\n+two") {
		t.Error(got)
	}
	if got := trust.Diff(nil, map[string]string{"new.md": "new\n"}); !strings.Contains(got, "+new") {
		t.Error(got)
	}
}

// FuzzRead: what any file says gives names that can be written, and no panic.
func FuzzRead(f *testing.F) {
	f.Add("---\nname: x\n---\nbody")
	f.Add("---\n---")
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range trust.Kinds {
			entries, _ := trust.Read(kind, map[string]string{fmt.Sprintf(".claude/%s/x.md", kind): text, fmt.Sprintf(".claude/%s/y/SKILL.md", kind): text})
			for _, e := range entries {
				if strings.ContainsAny(e.Name, " \n`<@/") {
					t.Errorf("the name %q", e.Name)
				}
			}
		}
	})
}
