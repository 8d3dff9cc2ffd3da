package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
)

// hostile is what people and models could write to break a card.
const hostile = "<!channel> <@U0EVIL> @here ``` `x` *b* _i_ ~s~ &lt;!here&gt; <https://evil.example|a> a\u200bb \u202egnp\u202c \x1b[2K\xff"

func named(id string, a approvals.Approval) approvals.Approval {
	a.ID = id
	a.CardID = id
	return a
}

// asks are n pending requests of one turn.
func asks(n int) []approvals.Approval {
	var out []approvals.Approval
	for i := range n {
		out = append(out, named(fmt.Sprintf("%c%02dxx0123456789", 'a'+i%26, i), ask("Bash", fmt.Sprintf(`{"command":"go test ./pkg%d/...","description":"Run some tests"}`, i))))
	}
	return out
}

// worst is an approval in which everything is as long and as hostile as it gets.
func worst(i int, toolName string) approvals.Approval {
	evil := strings.Repeat(hostile, 30) // far beyond what any part of a card takes
	a := named(fmt.Sprintf("%05d", i)+strings.Repeat("i", 100), ask(toolName, `{"command":`+quoted(evil)+`,"description":`+quoted(evil)+`,"file_path":`+quoted("/"+evil)+`,"content":`+quoted(evil)+`,"x":`+quoted(evil)+`}`))
	a.Project, a.Workspace, a.DecisionReason = evil, evil, evil
	a.Terms = approvals.Terms{Rule: evil, Because: evil, Quorum: 1, Grantable: true}
	a.ExpiresAt = began.Add(time.Duration(i) * time.Hour)
	for range 100 {
		a.Risks = append(a.Risks, evil)
		a.Terms.Approvers = append(a.Terms.Approvers, approver, "S0GROUP")
	}
	return a
}

func everybodyVoted(a approvals.Approval) approvals.Approval {
	a.Terms.Quorum = 100
	for range 100 {
		a.Votes = append(a.Votes, approvals.Vote{UserID: approver, Allow: true, Via: "button", At: began})
	}
	return a
}

func cards() map[string][]approvals.Approval {
	three := asks(3)
	three[0] = decided(three[0], approvals.Allowed, approver, "button", "")
	three[1].Risks = []string{"network", "deletes"}
	three[1].Terms = approvals.Terms{
		Rule: "Bash(curl *)", Because: "the network is asked about", Grantable: true, Quorum: 1, RequesterMay: true,
		Approvers: []string{approver, "S0GROUP"}, OnTimeout: approvals.TimeoutDeny,
	}
	three[2].Terms = approvals.Terms{Rule: "default: what no rule allows is asked", Quorum: 2, Dangerous: true, RequesterMay: true}
	three[2].Votes = []approvals.Vote{{UserID: approver, Allow: true, Via: "button", At: began}}

	mixed := []approvals.Approval{
		named("e1", ask("Edit", `{"file_path":"/srv/work/app/calc.go","old_string":"a - b","new_string":"a + b"}`)),
		named("w1", ask("Write", `{"file_path":"/etc/passwd","content":`+quoted(strings.Repeat("root:x:0:0\n", 2000))+`}`)),
		named("q1", question(oneQuestion)),
		named("p1", plan("# Plan\n\n1. Read\n2. Fix")),
		decided(named("b1", ask("Bash", `{"command":"rm -rf build\nmake"}`)), approvals.Denied, approver, "modal", "Use <make clean>\nplease"),
		decided(named("b2", ask("Bash", `{"command":"ls"}`)), approvals.Expired, "", "", ""),
		decided(named("q2", question(oneQuestion)), approvals.Denied, approver, "button", ""),
		decided(named("p2", plan("x")), approvals.Cancelled, "", "", ""),
		decided(named("b3", ask("Bash", `{"command":"id"}`)), approvals.Interrupted, "", "", ""),
		decided(named("b4", ask("Bash", `{"command":"go vet"}`)), approvals.Allowed, approver, "grant", ""),
	}
	mixed[0].Workspace = "/srv/work/other"
	done := asks(3)
	for i := range done {
		done[i] = decided(done[i], approvals.Allowed, approver, "button", "")
	}
	many := asks(30)
	long := asks(4)
	long[1] = named("l1", ask("Bash", `{"command":`+quoted(strings.Repeat("echo one two three\n", 3000)+"rm -rf /")+`}`))
	long[3] = named("l3", ask("Bash", `{"command":`+quoted(strings.Repeat("echo one two three\n", 60))+`}`))
	zebra := asks(30)
	for i := range zebra {
		if i%2 == 0 {
			zebra[i] = decided(zebra[i], approvals.Allowed, approver, "button", "")
		}
	}
	var past []approvals.Approval
	for i := range 7 { // a card has eight at most
		past = append(past, decided(named(fmt.Sprint("past", i), worst(i, "Bash")), []approvals.Status{
			approvals.Allowed, approvals.Denied, approvals.Expired, approvals.Cancelled,
		}[i%4], approver, "modal", hostile))
	}
	return map[string][]approvals.Approval{
		"three": three, "mixed": mixed, "done": done, "many": many, "long": long, "zebra": zebra,
		"past": past, "past and three": append(slices.Clone(past), three...),
	}
}

func TestCardOfSeveral(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for name, list := range cards() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := render.Card(list, render.Options{})
			golden(t, "card/"+strings.ReplaceAll(name, " ", "_"), p)
			for _, problem := range checkPage(p) {
				t.Error(problem)
			}
			j.page(t, p)
			hidesNothing(t, list, p)
		})
	}
}

func TestAllOfACardsRowsFit(t *testing.T) {
	t.Parallel()
	p := render.Card(asks(render.CardRows), render.Options{})
	if strings.Contains(texts(p.Blocks), "more request") {
		t.Error("requests wait for room in an ordinary card")
	}
}

// hidesNothing makes sure that each pending request has its buttons and its whole
// input, or says how much is missing, or is one of those that wait.
func hidesNothing(t *testing.T, list []approvals.Approval, p render.Page) {
	t.Helper()
	values := map[string][]string{}
	for _, e := range elementsOf(p) {
		switch e := e.(type) {
		case *slack.ButtonBlockElement:
			for value := range strings.FieldsSeq(e.Value) {
				values[value] = append(values[value], e.ActionID)
			}
		case *slack.OverflowBlockElement:
			for _, o := range e.Options {
				action, value := view.ParseMore(o.Value)
				values[value] = append(values[value], action)
			}
		}
	}
	pending, shown := 0, 0
	for _, a := range list {
		_, has := values[a.ID]
		if a.Status != approvals.Pending {
			if has {
				t.Errorf("%s has ended and has buttons", a.ID)
			}
			continue
		}
		pending++
		if has {
			shown++
			if !slices.Contains(values[a.ID], view.ActionViewInput) || !slices.Contains(values[a.ID], view.ActionDeny) && !slices.Contains(values[a.ID], view.ActionDenyAll) {
				t.Errorf("%s lacks buttons: %v", a.ID, values[a.ID])
			}
		}
	}
	if len(values) != shown {
		t.Errorf("buttons for what is not in the list: %v", values)
	}
	waiting := 0
	raw := string(asJSON(t, p.Blocks))
	if before, _, ok := strings.Cut(raw, " more request"); ok {
		waiting = number(before[strings.LastIndexByte(before, '*'):])
	}
	if shown+waiting != pending || pending > 0 && shown == 0 {
		t.Errorf("%d pending: %d shown, %d said to wait", pending, shown, waiting)
	}
}

func TestRowsSayExactlyHowMuchTheyLeaveOut(t *testing.T) {
	t.Parallel()
	list := asks(5)
	want := 0
	for i := range list {
		command := strings.Repeat("ä", 300*(i*i+1))
		want += 300 * (i*i + 1)
		list[i].Input = []byte(`{"command":` + quoted(command) + `}`)
	}
	p := render.Card(list, render.Options{})
	if got := len([]rune(preOf(p.Blocks))) + leftOut(p.Blocks); got != want {
		t.Errorf("%d characters are shown or said to be left out, want %d", got, want)
	}
	// What is short is whole, and what is long has what the short ones do not need.
	if !strings.Contains(preOf(p.Blocks), strings.Repeat("ä", 600+1500+3000/2)) {
		t.Error("the room is not shared by need")
	}
}

func TestCardOfTheWorst(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for _, tool := range []string{"Bash", "Write", hostile} {
		for _, n := range []int{1, 2, 30} {
			var list []approvals.Approval
			for i := range n {
				a := worst(i, tool)
				if i%3 == 1 {
					a = everybodyVoted(a)
				}
				list = append(list, a)
			}
			var o render.Options
			for _, status := range []approvals.Status{approvals.Pending, approvals.Allowed, approvals.Expired} {
				for i := range list {
					if i%2 == 0 || n == 1 {
						list[i] = decided(list[i], status, approver, "modal", strings.Repeat(hostile, 100))
					}
				}
				p := render.Card(list, o)
				for _, problem := range checkPage(p) {
					t.Errorf("%s, %d, %s: %s", tool, n, status, problem)
				}
				hidesNothing(t, list, p)
				if status == approvals.Pending {
					j.page(t, p)
				}
			}
		}
	}
}

// elementsOf are the elements of a page with which people can do something, in order.
func elementsOf(p render.Page) (out []slack.BlockElement) {
	for _, b := range p.Blocks {
		switch b := b.(type) {
		case *slack.ActionBlock:
			out = append(out, b.Elements.ElementSet...)
		case *slack.SectionBlock:
			if b.Accessory != nil && b.Accessory.OverflowElement != nil {
				out = append(out, b.Accessory.OverflowElement)
			}
		}
	}
	return out
}

// actionsOf are the action ids of a card's buttons, in order.
func actionsOf(p render.Page) []string {
	var out []string
	for _, e := range elementsOf(p) {
		switch e := e.(type) {
		case *slack.ButtonBlockElement:
			out = append(out, e.ActionID)
		case *slack.CheckboxGroupsBlockElement:
			out = append(out, e.ActionID)
		case *slack.OverflowBlockElement:
			for _, o := range e.Options {
				action, _ := view.ParseMore(o.Value)
				out = append(out, action)
			}
		}
	}
	return out
}

func TestButtonsFollowTheTerms(t *testing.T) {
	t.Parallel()
	once := []string{"approve", "deny", "edit_input", "deny_reason", "view_input"}
	fixed := []string{"approve", "deny", "deny_reason", "view_input"}
	all := []string{"approve", "deny", "always", "edit_input", "deny_reason", "view_input"}
	ofFile := render.Options{OneFile: func(approvals.Approval) string { return "src/a.go" }}
	for _, c := range []struct {
		name  string
		terms approvals.Terms
		o     render.Options
		want  []string
	}{
		{"nothing said", approvals.Terms{}, render.Options{}, once},
		{"grantable", approvals.Terms{Grantable: true, Quorum: 1}, render.Options{}, all},
		{"two people", approvals.Terms{Grantable: true, Quorum: 2}, render.Options{}, once},
		{"dangerous", approvals.Terms{Grantable: true, Dangerous: true}, render.Options{}, fixed},
		{"not to be changed", approvals.Terms{Fixed: true}, render.Options{}, fixed},
		{"of one file", approvals.Terms{Grantable: true, Quorum: 1}, ofFile, slices.Insert(slices.Clone(all), 2, "edits_below")},
	} {
		a := ask("Bash", `{"command":"ls"}`)
		a.Terms = c.terms
		if diff := cmp.Diff(c.want, actionsOf(render.Card([]approvals.Approval{a}, c.o))); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		both := render.Card([]approvals.Approval{a, named("other", ask("Bash", `{"command":"ls"}`))}, c.o)
		want := append(slices.Clone(c.want), once...)
		if !c.terms.Dangerous { // one block of buttons for both
			want = append(slices.Clone(c.want[2:]), once[2:]...)
			want = append(want, "tick", "approve_ticked", "deny_all")
		}
		if diff := cmp.Diff(want, actionsOf(both)); diff != "" {
			t.Errorf("%s, in a row: %s", c.name, diff)
		}
	}
}

// said is all mrkdwn of a page.
func said(p render.Page) string {
	var b strings.Builder
	for _, block := range p.Blocks {
		switch block := block.(type) {
		case *slack.SectionBlock:
			b.WriteString(block.Text.Text + "\n")
		case *slack.ContextBlock:
			for _, e := range block.ContextElements.Elements {
				b.WriteString(e.(*slack.TextBlockObject).Text + "\n")
			}
		}
	}
	return b.String()
}

func TestPendingCardSaysHowItIsDecided(t *testing.T) {
	t.Parallel()
	a := ask("Bash", `{"command":"ls"}`)
	a.Risks = []string{"network", "runs as root"}
	a.DecisionReason = "Claude's own"
	a.Terms = approvals.Terms{Rule: "Bash(sudo *)", Because: "root is asked about", Quorum: 2, Approvers: []string{approver, "S0GROUP"}, Dangerous: true}
	a.Votes = []approvals.Vote{{UserID: approver, Allow: true}}
	for _, list := range [][]approvals.Approval{{a}, {a, named("x", a)}} {
		got := said(render.Card(list, render.Options{}))
		for _, want := range []string{
			"⚠️ *network · runs as root*", "rule `Bash(sudo *)`: root is asked about", "Claude Code says: Claude's own",
			"*1 of 2 approved*: <@U0APPROVER>", "to be decided by <@U0APPROVER>, <!subteam^S0GROUP>, not by the person who asked",
			"<!date^1772636531^{date_short_pretty} {time}|4 Mar 2026 15:02 UTC>; then work pauses", "`approve 7K2QX`",
			"asked by <@U0ASKER>",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%d in the card: %q is not said:\n%s", len(list), want, got)
			}
		}
	}
	a.Terms = approvals.Terms{RequesterMay: true, OnTimeout: approvals.TimeoutDeny, Quorum: 2}
	a.Votes = nil
	got := said(render.Card([]approvals.Approval{a}, render.Options{}))
	for want, there := range map[string]bool{
		"*2 people have to approve*": true, "then it counts as denied": true, "`approve 7K2QX`": true, "person who asked": false,
	} {
		if strings.Contains(got, want) != there {
			t.Errorf("%q: want %v:\n%s", want, there, got)
		}
	}
}

// A notification reaches people who may not decide, too: it says who does.
func TestANotificationSaysWhoDecides(t *testing.T) {
	t.Parallel()
	a := ask("Bash", `{"command":"ls"}`)
	question := ask("AskUserQuestion", `{"questions":[{"question":"Which?","options":[{"label":"a"},{"label":"b"}]}]}`)
	question.Kind = approvals.Question
	two := a
	two.Terms.Quorum = 2
	names := map[string]string{"U0ADA": "Ada", "U0LINUS": "Linus\n<!here>"}
	for want, c := range map[string]struct {
		list          []approvals.Approval
		mention, sent []string
		isCopy        bool
	}{
		"<@U0GRACE> decides with the buttons, or replies “approve 7K2QX” or “deny 7K2QX”.":   {list: []approvals.Approval{a}, mention: []string{"U0GRACE"}},
		"<@U0GRACE> or Ada decides with the buttons, or replies":                             {list: []approvals.Approval{a}, mention: []string{"U0GRACE"}, sent: []string{"U0ADA"}},
		"Linus &lt;!here&gt; decides with the buttons":                                       {list: []approvals.Approval{a}, sent: []string{"U0LINUS"}},
		"<@U0GRACE> answers with the buttons, or replies “deny 7K2QX” to skip.":              {list: []approvals.Approval{question}, mention: []string{"U0GRACE"}},
		"Ada decides with the buttons, or replies with the words in brackets":                {list: []approvals.Approval{a, named("x", a)}, sent: []string{"U0ADA"}},
		"Whoever may approve decides with the buttons, or replies with the words in bracket": {list: []approvals.Approval{a, named("x", two)}, sent: []string{"U0ADA"}},
		"\nWhoever may approve decides with the buttons, or replies “approve 7K2QX”":         {list: []approvals.Approval{two}, sent: []string{"U0ADA"}},
		"\nWhoever may approve decides with the buttons, or replies “approve":                {list: []approvals.Approval{a}, sent: []string{"U0ADA", "U0LINUS", "U0GRACE"}},
		"\nWhoever may approve decides with the buttons, or replies":                         {list: []approvals.Approval{a}, sent: []string{"U0NEW"}},
		"\nDecide with the buttons.":                                                         {list: []approvals.Approval{a}, isCopy: true},
	} {
		of := func(ids []string) func(approvals.Approval) []string {
			return func(approvals.Approval) []string { return ids }
		}
		p := render.Card(c.list, render.Options{Calling: &view.Calling{
			Mention: of(c.mention), Sent: of(c.sent), Copy: c.isCopy, Name: func(id string) string {
				if name := names[id]; name != "" {
					return name
				}
				return id
			},
		}})
		if !strings.Contains(p.Text, want) {
			t.Errorf("want %q:\n%s", want, p.Text)
		}
	}
}

// TestADecidedCardIsALine: who decided, what, and why not; nothing of the card is left.
func TestADecidedCardIsALine(t *testing.T) {
	t.Parallel()
	quorum := func(a approvals.Approval) approvals.Approval {
		a.Terms.Quorum = 2
		a.Votes = []approvals.Vote{{UserID: asker, Allow: true}, {UserID: approver, Allow: true}}
		return a
	}
	one := ask("Bash", `{"command":"ls"}`)
	denied := quorum(decided(one, approvals.Denied, approver, "button", ""))
	denied.Votes[1].Allow = false
	late := quorum(decided(one, approvals.Expired, "", "", ""))
	late.Votes = late.Votes[:1]
	changed := decided(one, approvals.Allowed, approver, "modal", "")
	changed.Edited = approvals.Edited{Times: 1, Input: []byte(`{"command":"ls -l"}`), By: approver}
	byAnother := changed
	byAnother.Edited.By = asker
	question := ask("AskUserQuestion", `{"questions":[{"question":"Which?","options":[{"label":"a"},{"label":"b"}]}]}`)
	question.Kind, question.Answer = approvals.Question, []byte(`{"answers":{"Which?":"a"}}`)
	host := ask("SandboxNetworkAccess", `{"host":"registry.npmjs.org","port":443}`)
	for _, c := range []struct {
		name string
		a    approvals.Approval
		want string
	}{
		{"approved", decided(one, approvals.Allowed, approver, "button", ""), "✅ `ls` · approved by <@U0APPROVER>"},
		{"two", quorum(decided(one, approvals.Allowed, approver, "button", "")), "✅ `ls` · approved by <@U0ASKER> and <@U0APPROVER>"},
		{"changed", changed, "✅ `ls -l` · changed and approved by <@U0APPROVER>"},
		{"changed by another", byAnother, "✅ `ls -l` · changed by <@U0ASKER>, approved by <@U0APPROVER>"},
		{"denied", decided(one, approvals.Denied, approver, "button", "Not on\na Friday."), "🚫 ~`ls`~ · denied by <@U0APPROVER>\n> Not on\n> a Friday."},
		{"denied after one", denied, "🚫 ~`ls`~ · denied by <@U0APPROVER>"},
		{"expired", decided(one, approvals.Expired, "", "", ""), "⌛ ~`ls`~ · expired: nobody decided in time"},
		{"one was not enough", late, "⌛ ~`ls`~ · expired: nobody decided in time (1 of 2 had approved: <@U0ASKER>)"},
		{"cancelled", decided(one, approvals.Cancelled, "", "", ""), "⏹️ ~`ls`~ · cancelled: the turn was stopped"},
		{"interrupted", decided(one, approvals.Interrupted, "", "", ""), "🔌 ~`ls`~ · interrupted: the session ended before anybody decided"},
		{"answered", decided(question, approvals.Allowed, approver, "button", ""), "✅ “Which?” → *a* · answered by <@U0APPROVER>"},
		{"skipped", decided(question, approvals.Denied, approver, "button", ""), "🚫 ~Question `Which?`~ · skipped by <@U0APPROVER>"},
		{"a host", decided(host, approvals.Allowed, approver, "button", ""), "✅ Reach `registry.npmjs.org:443` · approved by <@U0APPROVER>"},
		{"a host, too late", decided(host, approvals.Cancelled, "", "", ""), "⏹️ ~Reach `registry.npmjs.org:443`~ · cancelled: the turn ended"},
	} {
		if got := said(render.Card([]approvals.Approval{c.a}, render.Options{})); got != c.want+"\n" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := said(render.Card([]approvals.Approval{c.a, one}, render.Options{})); !strings.Contains(got, "*1* · "+c.want) {
			t.Errorf("%s, in a row: %q is not said:\n%s", c.name, c.want, got)
		}
	}
}

func TestVotesChangeTheBlockIDs(t *testing.T) {
	t.Parallel()
	a := ask("Bash", `{"command":"ls"}`)
	a.Terms.Quorum = 2
	ids := func() (out []string) {
		for _, b := range render.Card([]approvals.Approval{a}, render.Options{}).Blocks {
			out = append(out, b.ID())
		}
		return out
	}
	before := ids()
	a.Votes = []approvals.Vote{{UserID: approver, Allow: true}}
	for _, id := range ids() {
		if slices.Contains(before, id) {
			t.Errorf("block %s is the same before and after a vote", id)
		}
	}
}

// That a file is outside the workspace is said once, and of what is not a file's as well.
func TestOutsideIsSaidOnce(t *testing.T) {
	t.Parallel()
	a := ask("Write", `{"file_path":"/etc/passwd","content":"x"}`)
	a.Terms = approvals.Terms{Rule: "default: what no rule allows is asked", Because: "/etc/passwd is outside the workspace"}
	if said := texts(render.Card([]approvals.Approval{a}, render.Options{}).Blocks); strings.Count(said, "outside the workspace") != 1 || !strings.Contains(said, "/etc/passwd") {
		t.Errorf("a file: %s", said)
	}
	a = ask("Read", `{"file_path":"/etc/passwd","limit":5}`)
	a.Terms = approvals.Terms{Rule: "default: reading outside the workspace is asked", Because: "/etc/passwd is outside the workspace"}
	page := render.Card([]approvals.Approval{a}, render.Options{})
	if said := texts(page.Blocks); strings.Contains(said, "passwd is outside") || strings.Count(said, "/etc/passwd") != 1 || !strings.Contains(said, "limit: 5") || !strings.HasPrefix(page.Text, "Read `/etc/passwd`") {
		t.Errorf("a file that is read: %s; %s", said, page.Text)
	}
	a = ask("mcp__x__y", `{}`)
	a.Terms = approvals.Terms{Rule: "default: what no rule allows is asked", Because: "/etc/passwd is outside the workspace"}
	if said := texts(render.Card([]approvals.Approval{a}, render.Options{}).Blocks); !strings.Contains(said, "/etc/passwd is outside the workspace") {
		t.Errorf("another tool: %s", said)
	}
}

// A card is about what is asked: that no rule allows it needs no words, a default that is
// not everybody's has its own, and a project has a name, so its folder needs none.
func TestACardDoesNotSayWhatIsPlain(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"default: what no rule allows is asked":           "",
		"default: it asks a person by its nature":         "",
		"default: reading outside the workspace is asked": "Reading outside the workspace is asked.",
		"Bash(make *)": "rule `Bash(make *)`",
	} {
		a := asks(1)[0]
		a.Terms.Rule, a.DecisionReason = rule, ""
		if !strings.HasPrefix(rule, "Bash") {
			a.Terms.Because = "no rule allows make x; Bash(make x) would allow just this"
			if all := string(asJSON(t, render.ApprovalInput(a, 0, render.Options{}))); !strings.Contains(all, "would allow just this") {
				t.Errorf("%s: the whole request does not say which rule would allow it: %s", rule, all)
			}
		}
		got := string(asJSON(t, render.Card([]approvals.Approval{a}, render.Options{})))
		for _, word := range []string{"default", "no rule allows", a.Workspace} {
			if strings.Contains(got, word) {
				t.Errorf("%s: the card says %q", rule, word)
			}
		}
		if !strings.Contains(got, want) || want == "" && strings.Contains(got, "is asked") {
			t.Errorf("%s: no %q in %s", rule, want, got)
		}
	}
}

// What can be decided together is ticked, and is what the buttons are about.
func TestABatchIsWhatItShows(t *testing.T) {
	t.Parallel()
	for name, list := range cards() {
		var refs, offered []string
		shown := said(render.Card(list, render.Options{}))
		for i, a := range list {
			if render.InBatch(a) && strings.Contains(shown, fmt.Sprintf("*%d · ", i+1)) {
				refs = append(refs, view.Ref(a))
			}
		}
		if len(refs) < 2 {
			refs = nil
		}
		for _, b := range render.Card(list, render.Options{}).Blocks {
			actions, ok := b.(*slack.ActionBlock)
			if !ok {
				continue
			}
			tick, ok := actions.Elements.ElementSet[0].(*slack.CheckboxGroupsBlockElement)
			if !ok || tick.ActionID != view.ActionTick {
				continue
			}
			for _, o := range tick.Options {
				offered = append(offered, o.Value)
			}
			if len(tick.InitialOptions) != len(tick.Options) {
				t.Errorf("%s: %d of %d are ticked", name, len(tick.InitialOptions), len(tick.Options))
			}
		}
		for _, e := range elementsOf(render.Card(list, render.Options{})) {
			if b, ok := e.(*slack.ButtonBlockElement); ok && (b.ActionID == view.ActionApproveTicked || b.ActionID == view.ActionDenyAll) &&
				(b.Value != strings.Join(offered, " ") || len(b.Value) > 2000) {
				t.Errorf("%s: a button is about %q", name, b.Value)
			}
		}
		if !slices.Equal(offered, refs) {
			t.Errorf("%s: %q are offered, want %q", name, offered, refs)
		}
	}
}
