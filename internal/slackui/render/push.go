package render

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"deckhand/internal/money"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/forges"
)

// Of a push that was looked at, a card says first which commits leave, and which files others
// take orders from.

// How many of a push's parts a card names. The others are counted, and behind View all.
const (
	pushOrdersMost  = 12
	pushCommitsMost = 6
	pushLostMost    = 6
	pushFilesMost   = 12
	pushRefsMost    = 5  // branches
	pushTargetMost  = 60 // units of where a link leads
	pushIDShort     = 10 // characters of a commit's id
)

// pushHeadline is what leaves, in a line; empty for a call that is no push, or one of which
// nothing is known.
func (c *asking) pushHeadline() string {
	p := c.a.Push
	if p != nil && p.Pull != nil && p.Pull.Head != "" {
		return c.pullHeadline("")
	}
	if p == nil || len(p.Refs) == 0 {
		return ""
	}
	var to []string
	commits, lost := 0, 0
	for _, r := range p.Refs {
		to = append(to, c.code(branchName(r), 100))
		commits, lost = commits+r.Commits.Count, lost+r.Lost.Count
	}
	what := plural(commits, "commit", "commits")
	if p.Unknown != "" {
		what = "what could not be looked at"
	}
	if p.Pull != nil {
		return c.pullHeadline(what)
	}
	head := "*Push " + what + "* to " + strings.Join(to[:min(len(to), pushRefsMost)], ", ")
	if more := len(to) - pushRefsMost; more > 0 {
		head += " and " + plural(more, "more branch", "more branches")
	}
	head += c.ofRepository()
	if lost > 0 {
		head += " · *rewrites history, " + plural(lost, "commit is", "commits are") + " lost*"
	}
	return head
}

func (c *asking) ofRepository() string {
	switch {
	case c.a.Push.Further:
		return " of the repository " + c.code(c.a.Push.Repository, 100)
	case c.a.Project != "":
		return " of " + mrkdwn.EscapeWithin(c.o.redact(c.a.Project), 100)
	}
	return ""
}

func branchName(r forges.PushRef) string { return strings.TrimPrefix(r.Name, "refs/heads/") }

// code is a text of a stranger's in a line.
func (c *drawing) code(s string, most int) string {
	return mrkdwn.CodeWithin(c.o.redact(plaintext.OneLine(s)), most)
}

// pushed says of a push what is in it.
func (c *card) pushed() {
	p := c.a.Push
	if p == nil || !c.pending() {
		return
	}
	if p.Pull != nil && p.Pull.Head != "" {
		c.merged(p.Pull)
		c.context(pushCost(p))
		return
	}
	if p.Unknown != "" {
		c.section("⚠️ *What will be pushed is not known.* " + mrkdwn.EscapeWithin(c.o.redact(plaintext.OneLine(p.Unknown)), 300))
		c.context(pushCost(p))
		return
	}
	refs := slices.Clone(p.Refs)
	slices.SortStableFunc(refs, func(a, b forges.PushRef) int { return cmp.Compare(min(b.Orders, 1), min(a.Orders, 1)) })
	shown := refs[:min(len(refs), pushRefsMost)]
	room := c.room / len(shown)
	name := func(r forges.PushRef) string {
		if len(refs) == 1 {
			return ""
		}
		return c.code(branchName(r), 60) + ": "
	}
	for _, r := range shown {
		if r.Orders > 0 {
			c.section("⚠️ " + name(r) + "*" + plural(r.Orders, "file that gives", "files that give") + " orders to others:*\n" + c.pushFiles(r, true, pushOrdersMost, r.Orders, room/2))
		}
	}
	for _, r := range shown {
		if r.Lost.Count > 0 {
			c.section("⚠️ " + name(r) + "*" + plural(r.Lost.Count, "commit is", "commits are") + " lost:*\n" + c.pushCommits(r.Lost, pushLostMost, room/4))
		}
	}
	for _, r := range shown {
		files := len(r.Files) + r.More
		what := c.pushCommits(r.Commits, pushCommitsMost, room/4)
		if r.Commits.Count == 0 {
			what = "No new commit: the branch is put where the forge has one already, " + c.code(r.New[:min(len(r.New), pushIDShort)], 20) + "."
		}
		c.section(name(r) + what + "\n*" + plural(files, "file", "files") + ", +" + count(r.Added) + " −" + count(r.Removed) + ":* " +
			joinNonEmpty(" ", c.pushFiles(r, false, pushFilesMost, files-r.Orders, room/4), "*View all* has the diff."))
	}
	if rest := refs[len(shown):]; len(rest) > 0 {
		orders := 0
		for _, r := range rest {
			orders += r.Orders
		}
		c.section("⚠️ *" + plural(len(rest), "more branch", "more branches") + "*, with " + plural(orders, "file that gives", "files that give") + " orders to others: *View all* has them.")
	}
	if p.Pull != nil && len(p.Pull.Reviewers) > 0 {
		c.context(c.reviewers(p.Pull))
	}
	pictures := ""
	if p.Pull != nil && p.Pull.Pictures != "" {
		pictures = "With the pictures of the page that this thread has, before and after"
	}
	c.context(pictures, c.pushRan(p), pushCost(p))
}

// pushFiles names some of so many files, those that give orders or the others, in at most so
// many units.
func (c *asking) pushFiles(r forges.PushRef, orders bool, most, all, room int) string {
	var parts []string
	for _, f := range r.Files {
		if f.Orders != orders || len(parts) == most {
			continue
		}
		part := c.code(f.Path, 120) + " " + fileChange(f, c.code, pushIDShort)
		if room -= plaintext.Width(part) + 3; room < 0 {
			break
		}
		parts = append(parts, part)
	}
	if more := all - len(parts); more > 0 {
		parts = append(parts, "and "+count(more)+" more")
	}
	return strings.Join(parts, " · ")
}

// fileChange says how a file differs. show writes a stranger's text in at most so many units,
// of a commit's id so many characters.
func fileChange(f forges.PushFile, show func(text string, most int) string, id int) string {
	what, from := f.Kind, f.From
	if f.Was != "" {
		from = "" // it was something else
	}
	switch f.Kind {
	case "link":
		what = between("link to", "before to", show(from, pushTargetMost), show(f.To, pushTargetMost))
	case "submodule":
		what = between("submodule at", "before at", show(from[:min(len(from), id)], 64), show(f.To[:min(len(f.To), id)], 64))
	}
	parts := []string{what}
	if f.Was != "" {
		parts = append(parts, "was a "+f.Was)
	}
	switch f.Status {
	case "A":
		parts = append(parts, "new")
	case "D":
		parts = append(parts, "deleted")
	}
	switch {
	case f.Kind == "link" || f.Kind == "submodule":
	case f.Binary:
		parts = append(parts, "binary")
	default:
		parts = append(parts, "+"+count(f.Added)+" −"+count(f.Removed))
	}
	return "(" + joinNonEmpty(", ", parts...) + ")"
}

// between says what something is, and what it was, one of which may be empty.
func between(is, was, from, to string) string {
	switch {
	case to == "":
		return is + " " + from
	case from == "" || from == to:
		return is + " " + to
	}
	return is + " " + to + ", " + was + " " + from
}

// pushCommits are some of so many commits, a line each, in at most so many units.
func (c *asking) pushCommits(list forges.PushCommits, most, room int) string {
	var lines []string
	for _, one := range list.Some[:min(len(list.Some), most)] {
		line := c.code(one.ID[:min(len(one.ID), pushIDShort)], 20) + " " + c.code(one.Subject, 120) + " by " + c.code(one.Author, 80)
		if room -= plaintext.Width(line) + 1; room < 0 {
			break
		}
		lines = append(lines, line)
	}
	if more := list.Count - len(lines); more > 0 {
		lines = append(lines, "and "+plural(more, "more commit", "more commits"))
	}
	return strings.Join(lines, "\n")
}

// pushCost says what the thread has cost.
func pushCost(p *forges.Push) string {
	return "This thread has cost " + money.USD(p.CostMicroUSD) + " so far."
}

// pushRan says what the turn ran since it changed a file last.
func (c *asking) pushRan(p *forges.Push) string {
	var parts []string
	for _, r := range p.Ran {
		mark := "✅ "
		if r.Failed {
			mark = "❌ "
		}
		parts = append(parts, mark+c.code(r.Command, 100))
	}
	if len(parts) == 0 {
		return "Nothing was run since the last edit of a file."
	}
	return "Ran since the last edit of a file: " + strings.Join(parts, " · ")
}

// pushPart is a part of what View all shows, with a label in mrkdwn.
type pushPart struct{ label, text string }

// pushParts are all that is kept of a push.
func pushParts(p *forges.Push) (out []pushPart) {
	if p == nil {
		return nil
	}
	if p.Unknown != "" {
		out = append(out, pushPart{"What will be pushed", p.Unknown})
	}
	for _, r := range p.Refs {
		of := ""
		if r.Repository != "" {
			of = " in " + mrkdwn.Code(r.Repository)
		}
		var b strings.Builder
		was := r.Old + " → "
		switch {
		case r.Old == r.New:
			was = "pushed already, compared with the default branch: "
		case r.Old == strings.Repeat("0", len(r.New)):
			was = "new branch: "
		}
		b.WriteString(branchName(r) + ": " + was + r.New + "\n")
		commits := func(what string, list forges.PushCommits) {
			for _, one := range list.Some {
				b.WriteString(what + " " + one.ID + " " + plaintext.OneLine(one.Subject) + " by " + plaintext.OneLine(one.Author) + "\n")
			}
			if more := list.Count - len(list.Some); more > 0 {
				b.WriteString(what + " " + plural(more, "more commit", "more commits") + "\n")
			}
		}
		commits("lost", r.Lost)
		commits("new", r.Commits)
		for _, f := range r.Files {
			b.WriteString(plaintext.OneLine(f.Path) + " " + fileChange(f, func(text string, _ int) string { return plaintext.OneLine(text) }, len(r.New)))
			if f.Orders {
				b.WriteString(", gives orders to others")
			}
			b.WriteString("\n")
		}
		if r.More > 0 {
			b.WriteString(plural(r.More, "more file", "more files") + "\n")
		}
		if folders := byFolder(r.Files); folders != "" {
			label := "By folder" + of
			if r.More > 0 {
				label += ", of the first " + plural(len(r.Files), "file", "files")
			}
			out = append(out, pushPart{label, folders})
		}
		out = append(out, pushPart{"Commits and files" + of, b.String()})
		diff := r.Diff
		if r.Cut {
			diff += "\n… the diff is longer: the rest is not kept here."
		}
		if diff != "" {
			out = append(out, pushPart{"The diff" + of, diff})
		}
	}
	return out
}

const (
	pictureFrom    = 8  // files: a change of fewer is seen at a glance
	pictureFolders = 12 // that get a line of their own
	pictureBar     = 20 // characters of the longest bar
)

// byFolder is a picture of a change of many files, as git's own --stat draws one: a line for each folder below the one
// that all are in, the most lines first. It is empty for a change of few files, or of one folder.
func byFolder(files []forges.PushFile) string {
	type folder struct {
		name                  string
		files, added, removed int
	}
	if len(files) < pictureFrom {
		return ""
	}
	common := path.Dir(files[0].Path) + "/"
	for _, f := range files {
		for !strings.HasPrefix(f.Path, common) && common != "./" {
			common = path.Dir(strings.TrimSuffix(common, "/")) + "/"
		}
	}
	common = strings.TrimPrefix(common, "./")
	sums := map[string]*folder{}
	for _, f := range files {
		name, _, below := strings.Cut(strings.TrimPrefix(f.Path, common), "/")
		if !below {
			name = "."
		}
		sum := sums[name]
		if sum == nil {
			sum = &folder{name: common + name}
			sums[name] = sum
		}
		sum.files, sum.added, sum.removed = sum.files+1, sum.added+f.Added, sum.removed+f.Removed
	}
	if len(sums) < 2 {
		return ""
	}
	all := slices.SortedFunc(maps.Values(sums), func(a, b *folder) int {
		return cmp.Or(cmp.Compare(b.added+b.removed, a.added+a.removed), cmp.Compare(b.files, a.files), cmp.Compare(a.name, b.name))
	})
	rest := folder{name: "elsewhere"}
	for _, f := range all[min(len(all), pictureFolders):] {
		rest.files, rest.added, rest.removed = rest.files+f.files, rest.added+f.added, rest.removed+f.removed
	}
	most := max(1, all[0].added+all[0].removed)
	if all = all[:min(len(all), pictureFolders)]; rest.files > 0 {
		all, most = append(all, &rest), max(most, rest.added+rest.removed)
	}
	var b strings.Builder
	for _, f := range all {
		bar := (pictureBar*(f.added+f.removed) + most - 1) / most
		plus := bar * f.added / max(1, f.added+f.removed)
		fmt.Fprintf(&b, "%s%s  +%s −%s  %s  %s\n", strings.Repeat("+", plus), strings.Repeat("−", bar-plus)+strings.Repeat(" ", pictureBar-bar),
			count(f.added), count(f.removed), plural(f.files, "file", "files"), plaintext.OneLine(f.name))
	}
	return b.String()
}
