package policy

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// Texts for calls that no rule decides.
const (
	defaultAsked    = "default: what no rule allows is asked"
	defaultOutside  = "default: reading outside the workspace is asked"
	defaultSecret   = "default: reading a file that looks like a secret is asked"
	defaultRead     = "default: reading inside the workspace is allowed"
	defaultOwnState = "default: the agent's own bookkeeping is allowed"
	defaultPersonal = "default: it asks a person by its nature"
	defaultChanged  = "default: what the model is told of this tool has changed since it was allowed"
	defaultWithheld = "default: a tool that is not offered is denied"
)

// Told is a decision's Rule for the people who are asked. It is empty for the default that only says that they are
// asked.
func Told(rule string) (said string, isRule bool) {
	said, isDefault := strings.CutPrefix(rule, "default: ")
	if rule == defaultAsked || rule == defaultPersonal {
		said = ""
	}
	return said, !isDefault && rule != ""
}

// noRule begins a Why that only says that no rule allows the call, and which would.
const noRule = "no rule allows "

// ForRules reports whether a decision's Why is for the authors of rules: it says that none allows the call, and
// which would.
func ForRules(why string) bool { return strings.HasPrefix(why, noRule) }

// finding is the rules' answer for one part of a call.
type finding struct {
	verdict Verdict
	rule    *Rule // nil for a default
	text    string
	why     string
}

// Decide decides a call. It resolves symbolic links but changes and stores nothing, and is safe for concurrent use.
// It never panics: see Decision.Fault.
func (p *Policy) Decide(c Call) (d Decision) {
	defer func() {
		if fault := faultOf(recover()); fault != "" {
			d = p.afterFault(&c, fault)
		}
	}()
	return p.decide(&c)
}

// faultOf describes a recovered panic and its place; empty for none. Every entry to this package that reads a call
// recovers, so that no input of the model ends the bot or is allowed by a panic.
func faultOf(recovered any) string {
	if recovered == nil {
		return ""
	}
	return fmt.Sprintf("%v\n%s", recovered, debug.Stack())
}

// afterFault asks about a call that could not be read, under the strictest terms of all rules that may apply.
func (p *Policy) afterFault(c *Call, fault string) Decision {
	d := Decision{Verdict: Ask, Rule: defaultAsked, Why: "Deckhand failed while reading it, so no rule has decided (see its log)", Fault: fault}
	var asked []Rule
	for i := range p.Rules {
		if r := &p.Rules[i]; r.Verdict == Ask && r.holds(c) {
			asked = append(asked, *r)
		}
	}
	p.settle(&d, asked)
	return d
}

func (p *Policy) decide(c *Call) Decision {
	if tools[c.Tool].does == isWithheld {
		d := Decision{Verdict: Deny, Rule: defaultWithheld, Why: "it makes no sense in a thread"}
		p.settle(&d, nil)
		return d
	}
	req := readCall(c)
	var out Decision
	var asked []Rule
	var allowedBy []string
	quiet := true // only units that decide nothing by themselves
	for i := range req.parts() {
		silent := req.silent(i)
		f := p.part(req, i, silent)
		if silent && f.verdict == Allow {
			continue
		}
		quiet = false
		out.Contained = out.Contained || f.text == containedRuns
		if f.verdict == Allow && f.rule != nil {
			if s := f.rule.String(); !slices.Contains(allowedBy, s) {
				allowedBy = append(allowedBy, s)
			}
		}
		out.take(f, &asked)
	}
	if quiet {
		f := p.part(req, 0, false)
		out.Contained = f.text == containedRuns
		out.take(f, &asked)
	}
	out.Contained = out.Contained && out.Verdict == Allow
	if out.Verdict == Allow && len(allowedBy) > 1 {
		out.Rule = strings.Join(allowedBy, "; ")
	}
	if c.Changed && out.Verdict == Allow {
		out = Decision{Verdict: Ask, Rule: defaultChanged}
	}
	p.settle(&out, asked)
	out.Terms.Dangerous = out.Terms.Dangerous || out.Verdict == Ask && len(req.dangers()) > 0
	out.Grantable = out.Verdict == Ask && !out.Terms.Dangerous && out.Terms.Quorum <= 1 && !personal[req.call.Tool] && !ownExits[req.call.Tool] && req.coverable()
	return out
}

// take makes the decision at least as strict as a finding.
func (d *Decision) take(f finding, asked *[]Rule) {
	if f.verdict == Ask && f.rule != nil {
		*asked = append(*asked, *f.rule)
	}
	stricter := d.Verdict == "" || f.verdict.Stricter(d.Verdict)
	// Among questions, that of a rule comes before the default's.
	if !stricter && !(f.verdict == Ask && d.Verdict == Ask && f.rule != nil && len(*asked) == 1) {
		if d.Why == "" && f.verdict == d.Verdict && d.Verdict == Ask {
			d.Why = f.why
		}
		return
	}
	d.Verdict, d.Rule, d.Why, d.Source, d.because = f.verdict, f.text, f.why, "", ""
	if f.rule != nil {
		d.Source, d.because = f.rule.Source, f.rule.Because
	}
}

// settle fills in the terms of a decision. If several rules ask about a command's parts, the strictest of each term
// holds, and the approvers are those named by all: adding a harmless command to a guarded one changes nobody.
func (p *Policy) settle(d *Decision, asked []Rule) {
	d.Terms = p.Default.normal()
	if d.Verdict != Ask {
		d.Terms.Because = d.because
		return
	}
	for i, r := range asked {
		t := r.Terms(p.Default).normal()
		if i == 0 {
			d.Terms = t
			continue
		}
		if len(d.Terms.Approvers) == 0 {
			d.Terms.Approvers = t.Approvers
		} else if len(t.Approvers) > 0 {
			both := slices.DeleteFunc(slices.Clone(d.Terms.Approvers), func(a string) bool { return !slices.Contains(t.Approvers, a) })
			if len(both) == 0 {
				d.Verdict, d.Terms.Because = Deny, ""
				d.Why = "its parts are asked of different people (" + asked[0].String() + "; " + r.String() + "), so nobody could decide about all of it: run them one by one"
				return
			}
			d.Terms.Approvers = both
		}
		d.Terms.Quorum = max(d.Terms.Quorum, t.Quorum)
		d.Terms.Dangerous = d.Terms.Dangerous || t.Dangerous
		d.Terms.Fixed = d.Terms.Fixed || t.Fixed
		d.Terms.RequesterMayApprove = d.Terms.RequesterMayApprove && t.RequesterMayApprove
		d.Terms.Timeout = min(d.Terms.Timeout, t.Timeout)
		if t.OnTimeout == DenyOnTimeout {
			d.Terms.OnTimeout = t.OnTimeout
		}
		if t.Because != "" && t.Because != d.Terms.Because {
			d.Terms.Because = strings.TrimSpace(d.Terms.Because + " " + t.Because)
		}
	}
}

// silent reports whether a part decides nothing by itself: a cd inside the workspace, what a wrapper holds, reading
// a readable file. Rules may still deny it or ask.
func (req *request) silent(i int) bool {
	if req.script == nil || len(req.script.units) == 0 {
		return false
	}
	u := &req.script.units[i]
	return u.neutral || u.nested
}

// part returns the rules' answer for one part. A silent part is allowed unless a rule denies or asks.
func (p *Policy) part(req *request, i int, silent bool) finding {
	always := personal[req.call.Tool]
	var why, doubt string
	for k := range p.Rules {
		r := &p.Rules[k]
		if !r.holds(req.call) {
			continue
		}
		for j := range r.Patterns {
			pat := &r.Patterns[j]
			if r.Verdict == Allow {
				if silent && !always {
					if req.coversSilent(pat, i) {
						return finding{Allow, r, "", ""}
					}
					continue
				}
				ok, w := req.covers(pat, i)
				switch {
				case ok && always:
					return finding{Ask, nil, defaultPersonal, "no rule answers for a person"}
				case ok && doubt == "":
					return finding{Allow, r, r.Verdict.of(pat), ""}
				case why == "":
					why = w
				}
				continue
			}
			switch hit, d := req.strikes(pat, i); {
			case hit && r.Verdict == Ask:
				return finding{Ask, r, r.Verdict.of(pat), first(doubt, why)}
			case hit:
				return finding{Deny, r, r.Verdict.of(pat), req.whichPart(i)}
			case d != "" && doubt == "":
				doubt = d + ", which " + r.Verdict.of(pat) + " is about"
			}
		}
	}
	switch {
	case doubt != "":
		return finding{Ask, nil, defaultAsked, doubt}
	case silent:
		return finding{Allow, nil, "", ""}
	case p.contained(req):
		return finding{Allow, nil, containedRuns, ""}
	}
	f := req.fallback(i, why)
	if f.verdict == Ask && f.text == defaultAsked && p.Postures.Of(req.call.Project, req.call.Channel) == Contained {
		f.text = containedAsked
	}
	return f
}

func (v Verdict) of(p *Pattern) string { return string(v) + " " + p.text }

// first is the first of the texts that is not empty.
var first = cmp.Or[string]

// fallback applies where no rule decides.
func (req *request) fallback(i int, why string) finding {
	tool := req.call.Tool
	if req.isEffect(i) {
		why = "" // of a rule for files, which is not the one to write
	}
	ask := func(text string) finding {
		return finding{Ask, nil, text, first(why, req.bad, req.odd, req.trouble(i))}
	}
	switch {
	case personal[tool]:
		return finding{Ask, nil, defaultPersonal, ""}
	case ownReads[tool]:
		return finding{Allow, nil, defaultOwn, ""}
	case tool == ownPosts && len(req.also) == 1:
		return readable(&req.also[0].target[0], first(req.bad, req.also[0].bad), ask)
	case req.kind == kindNet:
		return ask(defaultHost)
	case req.kind == kindRead:
		return readable(&req.target[0], req.bad, ask)
	case req.kind == kindEdit && req.bad == "" && req.writesPlan():
		return finding{Allow, nil, defaultOwnState, ""}
	case req.script != nil && len(req.script.units) > 0 && req.script.units[i].target != nil && !req.script.units[i].write:
		if hard := first(req.bad, req.script.hard, req.script.units[i].soft, req.script.soft); hard != "" {
			return ask(defaultAsked)
		}
		if u := &req.script.units[i]; u.names && u.target.inside {
			return finding{Allow, nil, defaultRead, ""}
		}
		return readable(req.script.units[i].target, "", ask)
	case tools[tool].does == ownState:
		if req.bad != "" || req.odd != "" {
			return ask(defaultAsked)
		}
		return finding{Allow, nil, defaultOwnState, ""}
	}
	return ask(defaultAsked)
}

// planName matches a plan's file, as Claude Code names it.
var planName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*\.md$`)

// writesPlan reports whether a call writes Claude Code's plan in its home. People decide about the plan itself
// later, when it is presented (ExitPlanMode).
func (req *request) writesPlan() bool {
	t := &req.target[0]
	plans := filepath.Join(newRoot(req.call.Home).resolved, ".claude", "plans")
	return req.call.Home != "" && !t.twin && !t.dir && planName.MatchString(filepath.Base(t.resolved)) && filepath.Dir(t.resolved) == plans
}

// strikes is hits for the call and for what it also amounts to.
func (req *request) strikes(p *Pattern, i int) (hit bool, doubt string) {
	if hit, doubt = req.hits(p, i); hit {
		return hit, doubt
	}
	for _, other := range req.also {
		for k := range other.parts() {
			h, d := other.hits(p, k)
			if h {
				return true, d
			}
			doubt = first(doubt, d)
		}
	}
	return false, doubt
}

func readable(t *target, bad string, ask func(string) finding) finding {
	switch {
	case bad != "":
		return ask(defaultAsked)
	case !t.inside:
		return ask(defaultOutside)
	case t.doubt != "":
		return ask(defaultAsked)
	case secretLooking(t.rel), secretLooking(t.written), t.folder && secretFilter(t.filter):
		return ask(defaultSecret)
	}
	if why := first(t.shown, t.secretBelow(mostSearched)); why != "" {
		f := ask(defaultSecret)
		f.why = first(why, f.why)
		return f
	}
	return finding{Allow, nil, defaultRead, ""}
}

// secretFilter reports whether a search looks for files that look like secrets.
func secretFilter(filter string) bool {
	return filter != "" && (secretLooking(filter) || secretLooking(strings.ReplaceAll(filter, "*", "")) || secretLooking(strings.ReplaceAll(filter, "*", "x")))
}

// trouble explains what would keep any rule from allowing a part.
func (req *request) trouble(i int) string {
	switch {
	case req.script == nil:
		if req.kind == kindWeb {
			return req.link.why
		}
		if len(req.target) == 1 && !req.target[0].inside {
			return req.target[0].written + " is " + outsideWords(&req.target[0])
		}
		if why := tools[req.call.Tool].why; why != "" {
			return "it " + why
		}
		return ""
	case req.script.hard != "" || len(req.script.units) == 0:
		return req.script.hard
	}
	u := &req.script.units[i]
	switch {
	case u.soft != "":
		return u.soft
	case u.target != nil:
		return req.fileTrouble(i)
	case u.wrap != "":
		return u.wrap
	}
	return noRule + u.text() + req.wouldAllow(i)
}

// wouldAllow names a rule that would allow a command that no rule is about: a prefix if that only runs the
// workspace's code and reads, else the exact command.
func (req *request) wouldAllow(i int) string {
	u := &req.script.units[i]
	if u.reading == nil {
		return ""
	}
	if prefix := prefixOf(u); prefix != "" && !slices.ContainsFunc(u.reading.parts, func(p part) bool { return p.role.writes() }) {
		if p, err := ParsePattern("Bash(" + prefix + " *)"); err == nil {
			if ok, _ := req.coversUnit(&p, i); ok {
				return "; " + p.text + " would"
			}
		}
	}
	if text, ok := spell(u.args()); ok && len(text) <= 80 {
		return "; Bash(" + text + ") would allow just this"
	}
	return "; a rule would have to spell it"
}

// isEffect reports whether a part is an effect of a command besides its words.
func (req *request) isEffect(i int) bool {
	if req.script == nil || len(req.script.units) == 0 || req.script.units[i].of == 0 {
		return false
	}
	words := req.script.part(&req.script.units[i]).words
	return len(words) > 0 && words[0] == 0
}

// part is the part of a command that a unit is about.
func (s *script) part(u *unit) *part { return &s.units[u.of-1].reading.parts[u.part] }

// fileTrouble says what a command does with a file that no rule allows, and which rule would allow it.
func (req *request) fileTrouble(i int) string {
	u := &req.script.units[i]
	t, by, verb, head := u.target, "the redirection", " reads ", "Read"
	if u.write {
		verb, head = " writes ", "Edit"
	} else if u.names {
		verb = " looks at "
	}
	if u.of > 0 {
		by = baseName(req.script.units[u.of-1].program())
	}
	said, name := by+verb+t.written, t.rel
	switch {
	case t.inside && t.doubt != "":
		return said + ", which " + t.doubt
	case !t.inside:
		said, name = said+", "+t.whyOutside(), t.resolved
	case u.write:
		said += ", which no rule allows"
	default:
		said += ", which looks like a secret"
	}
	switch {
	case req.isEffect(i):
		words := req.script.part(u).words
		return said + advice(req.script.units[u.of-1].args(), words[len(words)-1])
	case name == "" || t.why != "" || unreadable(name) != "":
		return said
	}
	if name = globLiteral(name); t.folder {
		name = strings.TrimPrefix(name+"/**", "./")
	}
	return said + "; " + head + "(" + name + ") would allow it"
}

// whichPart names the part of a compound command that decided.
func (req *request) whichPart(i int) string {
	if req.script == nil || len(req.script.units) < 2 {
		return ""
	}
	u := &req.script.units[i]
	if u.target != nil {
		return "it opens " + u.target.written
	}
	return "it runs " + u.text()
}

// text is the unit's command for people, cut when it is long.
func (u *unit) text() string {
	s := joinedWords(u.words)
	if len(s) > 80 {
		s = s[:strings.LastIndexByte(s[:80], ' ')+1] + "…"
	}
	return s
}

// Covers reports whether an allow pattern covers the whole call, as strictly as an allow rule; why says what
// prevents it.
func Covers(p Pattern, c Call) (ok bool, why string) {
	defer func() {
		if faultOf(recover()) != "" {
			ok, why = false, "Deckhand failed while reading it"
		}
	}()
	if personal[c.Tool] {
		return false, "no rule answers for a person"
	}
	return readCall(&c).covered(&p)
}

func (req *request) covered(p *Pattern) (bool, string) {
	decided := false
	for i := range req.parts() {
		if req.silent(i) {
			continue
		}
		decided = true
		if ok, why := req.covers(p, i); !ok {
			if req.script != nil && len(req.script.units) > 0 && req.script.units[i].target != nil && req.fallback(i, "").verdict == Allow {
				continue
			}
			return false, first(why, "the pattern does not match")
		}
	}
	if !decided {
		return req.covers(p, 0)
	}
	return true, ""
}

// coverable reports whether there is any pattern that covers the call.
func (req *request) coverable() bool {
	switch {
	case req.bad != "":
		return false
	case req.script != nil:
		return req.script.hard == "" && len(req.script.units) > 0
	case len(req.target) == 1:
		t := &req.target[0]
		return t.resolved != "" && (!t.folder || t.resolved != "/")
	case req.kind == kindWeb:
		return req.link.host != ""
	}
	return true
}
