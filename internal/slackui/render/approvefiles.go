package render

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// CallbackApproveFiles is the callback id of the modal that approves edits to files. Its
// private metadata is the id of one of the approvals.
const CallbackApproveFiles = "approve_files"

// The inputs of that modal, their blocks and their actions.
const (
	FilesWhich = "files"
	FilesUntil = "until"
)

// filesMost is how many files the modal offers.
const filesMost = optionsMax

// fileTimes are the choices of how long edits stay allowed.
var fileTimes = []struct {
	value, label string
	d            time.Duration
}{
	{"1h", "1 hour", time.Hour},
	{"8h", "8 hours", 8 * time.Hour},
	{"24h", "24 hours", 24 * time.Hour},
}

// FileEdits are the requests that wait for edits of one file.
type FileEdits struct {
	Name      string // relative to the workspace
	Approvals []store.Approval
}

// shown is a fingerprint of the file's name.
func (f FileEdits) shown() string {
	sum := sha256.Sum256([]byte(f.Name))
	return hex.EncodeToString(sum[:8])
}

// editsFile reports whether edits of the file that a pending request is about may be
// approved for a while.
func (c *card) editsFile(a store.Approval) bool {
	return c.o.OneFile != nil && c.o.OneFile(a) != ""
}

// approveFiles is the button of a card of several that opens the modal, if there are
// requests for it.
func (c *card) approveFiles(list []row) []slack.BlockElement {
	for _, r := range list {
		if c.editsFile(r.a) {
			return []slack.BlockElement{button(ActionApproveFiles, r.a.ID, "Approve edits to these files…", "")}
		}
	}
	return nil
}

// ApproveFiles is the modal that approves all requests that wait for edits of files, and
// further edits of exactly these files for a while.
func ApproveFiles(a store.Approval, files []FileEdits, o Options) slack.ModalViewRequest {
	v := modal("Approve edits", CallbackApproveFiles, a.ID)
	v.Submit = plain("Approve edits", modalTitle)
	c := card{a: a, o: o}
	c.section("*Approves the requests that wait for these files*, as their cards show them, and lets every further edit of exactly these files run in this thread " +
		"until the time is over, *whatever it changes*, without asking.")
	var options []*slack.OptionBlockObject
	for i, f := range files[:min(len(files), filesMost)] {
		name := mrkdwn.Visible(o.redact(f.Name))
		added, removed := 0, 0
		for _, waits := range f.Approvals {
			plus, minus := changedLines(waits)
			added, removed = added+plus, removed+minus
		}
		c.section("*File " + strconv.Itoa(i+1) + "* · " + plural(len(f.Approvals), "request waits", "requests wait") + ", " + plusMinus(added, removed))
		c.add(preBlock(c.id(), name))
		label := "File " + strconv.Itoa(i+1)
		if long := label + ": " + name; mrkdwn.Width(long) <= optionMax {
			label = long
		}
		options = append(options, slack.NewOptionBlockObject(strconv.Itoa(i)+":"+f.shown(), plain(label, optionMax), nil))
	}
	if more := len(files) - filesMost; more > 0 {
		c.section("… and " + plural(more, "more file", "more files") + ", of which this is not about.")
	}
	which := slack.NewCheckboxGroupsBlockElement(FilesWhich, options...)
	which.InitialOptions = options
	c.add(slack.NewInputBlock(FilesWhich, plain("Which files?", 2000), nil, which))
	var times []*slack.OptionBlockObject
	for _, t := range fileTimes {
		times = append(times, slack.NewOptionBlockObject(t.value, plain(t.label, optionMax), nil))
	}
	until := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, FilesUntil, times...)
	until.InitialOption = times[0]
	c.add(slack.NewInputBlock(FilesUntil, plain("For how long, in this thread?", 2000),
		plain("It is listed in your home tab and with “grants” in this thread; you and the admins can revoke it. A link in a file's place is asked about.", 2000), until))
	v.Blocks.BlockSet = c.blocks
	return v
}

// changedLines are the lines that a request for an edit adds and removes.
func changedLines(a store.Approval) (added, removed int) {
	all, ok := fields(a.ToRun())
	if !ok {
		return 0, 0
	}
	s := &fieldSet{all: all}
	switch a.ToolName {
	case "Edit":
		before, _ := s.text("old_string")
		after, _ := s.text("new_string")
		_, removed, added = lineDiff(before, after)
	case "Write":
		content, _ := s.text("content")
		added = len(splitLines(content))
	case "NotebookEdit":
		source, _ := s.text("new_source")
		added = len(splitLines(source))
	}
	return added, removed
}

// ParseFiles are those of the files that were chosen in ApproveFiles, and for how long. A
// file that is not waited for any more is left out. What is missing gives an [*AnswerError].
func ParseFiles(files []FileEdits, values map[string]map[string]slack.BlockAction) (chosen []FileEdits, d time.Duration, err error) {
	picked := values[FilesWhich][FilesWhich].SelectedOptions
	if len(picked) == 0 {
		return nil, 0, &AnswerError{"Please choose at least one file, or approve the requests one by one."}
	}
	for _, f := range files {
		if slices.ContainsFunc(picked, func(o slack.OptionBlockObject) bool {
			_, shown, _ := strings.Cut(o.Value, ":")
			return shown == f.shown()
		}) {
			chosen = append(chosen, f)
		}
	}
	for _, t := range fileTimes {
		if t.value == values[FilesUntil][FilesUntil].SelectedOption.Value {
			return chosen, t.d, nil
		}
	}
	return nil, 0, &AnswerError{"Please choose for how long edits are allowed."}
}
