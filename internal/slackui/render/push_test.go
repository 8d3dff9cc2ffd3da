package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/chat/view"
	"deckhand/internal/redact"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/forges"
)

func push(p forges.Push) approvals.Approval {
	a := ask("Bash", `{"command":"git push origin HEAD:deckhand/boats"}`)
	a.Push, a.Terms = &p, approvals.Terms{Quorum: 1, RequesterMay: true, Fixed: true}
	return a
}

func onePush() forges.Push {
	return forges.Push{
		Repository: "git.example/boats",
		Refs: []forges.PushRef{{
			Name: "refs/heads/deckhand/boats", Old: strings.Repeat("0", 40), New: strings.Repeat("ab", 20),
			Commits: forges.PushCommits{Count: 8, Some: []forges.PushCommit{{ID: strings.Repeat("ab", 20), Author: "Ada <ada@example.com>", Subject: "<!channel> `fix` *all*"}}},
			Files: []forges.PushFile{
				{Path: ".github/workflows/ci.yml", Orders: true, Status: "M", Added: 3, Removed: 1},
				{Path: "boats.js", Status: "A", Added: 12},
				{Path: "logo.png", Status: "M", Binary: true},
				{Path: "to", Kind: "link", Status: "A", Added: 1, To: "/etc/passwd"},
				{Path: "sub", Kind: "submodule", Status: "M", From: strings.Repeat("c", 40), To: strings.Repeat("d", 40)},
				{Path: "config", Kind: "link", Was: "file", Status: "T", Removed: 9, To: "../secret"},
				{Path: "run.sh", Kind: "program", Was: "file", Status: "M"},
				{Path: "gone", Kind: "link", Status: "D", From: "boats.js"},
			},
			Orders: 1, More: 392, Added: 16, Removed: 1, Diff: "diff --git a/boats.js b/boats.js\n+one\n", Cut: true,
		}},
		Ran: []forges.PushRan{{Command: "npm test"}, {Command: "npm run lint", Failed: true}}, CostMicroUSD: 412_000,
	}
}

// A push's card says what leaves: the files that give orders first, then the commits and the
// rest, in bounds, and nothing in them is markup.
func TestPushCard(t *testing.T) {
	t.Parallel()
	page := render.Card([]approvals.Approval{push(onePush())}, render.Options{Redact: redact.New().Redact})
	shown := texts(page.Blocks)
	at := -1
	for _, want := range []string{
		"Push 8 commits", "deckhand/boats", "1 file that gives orders", ".github/workflows/ci.yml", "&lt;!channel&gt;", "Ada &lt;ada@example.com&gt;", "7 more commits",
		"400 files, +16 −1", "boats.js", "logo.png", "(binary)", "(link to `/etc/passwd`, new)", "(submodule at `dddddddddd`, before at `cccccccccc`)",
		"(link to `../secret`, was a file)", "(program, was a file, +0 −0)", "(link to `boats.js`, deleted)", "and 392 more", "View all", "✅", "npm test", "❌", "npm run lint", "This thread has cost $0.41 so far",
	} {
		i := strings.Index(shown, want)
		if i < 0 {
			t.Errorf("it does not say %q:\n%s", want, shown)
		}
		if i < at && strings.HasPrefix(want, ".github") {
			t.Errorf("%q comes too late", want)
		}
		at = i
	}
	if strings.Contains(shown, "<!channel>") || strings.Contains(shown, "edit_input") {
		t.Error(shown)
	}
	whole := fmt.Sprint(texts(render.ApprovalInput(push(onePush()), 0, render.Options{}).Blocks.BlockSet))
	for _, want := range []string{"diff --git", "the diff is longer", "deckhand/boats: new branch: " + strings.Repeat("ab", 20), "sub (submodule at " + strings.Repeat("d", 40) + ", before at " + strings.Repeat("c", 40) + ")"} {
		if !strings.Contains(whole, want) {
			t.Errorf("View all lacks %q:\n%s", want, whole)
		}
	}
	pushed := onePush()
	pushed.Refs[0].Old = pushed.Refs[0].New
	diff := texts(render.TurnDiff(1, &pushed, 0, render.Options{}).Blocks.BlockSet)
	if want := "pushed already, compared with the default branch: " + pushed.Refs[0].New; !strings.Contains(diff, want) || strings.Contains(diff, "→") {
		t.Errorf("the window of the diff does not say %q:\n%s", want, diff)
	}
}

// What is lost is said in the headline, in a list and at the second step; what could not be
// looked at is said, too.
func TestPushCardThatLoses(t *testing.T) {
	t.Parallel()
	p := onePush()
	p.Refs[0].Lost = forges.PushCommits{Count: 3, Some: []forges.PushCommit{{ID: "cdcdcdcdcdcdcd", Author: "Grace <g@example.com>", Subject: "keep *me*"}}}
	a := push(p)
	a.Input = []byte(`{"command":"git push --force origin HEAD:deckhand/boats"}`)
	a.Terms.Dangerous = true
	if shown := texts(render.Card([]approvals.Approval{a}, render.Options{}).Blocks); !strings.Contains(shown, "rewrites history, 3 commits are lost") || !strings.Contains(shown, "keep *me*") || !strings.Contains(shown, "Grace") {
		t.Error(shown)
	}
	loses, word := view.Dangers(a, func(s string) string { return s })
	want := "A forced push throws away the commits of the remote branch that are not in what is pushed. 3 commits are lost: “keep *me*” by Grace <g@example.com>, 2 more."
	if diff := cmp.Diff(want, loses); diff != "" || word != "force-push" {
		t.Error(word, diff)
	}
	unknown := push(forges.Push{Unknown: "It took more than 5 s.", CostMicroUSD: 10_000})
	if shown := texts(render.Card([]approvals.Approval{unknown}, render.Options{}).Blocks); !strings.Contains(shown, "What will be pushed is not known") || !strings.Contains(shown, "more than 5 s") || !strings.Contains(shown, "has cost $0.01 so far") {
		t.Error(shown)
	}
}

// The largest push that is kept fits into a message and into what View all opens, and what
// there is no room for is counted.
func TestTheLargestPushFits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<&`日😀", 40)
	ref := onePush().Refs[0]
	ref.Name, ref.Files, ref.Commits.Some, ref.More = "refs/heads/deckhand/"+strings.Repeat("b", 230), nil, nil, 4800
	for range 50 {
		ref.Commits.Some = append(ref.Commits.Some, forges.PushCommit{ID: strings.Repeat("ab", 20), Author: long, Subject: long})
	}
	for i := range 200 {
		ref.Files = append(ref.Files, forges.PushFile{Path: fmt.Sprint(i, long), Orders: i < 100, Status: "M", Kind: "link", From: long, To: long + "x"})
	}
	ref.Commits.Count = 3000
	ref.Lost, ref.Orders, ref.Diff = ref.Commits, 2000, strings.Repeat("+"+long+"\n", 64<<10/len(long))
	p := forges.Push{Repository: "git.example/boats"}
	for range 9 {
		p.Refs = append(p.Refs, ref)
	}
	for range 3 {
		p.Ran = append(p.Ran, forges.PushRan{Command: long})
	}
	for _, quorum := range []int{1, 2} {
		a := push(p)
		a.Terms.Quorum, a.Terms.Dangerous, a.Title = quorum, true, long
		page := render.Card([]approvals.Approval{a}, render.Options{Redact: redact.New().Redact})
		for _, problem := range checkPage(page) {
			t.Error(problem)
		}
		shown := texts(page.Blocks)
		for _, want := range []string{"2,000 files that give orders to others", "3,000 commits are lost", "5,000 files", "4 more branches", "8,000 files that give orders to others", "This thread has cost"} {
			if !strings.Contains(shown, want) {
				t.Errorf("it does not say %q:\n%s", want, shown)
			}
		}
	}
	var whole string
	for _, n := range []int{0, 1 << 20} {
		page := render.ApprovalInput(push(p), n, render.Options{})
		for _, problem := range checkModal(page) {
			t.Errorf("page %d: %s", n, problem)
		}
		whole = fmt.Sprint(texts(page.Blocks.BlockSet))
	}
	if !strings.Contains(whole, "the diff is longer: the rest is not kept here") {
		t.Errorf("the last page does not say that there is more:\n%.2000s", whole)
	}
}

// The files that give orders come before all else, of whichever branch they are.
func TestOrdersOfAnyBranchComeFirst(t *testing.T) {
	t.Parallel()
	p := onePush()
	quiet := p.Refs[0]
	quiet.Files, quiet.Orders = quiet.Files[1:], 0
	for i := range 7 {
		quiet.Name = fmt.Sprintf("refs/heads/deckhand/q%d", i)
		p.Refs = append([]forges.PushRef{quiet}, p.Refs...)
	}
	shown := texts(render.Card([]approvals.Approval{push(p)}, render.Options{}).Blocks)
	orders, others := strings.Index(shown, "`deckhand/boats`: *1 file that gives orders"), strings.Index(shown, "boats.js")
	if orders < 0 || others < orders || !strings.Contains(shown, "3 more branches") {
		t.Errorf("orders at %d, others at %d:\n%s", orders, others, shown)
	}
}

// TestAChangeByFolder: the window of a change of many files begins with a picture of where its lines are.
func TestAChangeByFolder(t *testing.T) {
	t.Parallel()
	var files []forges.PushFile
	for i := range 4 {
		files = append(files, forges.PushFile{Path: fmt.Sprintf("src/web/%d.js", i), Added: 30, Removed: 10}, forges.PushFile{Path: fmt.Sprintf("src/lib/a/%d.go", i), Removed: 4})
	}
	diff := func(files []forges.PushFile, more int) string {
		p := forges.Push{Refs: []forges.PushRef{{Name: "refs/heads/deckhand/1", New: strings.Repeat("a", 40), Files: files, More: more}}}
		page := render.TurnDiff(1, &p, 0, render.Options{})
		for _, problem := range checkModal(page) {
			t.Error(problem)
		}
		return texts(page.Blocks.BlockSet)
	}
	shown := diff(append(files, forges.PushFile{Path: "src/README.md", Binary: true}), 0)
	picture := strings.Repeat("+", 15) + strings.Repeat("−", 5) + "  +120 −40  4 files  src/web\\n" +
		"−−                    +0 −16  4 files  src/lib\\n" +
		"                      +0 −0  1 file  src/."
	if !strings.Contains(strings.ReplaceAll(shown, "\n", `\n`), picture) {
		t.Errorf("no picture:\n%s", shown)
	}
	if shown := diff(files, 9); !strings.Contains(shown, "By folder, of the first 8 files") {
		t.Errorf("what the picture leaves out is not said:\n%s", shown)
	}
	for i := range 30 {
		files = append(files, forges.PushFile{Path: fmt.Sprintf("d%02d/x", i), Added: 30})
	}
	if shown := diff(files, 0); !strings.Contains(shown, "+570 −0  19 files  elsewhere") {
		t.Errorf("the folders behind the first have no line:\n%s", shown)
	}
	var one []forges.PushFile
	for i := range 9 {
		one = append(one, forges.PushFile{Path: fmt.Sprint("src/", i), Added: 1})
	}
	for what, few := range map[string][]forges.PushFile{"few files": files[:7], "one folder": one} {
		if shown := diff(few, 0); strings.Contains(shown, "By folder") {
			t.Errorf("%s have a picture:\n%s", what, shown)
		}
	}
}
