package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/redact"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/threads"
)

func ask(toolName, input string) approvals.Approval {
	return approvals.Approval{
		ID: "7k2qxwerty0123456789", Input: json.RawMessage(input),
		Request: approvals.Request{Kind: approvals.Tool, RequestID: "r1", ToolUseID: "toolu_1", ToolName: toolName, CreatedAt: began, ExpiresAt: began.Add(time.Hour)},
		Outcome: approvals.Outcome{Status: approvals.Pending},
		Origin: approvals.Origin{
			ThreadKey: threads.ThreadKey{TeamID: "T1", ChannelID: "C0DEV", ThreadTS: "1.0"},
			Project:   "app", Workspace: "/srv/work/app", RequestedBy: asker,
		},
	}
}

func decided(a approvals.Approval, s approvals.Status, by, via, reason string) approvals.Approval {
	a.Status, a.DecidedBy, a.DecidedVia, a.Reason, a.DecidedAt = s, by, via, reason, began.Add(time.Minute)
	return a
}

func host(name, reason string) approvals.Approval {
	a := ask("SandboxNetworkAccess", `{"host":`+quoted(name)+`,"port":443}`)
	a.DecisionReason = reason
	a.Terms = approvals.Terms{Rule: "default: a host that network: does not list is asked", Grantable: true, Quorum: 1, RequesterMay: true}
	return a
}

func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

const oneQuestion = `{"questions":[{"question":"Which library should we use?","header":"Library","multiSelect":false,"options":[{"label":"pgx","description":"Fast, Postgres only"},{"label":"database/sql","description":"The standard"}]}]}`

func question(input string) approvals.Approval {
	a := ask("AskUserQuestion", input)
	a.Kind = approvals.Question
	return a
}

func plan(text string) approvals.Approval {
	a := ask("ExitPlanMode", `{"plan":`+quoted(text)+`}`)
	a.Kind = approvals.Plan
	return a
}

func exampleApprovals() map[string]approvals.Approval {
	bash := ask("Bash", `{"command":"go test ./...","description":"Run the tests","timeout":120000}`)
	bash.DecisionReason = "This command requires approval"
	bash.Terms.Rule = "Bash(go *)"
	unseen := ask("ExitPlanMode", `{}`)
	unseen.Kind = approvals.Plan
	out := map[string]approvals.Approval{
		"bash":             bash,
		"bash approved":    decided(bash, approvals.Allowed, approver, "button", ""),
		"bash by reply":    decided(bash, approvals.Allowed, approver, "command", ""),
		"bash by rule":     decided(bash, approvals.Allowed, "rule", "rule", ""),
		"bash denied":      decided(bash, approvals.Denied, approver, "modal", "Use `make test` <instead>\n<!channel>"),
		"bash expired":     decided(bash, approvals.Expired, "", "timeout", ""),
		"bash cancelled":   decided(bash, approvals.Cancelled, "", "", ""),
		"bash interrupted": decided(bash, approvals.Interrupted, "", "", ""),
		"bash long":        ask("Bash", `{"command":`+quoted(strings.Repeat("echo one two three\n", 300)+"rm -rf /")+`}`),
		"bash breakout":    ask("Bash", `{"command":"echo '`+"```"+`' <!channel> <@U123> & \u003c/pre\u003e","run_in_background":true,"dangerouslyDisableSandbox":true}`),
		"bash deceiving":   ask("Bash", `{"command":`+quoted("echo \u202egnp.exe\u202c a\u200bb\rrm -rf ~\x1b[2K\u00a0x; cаt y"+strings.Repeat(" ", 80)+"; id")+`,"description":"Prints\u202e"}`),
		"bash empty":       ask("Bash", `{"command":""}`),
		"edit":             ask("Edit", `{"file_path":"/srv/work/app/calc.go","old_string":"func Add(a, b int) int {\n\treturn a - b\n}\n","new_string":"func Add(a, b int) int {\n\treturn a + b\n}\n","replace_all":true}`),
		"edit outside":     ask("Edit", `{"file_path":"/srv/work/app/../../etc/passwd","old_string":"a","new_string":"a\n"}`),
		"edit odd name":    ask("Write", `{"file_path":"/srv/work/app/a  b\n\tc\u202e ","content":"x"}`),
		"edit long name":   ask("Write", `{"file_path":"/srv/work/app/`+strings.Repeat("deep/", 100)+`x","content":"x"}`),
		"write":            ask("Write", `{"file_path":"/srv/work/app/new.txt","content":"one\ntwo\n"}`),
		"write empty":      ask("Write", `{"file_path":"/srv/work/app/new.txt","content":""}`),
		"notebook":         ask("NotebookEdit", `{"notebook_path":"n.ipynb","cell_id":"c1","cell_type":"code","edit_mode":"replace","new_source":"print(1)"}`),
		"host":             host("registry.npmjs.org", "while this ran: Bash: npm install left-pad\nrm -rf node_modules"),
		"host approved":    decided(host("registry.npmjs.org", "while this ran: Bash: npm install"), approvals.Allowed, approver, "button", ""),
		"host cancelled":   decided(host("registry.npmjs.org", ""), approvals.Cancelled, "", "", ""),
		"host expired":     decided(host("registry.npmjs.org", ""), approvals.Expired, "", "", ""),
		"host imitating":   host("xn--pple-43d.com", "by a program in the background, while no tool use of this turn ran"),
		"host by address":  host("2606:4700::1111", "while this ran: Bash: echo `<!channel>` \u202e*x*"),
		"host long":        host(strings.Repeat("a23456789.", 25)+"com", "while one of these ran: Bash: a | Bash: "+strings.Repeat("b", 3000)),
		"host not read":    ask("SandboxNetworkAccess", `{"host":"<!here>","port":"443"}`),
		"mcp":              ask("mcp__prod__restart", `{"service":"api","force":true,"note":"<!here> `+strings.Repeat("x", 300)+`"}`),
		"web":              ask("WebFetch", `{"url":"https://example.com/?q=1&r=2","prompt":"Read it"}`),
		"many fields":      ask("Bash", `{"command":"ls",`+strings.Join(manyFields(40), ",")+`}`),
		"not an object":    ask("Odd", `"just a string"`),
		"strange edit":     ask("Edit", `{"file_path":7,"old_string":null}`),
		"case tricks":      ask("Bash", `{"command":"rm -rf /","Command":"ls","COMMAND":"ls"}`),
		"repeated key":     ask("Bash", `{"command":"ls","command":"rm -rf /"}`),
		"question":         question(oneQuestion),
		"questions": question(`{"questions":[{"question":"Which <ones>?","header":"Pick","multiSelect":true,"options":[{"label":"a","description":""},{"label":"` + strings.Repeat("long ", 30) + `","description":"` + strings.Repeat("long ", 30) + `"},{"label":"c"}]},
			{"question":"And which *one*?","header":"","multiSelect":false,"options":[` + strings.Join(options(12), ",") + `]}]}`),
		"question broken": question(`{"questions":"?"}`),
		"plan":            plan("# Plan\n\n1. Read `calc.go`\n2. Fix *Add*\n\n- [ ] tell <!channel>\n"),
		"plan long":       plan(mrkdwntest.Prose(20_000)),
		"plan approved":   decided(plan("# Plan\n\nDo it."), approvals.Allowed, approver, "button", ""),
		"plan empty":      plan(""),
		"plan unseen":     unseen,
		"plan file":       ask("Write", `{"file_path":"/home/bot/.claude/plans/quiet-otter.md","content":"# Plan\n"}`),
	}
	for name, b := range map[string]*approvals.Before{"ran": {Ended: &began}, "failed": {Ended: &began, Failed: true}, "cut": {Changed: true}} {
		a := bash
		a.Before, b.Approved = b, began
		out["bash before "+name] = a
	}
	behind := ask("Bash", `{"command":"make serve","run_in_background":true}`)
	behind.Before = &approvals.Before{Approved: began, Ended: &began}
	out["bash before behind"] = behind
	answered := decided(question(oneQuestion), approvals.Allowed, approver, "button", "")
	answered.Answer = json.RawMessage(`{"questions":[],"answers":{"Which library should we use?":"pgx"}}`)
	out["question answered"] = answered
	out["question skipped"] = decided(question(oneQuestion), approvals.Denied, approver, "button", "")
	return out
}

func manyFields(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"key%d":%q`, i, strings.Repeat("v", 90)))
	}
	return out
}

func options(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`{"label":"option %d","description":"d%d"}`, i, i))
	}
	return out
}

func TestApproval(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for name, a := range exampleApprovals() {
		t.Run(name, func(t *testing.T) {
			p := render.Card([]approvals.Approval{a}, render.Options{})
			golden(t, "approval/"+strings.ReplaceAll(name, " ", "_"), p)
			for _, problem := range checkPage(p) {
				t.Error(problem)
			}
			j.page(t, p)
			buttons := strings.Contains(string(asJSON(t, p)), `"type": "button"`)
			if pending := a.Status == approvals.Pending; buttons != pending {
				t.Errorf("buttons: %v, pending: %v", buttons, pending)
			}
			word := "approve"
			if a.Kind == approvals.Question {
				word = "deny"
			}
			if a.Status == approvals.Pending && !strings.Contains(string(asJSON(t, p)), word+" 7K2QX") {
				t.Error("the card does not say how to decide with a reply")
			}
		})
	}
}

// preOf joins the preformatted texts.
func preOf(blocks []slack.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		r, ok := block.(*slack.RichTextBlock)
		if !ok {
			continue
		}
		for _, e := range r.Elements {
			if pre, ok := e.(*slack.RichTextPreformatted); ok {
				for _, e := range pre.Elements {
					b.WriteString(e.(*slack.RichTextSectionTextElement).Text)
				}
			}
		}
	}
	return b.String()
}

// leftOut is how many characters the blocks say that they leave out.
func leftOut(blocks []slack.Block) int {
	n := 0
	for _, block := range blocks {
		if r, ok := block.(*slack.RichTextBlock); ok {
			for _, e := range r.Elements {
				if s, ok := e.(*slack.RichTextSection); ok {
					n += number(s.Elements[1].(*slack.RichTextSectionTextElement).Text)
				}
			}
		}
	}
	return n
}

func TestCardSaysExactlyHowMuchItLeavesOut(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2799, 2800, 2801, 5000, 40_000} {
		command := strings.Repeat("ä", n-8) + "rm -rf /"
		a := ask("Bash", `{"command":`+quoted(command)+`}`)
		p := render.Card([]approvals.Approval{a}, render.Options{})
		shown := preOf(p.Blocks)
		left := leftOut(p.Blocks)
		if got := len([]rune(shown)) + left; got != n {
			t.Errorf("%d characters: %d shown and %d left out", n, len([]rune(shown)), left)
		}
		if !strings.HasSuffix(shown, "rm -rf /") {
			t.Errorf("%d characters: the end is not shown", n)
		}
		if n <= 2800 && left != 0 {
			t.Errorf("%d characters: not shown whole", n)
		}
	}
}

func TestWholeInputIsInTheModal(t *testing.T) {
	t.Parallel()
	content := mrkdwntest.Prose(120_000) + "\u202eTHE END"
	a := ask("Write", `{"file_path":"/a b","content":`+quoted(content)+`,"n":{"x":[1,2]}}`)
	var all strings.Builder
	pages := 0
	for page := 0; ; {
		v := render.ApprovalInput(a, page, render.Options{})
		for _, problem := range checkView(v.Blocks.BlockSet) {
			t.Error(problem)
		}
		if mrkdwntest.Units(v.PrivateMetadata) > 3000 || mrkdwntest.Units(v.Title.Text) > 24 {
			t.Error("metadata or title too long")
		}
		all.WriteString(preOf(v.Blocks.BlockSet))
		pages++
		next := ""
		for _, b := range v.Blocks.BlockSet {
			if actions, ok := b.(*slack.ActionBlock); ok {
				for _, e := range actions.Elements.ElementSet {
					if btn := e.(*slack.ButtonBlockElement); btn.ActionID == view.ActionViewPage+":next" {
						next = btn.Value
					}
				}
			}
		}
		if next == "" {
			break
		}
		p, ok := view.ParseInputPage(next)
		if !ok || p.ApprovalID != a.ID || p.Page != page+1 {
			t.Fatalf("next page: %+v, %v", p, ok)
		}
		page = p.Page
	}
	if pages < 2 {
		t.Errorf("%d pages", pages)
	}
	want := "/a b" + strings.ReplaceAll(content, "\u202e", "⟨U+202E⟩") + "{\n  \"x\": [\n    1,\n    2\n  ]\n}"
	if all.String() != want {
		t.Errorf("the modal does not show the whole input: %d of %d characters", all.Len(), len(want))
	}
}

func TestModals(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]slack.ModalViewRequest{
		"input":           render.ApprovalInput(ask("Bash", `{"command":"ls\nrm","timeout":5}`), 0, render.Options{}),
		"input odd":       render.ApprovalInput(ask("Odd", `[]`), 7, render.Options{}),
		"input empty":     render.ApprovalInput(ask("Odd", `{}`), -1, render.Options{}),
		"input long":      render.ApprovalInput(ask("Bash", `{"command":`+quoted(mrkdwntest.Prose(100_000))+`}`), 1, render.Options{}),
		"deny":            render.DenyReason(ask("Bash", `{"command":"ls"}`), render.Options{}),
		"deny plan":       render.DenyReason(plan("x"), render.Options{}),
		"answer":          render.AnswerOther(question(oneQuestion), render.Options{}),
		"answer unusable": render.AnswerOther(question(`{}`), render.Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, "modal/"+strings.ReplaceAll(name, " ", "_"), v)
			for _, problem := range checkView(v.Blocks.BlockSet) {
				t.Error(problem)
			}
		})
	}
}

func TestCardRedacts(t *testing.T) {
	t.Parallel()
	o := render.Options{Redact: redact.New("hunter2hunter2").Redact}
	a := ask("Bash", `{"command":"curl -u x:hunter2hunter2 https://example.com","description":"hunter2hunter2","env":"hunter2hunter2"}`)
	a.DecisionReason, a.Terms.Rule = "hunter2hunter2", "hunter2hunter2"
	all := string(asJSON(t, render.Card([]approvals.Approval{a}, o))) + string(asJSON(t, render.ApprovalInput(a, 0, o))) + string(asJSON(t, render.DenyReason(a, o)))
	all += string(asJSON(t, render.Card([]approvals.Approval{decided(a, approvals.Denied, approver, "modal", "hunter2hunter2")}, o)))
	if strings.Contains(all, "hunter2") {
		t.Errorf("a secret got out:\n%s", all)
	}
	if !strings.Contains(all, "Secrets in it are shown as") {
		t.Error("the card does not say that something is hidden")
	}
}

func FuzzCard(f *testing.F) {
	for _, a := range exampleApprovals() {
		f.Add(string(a.Kind), a.ToolName, []byte(a.Input), a.Reason, uint8(3))
	}
	f.Fuzz(func(t *testing.T, kind, toolName string, input []byte, words string, n uint8) {
		if !json.Valid(input) {
			t.Skip() // the CLI's line was JSON
		}
		a := ask(toolName, string(input))
		a.Kind, a.DecisionReason, a.Project, a.Workspace = approvals.Kind(kind), words, words, words
		a.Terms = approvals.Terms{Rule: words, Because: words, Quorum: int(n % 3), Grantable: n&4 != 0, Dangerous: n&8 != 0}
		a.Risks = []string{words, words}
		var o render.Options
		var list []approvals.Approval
		for i, s := range []approvals.Status{approvals.Pending, approvals.Allowed, approvals.Denied, approvals.Pending, approvals.Expired} {
			a.ID = fmt.Sprint("id", i)
			a.Status, a.Reason, a.DecidedBy, a.Answer = s, words, approver, input
			list = append(list, a)
			for _, problem := range checkPage(render.Card([]approvals.Approval{a}, o)) {
				t.Error(problem)
			}
		}
		for range n % 20 {
			a.ID += "x"
			a.Status = approvals.Pending
			list = append(list, a)
		}
		for _, problem := range checkPage(render.Card(list, o)) {
			t.Error(problem)
		}
		for _, problem := range checkPage(render.Reminder(view.Reminder{Approval: a, To: []string{approver}, Link: words})) {
			t.Error(problem)
		}
		offers := []view.GrantOffer{{Label: words, Sentence: words}, {Pattern: words, Label: words, Sentence: words}, {Pattern: toolName}}
		for _, v := range []slack.ModalViewRequest{
			render.ApprovalInput(a, 0, o), render.DenyReason(a, o), render.AnswerOther(a, o), render.ConfirmModal(a, o),
			render.GrantModal(a, offers, []approvals.GrantScope{approvals.GrantProject}, false, o),
		} {
			for _, problem := range checkModal(v) {
				t.Error(problem)
			}
		}
	})
}

// A plan that fits before it is made safe, and not after it.
func TestAPlanThatGrowsWhenItIsCleaned(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"<!here> ", "[", "&lt;<", "@here ", "<!here>\n"} {
		for n := 1000; n < 8000; n += 350 {
			p := render.Card([]approvals.Approval{plan(strings.Repeat(piece, n/len(piece)))}, render.Options{})
			for _, problem := range checkPage(p) {
				t.Errorf("%d of %q: %s", n, piece, problem)
			}
		}
	}
}

// The window counts each field for itself, and names those of Claude Code's own tools in words.
func TestTheWholeInputIsNamedAndCounted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool, input string
		want        []string
	}{
		{"Bash", `{"command":"npm test -- --bail=yes","run_in_background":true,"odd":[1]}`, []string{"*Bash* · All of it.", "*Command* · 22 characters", "*Goes on in the background*", "yes", "*`odd`*"}},
		{"mcp__tracker__search", `{"command":"x","query":"y"}`, []string{"*tracker · search* · All of it.", "*`command`* · 1 character", "*`query`* · 1 character"}},
	} {
		got := fmt.Sprint(texts(render.ApprovalInput(ask(c.tool, c.input), 0, render.Options{}).Blocks.BlockSet))
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in %s", c.tool, want, got)
			}
		}
	}
}
