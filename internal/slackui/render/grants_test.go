package render_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/slack-go/slack"

	"deckhand/internal/agent/policy"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/redact"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
	"deckhand/internal/store/approvals"
)

var allScopes = []approvals.GrantScope{approvals.GrantSession, approvals.GrantThread, approvals.GrantChannel, approvals.GrantProject}

func offers() []view.GrantOffer {
	return []view.GrantOffer{
		{Sentence: "Allows `go test ./...`, exactly as shown."},
		{Pattern: "Bash(go test *)", Label: "any go test", Sentence: "Allows go test with any arguments, in the workspace."},
		{Pattern: "Bash(go test *)"},
		{Pattern: "Bash(" + strings.Repeat("very-long-word ", 20) + "*)", Label: "a long one", Sentence: strings.Repeat("It allows a lot. ", 300)},
		{Pattern: "Bash(" + strings.Repeat("very-long-word ", 1000) + "*)"},
		{Pattern: "Bash(echo `x` \u202e*)", Label: hostile, Sentence: hostile},
		{Label: hostile, Sentence: hostile},
		{Pattern: "Bash(" + strings.Repeat("<&>", 30) + ")"},
		{},
		{Label: "the tenth"},
		{Label: "the eleventh, which is not shown"},
	}
}

// texts is all text of blocks, joined.
func texts(blocks []slack.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		switch block := block.(type) {
		case *slack.SectionBlock:
			b.WriteString(block.Text.Text + "\n")
		case *slack.ContextBlock:
			for _, e := range block.ContextElements.Elements {
				b.WriteString(e.(*slack.TextBlockObject).Text + "\n")
			}
		case *slack.RichTextBlock:
			b.WriteString(preOf([]slack.Block{block}))
		}
	}
	return b.String()
}

// The form about edits below a folder starts with that rule, in the thread, for an hour.
func TestEditsBelow(t *testing.T) {
	t.Parallel()
	list := []view.GrantOffer{{Pattern: "Edit(src/a.go)"}, {Pattern: "Edit(src/**)"}, {Pattern: "Edit(**)"}}
	v := render.GrantModal(ask("Write", `{"file_path":"/srv/work/app/src/a.go"}`), list, allScopes, true, render.Options{})
	var started []string
	for _, b := range v.Blocks.BlockSet {
		if input, ok := b.(*slack.InputBlock); ok {
			switch e := input.Element.(type) {
			case *slack.RadioButtonsBlockElement:
				started = append(started, e.InitialOption.Value[:2])
			case *slack.SelectBlockElement:
				started = append(started, e.InitialOption.Value)
			}
		}
	}
	if want := []string{"1:", "thread", "1h"}; !slices.Equal(started, want) {
		t.Errorf("it starts with %q, want %q", started, want)
	}
	for name, want := range map[string]string{"src/deep/a.go": "Edits below src/deep/…", "a.go": "Edits to this file…", strings.Repeat("d/", 60) + "a": "Edits below its folder…"} {
		a := ask("Write", `{"file_path":"/srv/work/app/`+name+`"}`)
		a.Terms = approvals.Terms{Grantable: true, Quorum: 1}
		o := render.Options{OneFile: func(approvals.Approval) string { return name }}
		if got := string(asJSON(t, render.Card([]approvals.Approval{a}, o))); !strings.Contains(got, want) {
			t.Errorf("%s: no %q in %s", name, want, got)
		}
	}
}

func TestGrantModal(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for name, v := range map[string]slack.ModalViewRequest{
		"grant":          render.GrantModal(ask("Bash", `{"command":"go test ./..."}`), offers()[:2], allScopes, false, render.Options{}),
		"grant hard":     render.GrantModal(worst(1, "Bash"), offers(), allScopes, false, render.Options{}),
		"grant no offer": render.GrantModal(ask("Bash", `{"command":"ls"}`), nil, allScopes, false, render.Options{}),
		"grant no scope": render.GrantModal(ask("Bash", `{"command":"ls"}`), offers(), nil, false, render.Options{}),
	} {
		if !strings.Contains(name, "hard") {
			golden(t, "modal/"+strings.ReplaceAll(name, " ", "_"), v)
		}
		for _, problem := range checkModal(v) {
			t.Errorf("%s: %s", name, problem)
		}
		j.modal(t, v)
	}
}

func TestGrantModalShowsEachRuleWhole(t *testing.T) {
	t.Parallel()
	v := render.GrantModal(ask("Bash", `{"command":"ls"}`), offers(), allScopes, false, render.Options{})
	got := texts(v.Blocks.BlockSet)
	for i, o := range offers()[:10] {
		if !strings.Contains(got, fmt.Sprintf("*Rule %d*", i+1)) {
			t.Errorf("rule %d is not there", i+1)
		}
		for _, want := range []string{o.Pattern, strings.TrimSpace(o.Sentence)} {
			want = strings.ReplaceAll(plaintext.Visible(want), "@here", "@\u200bhere")
			plain := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(got)
			if len(want) < 8000 && !strings.Contains(plain, want) && !strings.Contains(got, want) {
				t.Errorf("rule %d is not shown whole: %q", i+1, want)
			}
		}
	}
	if !strings.Contains(got, "more characters* do not fit here") {
		t.Error("what is cut is not counted")
	}
	if strings.Contains(got, "eleventh") {
		t.Error("an eleventh rule is shown, which cannot be chosen")
	}
}

// untouched is the state of a modal that is submitted as it opened.
func untouched(v slack.ModalViewRequest) state {
	out := state{}
	for _, b := range v.Blocks.BlockSet {
		input, ok := b.(*slack.InputBlock)
		if !ok {
			continue
		}
		var initial *slack.OptionBlockObject
		switch e := input.Element.(type) {
		case *slack.RadioButtonsBlockElement:
			initial = e.InitialOption
		case *slack.SelectBlockElement:
			initial = e.InitialOption
		}
		if initial != nil {
			out[input.BlockID] = map[string]view.Input{input.BlockID: {Chosen: []string{initial.Value}}}
		}
	}
	return out
}

func TestParseGrant(t *testing.T) {
	t.Parallel()
	v := render.GrantModal(ask("Bash", `{"command":"ls"}`), offers(), allScopes, false, render.Options{})
	got, err := view.ParseGrant(untouched(v))
	if err != nil {
		t.Fatal(err)
	}
	want := view.GrantChoice{Scope: approvals.GrantSession, For: 24 * time.Hour} // not the seven days that the form begins with
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(view.GrantChoice{})); diff != "" {
		t.Error(diff)
	}
	if offer, err := got.Of(offers()); err != nil || offer != offers()[0] {
		t.Errorf("%+v, %v", offer, err)
	}
	var wrong *view.AnswerError
	for _, other := range [][]view.GrantOffer{nil, offers()[1:], {{Sentence: "Allows everything."}}} {
		if _, err := got.Of(other); !errors.As(err, &wrong) {
			t.Errorf("an offer that was not shown is taken: %v", err)
		}
	}

	// Every choice that is offered is understood.
	for _, b := range v.Blocks.BlockSet {
		input, ok := b.(*slack.InputBlock)
		if !ok {
			continue
		}
		var options []*slack.OptionBlockObject
		switch e := input.Element.(type) {
		case *slack.RadioButtonsBlockElement:
			options = e.Options
		case *slack.SelectBlockElement:
			options = e.Options
		}
		for _, option := range options {
			s := untouched(v)
			s[input.BlockID][input.BlockID] = view.Input{Chosen: []string{option.Value}}
			if _, err := view.ParseGrant(s); err != nil {
				t.Errorf("%s = %s: %v", input.BlockID, option.Value, err)
			}
		}
		for _, value := range []string{"", "x", "99:00", "-1:00", "1", "forever", "session "} {
			s := untouched(v)
			s[input.BlockID][input.BlockID] = view.Input{Chosen: []string{value}}
			if c, err := view.ParseGrant(s); !errors.As(err, &wrong) {
				t.Errorf("%s = %q is taken as %+v", input.BlockID, value, c)
			}
		}
	}
	if _, err := view.ParseGrant(nil); !errors.As(err, &wrong) {
		t.Error(err)
	}
}

func TestConfirmModal(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	danger := ask("Bash", `{"command":"sudo rm -rf /srv/data","timeout":5}`)
	danger.Risks = []string{"runs as root", "deletes"}
	danger.Terms = approvals.Terms{Rule: "Bash(sudo *)", Because: "root", Dangerous: true, Quorum: 2}
	for name, a := range map[string]approvals.Approval{
		"confirm": danger, "confirm hard": worst(1, hostile), "confirm long": ask("Write", `{"file_path":"/x","content":`+quoted(mrkdwntest.Prose(150_000)+"THE END")+`}`),
	} {
		v := render.ConfirmModal(a, render.Options{})
		if name == "confirm" {
			golden(t, "modal/confirm", v)
		}
		for _, problem := range checkModal(v) {
			t.Errorf("%s: %s", name, problem)
		}
		j.modal(t, v)
	}
	content := mrkdwntest.Prose(150_000)
	v := render.ConfirmModal(ask("Odd", `{"content":`+quoted(content)+`}`), render.Options{})
	got := texts(v.Blocks.BlockSet)
	left := number(between(got, "⚠️ … *", " more characters*"))
	if shown := len([]rune(preOf(v.Blocks.BlockSet))); shown+left != len([]rune(content)) || left == 0 {
		t.Errorf("%d characters are shown and %d said to be left out, of %d", shown, left, len([]rune(content)))
	}

	ticked := func(value string) state {
		return state{view.ConfirmBox: {view.ConfirmBox: {Chosen: []string{value}}}}
	}
	if !view.ParseConfirm(ticked("yes")) || view.ParseConfirm(ticked("no")) || view.ParseConfirm(nil) {
		t.Error("the box is not read as it was ticked")
	}
}

func grantLines(n int) []view.GrantLine {
	var out []view.GrantLine
	for i := range n {
		g := approvals.Grant{
			ID: int64(i + 1), TeamID: "T1", Project: "app", Scope: allScopes[i%4], ChannelID: "C0DEV", ToolName: "Bash", Pattern: fmt.Sprintf("Bash(go test ./pkg%d *)", i),
			CreatedBy: approver, CreatedAt: began, ExpiresAt: began.Add(24 * time.Hour), Uses: int64(i % 3 * 700), LastUsedAt: began,
		}
		if i%5 == 0 {
			g.Pattern = ""
		}
		out = append(out, view.GrantLine{Grant: g, Link: "https://example.slack.com/archives/C1/p1?a=1&b=2", MayRevoke: i%2 == 0})
	}
	return out
}

func hostileGrant() view.GrantLine {
	evil := strings.Repeat(hostile, 100)
	return view.GrantLine{MayRevoke: true, Link: "javascript:" + evil, Grant: approvals.Grant{
		ID: 1, Project: evil, Scope: approvals.GrantScope(evil), ChannelID: evil, ToolName: evil, Pattern: "Bash(" + evil + ")", CreatedBy: evil, RevokedBy: "",
	}}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	revoked := grantLines(1)
	revoked[0].Grant.RevokedBy = approver
	for name, v := range map[string]view.Grants{
		"grants": {Lines: grantLines(6)}, "grants none": {}, "grants careful": {Posture: policy.Careful}, "grants contained": {Posture: policy.Contained}, "grants many": {Lines: grantLines(500), More: 20}, "grants revoked": {Lines: revoked},
		"grants hostile": {Lines: []view.GrantLine{hostileGrant(), hostileGrant()}},
	} {
		p := render.Grants(v)
		golden(t, "view/"+strings.ReplaceAll(name, " ", "_"), p)
		for _, problem := range checkPage(p) {
			t.Errorf("%s: %s", name, problem)
		}
		j.page(t, p)
		shown, more, buttons := 0, 0, 0
		for _, b := range p.Blocks {
			if s, ok := b.(*slack.SectionBlock); ok && strings.HasPrefix(s.Text.Text, "*Allows*") {
				shown++
				if s.Accessory != nil {
					buttons++
					if got, want := s.Accessory.ButtonElement.Value, fmt.Sprint(v.Lines[shown-1].Grant.ID); got != want || !v.Lines[shown-1].MayRevoke {
						t.Errorf("%s: a button for grant %s in the line of %s", name, got, want)
					}
				}
			}
		}
		if said := texts(p.Blocks); strings.Contains(said, "… and ") {
			more = number(between(said, "… and ", " more"))
		}
		if shown+more != len(v.Lines)+v.More {
			t.Errorf("%s: %d shown and %d more of %d", name, shown, more, len(v.Lines)+v.More)
		}
		if name == "grants" && buttons != 3 {
			t.Errorf("%d buttons", buttons)
		}
	}
}

func TestReminder(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	a := ask("Bash", `{"command":"go vet ./...\nrm -rf build"}`)
	a.Risks = []string{"deletes"}
	a.Terms = approvals.Terms{Quorum: 2, RequesterMay: true}
	const link = "https://example.slack.com/archives/C1/p1"
	for name, v := range map[string]view.Reminder{
		"reminder":           {Approval: a, Link: link, To: []string{approver, "S0GROUP"}},
		"reminder escalated": {Approval: a, Link: link, To: []string{"S0GROUP"}, Escalation: true},
		"reminder nobody":    {Approval: question(oneQuestion)},
		"reminder plan":      {Approval: plan("x"), Link: link, Escalation: true},
		"reminder hard":      {Approval: worst(1, "Bash"), Link: "https://example.slack.com/" + hostile, To: []string{hostile, approver}},
	} {
		p := render.Reminder(v)
		if name != "reminder hard" {
			golden(t, "view/"+strings.ReplaceAll(name, " ", "_"), p)
		}
		for _, problem := range checkPage(p) {
			t.Errorf("%s: %s", name, problem)
		}
		j.page(t, p)
		if len(actionsOf(p)) > 0 {
			t.Errorf("%s: a reminder has buttons, but does not show what they would decide", name)
		}
	}
}

func TestApprovalReport(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	stats := func(name string, n int64) approvals.Stats {
		return approvals.Stats{Name: name, Asked: 4 * n, Allowed: 2 * n, Denied: n, Expired: n, Quick: n / 2, Median: time.Duration(n) * time.Second, P95: time.Duration(n) * time.Minute}
	}
	many := func(n int, name string) (out []approvals.Stats) {
		for i := range n {
			out = append(out, stats(name, int64(i)))
		}
		return out
	}
	for name, v := range map[string]struct {
		period string
		report approvals.Report
	}{
		"approvals": {"the last 30 days", approvals.Report{
			Total: stats("", 40), ByPerson: []approvals.Stats{stats(approver, 30), stats(asker, 10)},
			ByRule: []approvals.Stats{stats("Bash(curl *)", 39), stats("", 1)},
		}},
		"approvals none": {period: "today"},
		"approvals many": {hostile, approvals.Report{Total: stats("", 1_000_000), ByPerson: many(80, approver), ByRule: many(80, strings.Repeat(hostile, 20))}},
	} {
		p := render.ApprovalReport(v.period, v.report)
		golden(t, "view/"+strings.ReplaceAll(name, " ", "_"), p)
		for _, problem := range checkPage(p) {
			t.Errorf("%s: %s", name, problem)
		}
		j.page(t, p)
		table := p.Blocks[1].(*slack.TableBlock)
		if name == "approvals many" {
			raw := string(asJSON(t, table))
			named := strings.Count(raw, approver)
			if more := number(between(raw, "… and ", " more")); named+more != 80 || named == 0 {
				t.Errorf("%d people shown and %d more", named, more)
			}
		}
	}
}

func TestGrantsAndRemindersRedact(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	redact := redact.New(secret).Redact
	o := render.Options{Redact: redact}
	a := ask("Bash", `{"command":"curl -u x:`+secret+`","description":"`+secret+`","long":"`+strings.Repeat("x", 90)+" "+secret+strings.Repeat("x", 90)+`"}`)
	a.Risks, a.Project, a.Workspace = []string{secret}, secret, "/"+secret
	a.Terms = approvals.Terms{Rule: secret, Because: secret, Grantable: true}
	line := view.GrantLine{MayRevoke: true, Grant: approvals.Grant{Pattern: "Bash(" + secret + ")", ToolName: secret, Project: secret}}
	offer := view.GrantOffer{Pattern: secret, Label: secret, Sentence: secret}
	for name, v := range map[string]any{
		"card":     render.Card([]approvals.Approval{a}, o),
		"rows":     render.Card([]approvals.Approval{a, decided(a, approvals.Denied, approver, "modal", secret), a}, o),
		"grant":    render.GrantModal(a, []view.GrantOffer{offer, {Label: secret}}, allScopes, false, o),
		"confirm":  render.ConfirmModal(a, o),
		"grants":   render.Grants(view.Grants{Lines: []view.GrantLine{line}, Redact: redact}),
		"reminder": render.Reminder(view.Reminder{Approval: a, Redact: redact}),
		"home":     render.Home(view.Home{Waiting: []view.HomeApproval{{Approval: a}}, Grants: []view.GrantLine{line}, Redact: redact}),
	} {
		if raw := string(asJSON(t, v)); strings.Contains(raw, "hunter2") {
			t.Errorf("%s: a secret got out: %s", name, raw)
		}
	}
}
