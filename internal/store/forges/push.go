package forges

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Push is what a git push would bring to the forge, as inspected before people were asked. Its approval is for
// these commits only.
type Push struct {
	Repository string `json:"repository,omitempty"`
	// Further says that it is not the project's own, but one of those that its sessions reach as well.
	Further bool `json:"further,omitempty"`
	// Unknown is a sentence about why it could not be inspected completely. Refs may still have the commits.
	Unknown string    `json:"unknown,omitempty"`
	Refs    []PushRef `json:"refs,omitempty"`
	// Ran are the last commands that the thread ran since its last change of a file, at most
	// [MostRan], the oldest first; git's own are left out.
	Ran []PushRan `json:"ran,omitempty"`
	// CostMicroUSD is the thread's cost in the ledger at the time of asking, by list price.
	CostMicroUSD int64 `json:"cost_micro_usd,omitempty"`
	// Pull is the pull request that this is for; nil for none.
	Pull *PushPull `json:"pull,omitempty"`
}

// PushRef is a change of a branch of the forge.
type PushRef struct {
	// Repository is the short name of a further repository of the project's, where there are refs of several.
	Repository string `json:"repository,omitempty"`
	Name       string `json:"name"` // such as refs/heads/deckhand/x
	// Old is the branch's commit now: zeros if it does not exist, empty if unknown.
	Old     string      `json:"old,omitempty"`
	New     string      `json:"new"`
	Commits PushCommits `json:"commits"` // that the forge lacks
	Lost    PushCommits `json:"lost"`    // that the branch would lose
	Files   []PushFile  `json:"files,omitempty"`
	More    int         `json:"more,omitempty"`   // files that are not listed
	Orders  int         `json:"orders,omitempty"` // files that programs take orders from, listed or not
	Added   int         `json:"added,omitempty"`  // lines
	Removed int         `json:"removed,omitempty"`
	Diff    string      `json:"diff,omitempty"`
	Cut     bool        `json:"cut,omitempty"` // the diff is longer
}

// PushCommits are the newest of so many commits.
type PushCommits struct {
	Count int          `json:"count"`
	Some  []PushCommit `json:"some,omitempty"`
}

// PushCommit is a commit's own description.
type PushCommit struct {
	ID      string `json:"id"`
	Author  string `json:"author"`
	Subject string `json:"subject"`
}

// PushFile is a changed file.
type PushFile struct {
	Path    string `json:"path"`
	Orders  bool   `json:"orders,omitempty"` // programs take orders from it
	Status  string `json:"status,omitempty"` // A, M, D or T, as git has them
	Kind    string `json:"kind,omitempty"`   // link, submodule or program; empty for a plain file
	Was     string `json:"was,omitempty"`    // the earlier kind, if it was another one; file for a plain one
	From    string `json:"from,omitempty"`   // the target of a link, the commit of a submodule, before …
	To      string `json:"to,omitempty"`     // … and after
	Added   int    `json:"added,omitempty"`
	Removed int    `json:"removed,omitempty"`
	Binary  bool   `json:"binary,omitempty"`
}

// PushRan is a finished command.
type PushRan struct {
	Command string `json:"command"`
	Failed  bool   `json:"failed,omitempty"`
}

// MostRan bounds the commands that are told beside a push.
const MostRan = 3

// between is what stands between the commands of a line.
var between = regexp.MustCompile(`[;&|\n]+`)

// onlyGit is a command that is git's work alone, with nothing that the shell would run inside.
var onlyGit = regexp.MustCompile("^git (add|blame|branch|checkout|commit|diff|fetch|log|ls-files|merge|mv|pull|push|remote|reset|restore|rev-parse|rm|show|stash|status|switch|tag)( [^`$<>]*)?$")

// RanOf is the finished command of a Bash input. It reports false for one in which git does nothing but its own work:
// that says nothing of what is pushed.
func RanOf(input json.RawMessage, failed bool) (PushRan, bool) {
	var in struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(input, &in) != nil {
		return PushRan{}, false
	}
	tells := slices.ContainsFunc(between.Split(in.Command, -1), func(part string) bool {
		part = strings.TrimSpace(part)
		return part != "" && !onlyGit.MatchString(part)
	})
	command := strings.ReplaceAll(strings.ToValidUTF8(in.Command[:min(len(in.Command), 300)], ""), "\x00", "")
	return PushRan{Command: command, Failed: failed}, tells
}

// IDs are the audit's record of it.
func (p *Push) IDs() map[string]string {
	out := map[string]string{}
	for _, r := range p.Refs {
		out[r.Name] = r.Old + ".." + r.New
	}
	if p.Pull != nil && p.Pull.Head != "" {
		out["merged"] = p.Pull.Head
	}
	if p.Pull != nil && p.Pull.Pictures != "" {
		out["pictures"] = p.Pull.Pictures
	}
	return out
}

// PushPull is the pull request that a push becomes part of, or that is merged.
type PushPull struct {
	Number int    `json:"number,omitempty"` // 0: it is opened
	URL    string `json:"url,omitempty"`
	Title  string `json:"title"`
	Branch string `json:"branch"`
	Base   string `json:"base"`
	Draft  bool   `json:"draft,omitempty"`
	// Reviewers are those whom the forge is to ask, by their names there.
	Reviewers []string `json:"reviewers,omitempty"`
	// Pictures are those of the page that go along, by their id.
	Pictures string `json:"pictures,omitempty"`
	// Head is the commit that is merged, and Method how; empty where nothing is.
	Head   string       `json:"head,omitempty"`
	Method string       `json:"method,omitempty"`
	Checks []PullCheck  `json:"checks,omitempty"`
	Said   []PullReview `json:"reviews,omitempty"`
}
