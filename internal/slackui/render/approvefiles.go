package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// CallbackApproveFiles is the callback id of the modal that approves edits to files. Its
// private metadata is a [FilesRef], in JSON.
const CallbackApproveFiles = "approve_files"

// The inputs of that modal, their blocks and their actions. Further files are offered in
// groups, by FilesFurther and the group's number.
const (
	FilesWhich   = "files"
	FilesFurther = "further"
	FilesUntil   = "until"
)

// FilesAll is the value of the choice that is all further files that the modal lists.
const FilesAll = "all"

const (
	// filesMost is how many of the files that wait the modal offers, and furtherMost how many
	// of those that follow: with FilesAll they fill two groups.
	filesMost   = optionsMax
	furtherMost = 2*optionsMax - 1
	// furtherBlocks is how many of a view's blocks there are for all but the inputs.
	furtherBlocks = viewBlocks - 6
)

// FilesRef says what the modal is about.
type FilesRef struct {
	ApprovalID string   `json:"id"`                // one of the approvals that waited
	Waiting    []string `json:"waiting,omitempty"` // fingerprints of the files that it lists, for which requests waited
	Further    []string `json:"further,omitempty"` // fingerprints of the further files that it lists
}

// ParseFilesRef reads the modal's private metadata; what is none names no approval.
func ParseFilesRef(metadata string) (r FilesRef) {
	if json.Unmarshal([]byte(metadata), &r) != nil {
		return FilesRef{}
	}
	return r
}

// FilesView are the files of which edits may be approved.
type FilesView struct {
	Waiting []FileEdits // requests wait for them
	Further []FileEdits // the answer that asks goes on to write them: nobody was asked yet
}

// fileTimes are the choices of how long edits stay allowed.
var fileTimes = []struct {
	value, label string
	d            time.Duration
}{
	{"1h", "1 hour", time.Hour},
	{"8h", "8 hours", 8 * time.Hour},
	{"24h", "24 hours", 24 * time.Hour},
}

// FileEdits are requests for edits of one file.
type FileEdits struct {
	Name      string // relative to the workspace
	Approvals []store.Approval
}

// AddEdit adds a request for an edit of a file to those of the same file, or the file to the
// list.
func AddEdit(list []FileEdits, name string, a store.Approval) []FileEdits {
	i := slices.IndexFunc(list, func(f FileEdits) bool { return f.Name == name })
	if i < 0 {
		i, list = len(list), append(list, FileEdits{Name: name})
	}
	list[i].Approvals = append(list[i].Approvals, a)
	return list
}

// shown is a fingerprint of the file's name, which nobody finds a second name for.
func (f FileEdits) shown() string {
	sum := sha256.Sum256([]byte(f.Name))
	return hex.EncodeToString(sum[:16])
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
// further edits of exactly these files for a while; and, where it is ticked, edits of files
// that the same answer goes on to write, each of which it shows with its whole input.
func ApproveFiles(a store.Approval, files FilesView, o Options) slack.ModalViewRequest {
	c := card{a: a, o: o}
	c.section("*Approves the requests that wait for these files*, as their cards show them, and lets every further edit of exactly these files run in this thread " +
		"until the time is over, *whatever it changes*, without asking.")
	ref := FilesRef{ApprovalID: a.ID}
	var options []*slack.OptionBlockObject
	for i, f := range files.Waiting[:min(len(files.Waiting), filesMost)] {
		added, removed := f.changedLines()
		c.section("*File " + strconv.Itoa(i+1) + "* · " + plural(len(f.Approvals), "request waits", "requests wait") + ", " + plusMinus(added, removed))
		c.add(preBlock(c.id(), mrkdwn.Visible(o.redact(f.Name))))
		options, ref.Waiting = append(options, f.option(i, i, o)), append(ref.Waiting, f.shown())
	}
	if more := len(files.Waiting) - filesMost; more > 0 {
		c.section("… and " + plural(more, "more file", "more files") + ", of which this is not about.")
	}
	var groups [][]*slack.OptionBlockObject
	ref.Further, groups = c.further(files.Further, len(options))
	which := slack.NewCheckboxGroupsBlockElement(FilesWhich, options...)
	which.InitialOptions = options
	c.add(slack.NewInputBlock(FilesWhich, plain("Which files?", 2000), nil, which))
	for i, group := range groups {
		id, label := FilesFurther+strconv.Itoa(i), "And these files, which this answer goes on to write?"
		if i > 0 {
			label = "And these of them?"
		}
		input := slack.NewInputBlock(id, plain(label, 2000), nil, slack.NewCheckboxGroupsBlockElement(id, group...))
		input.Optional = true
		c.add(input)
	}
	var times []*slack.OptionBlockObject
	for _, t := range fileTimes {
		times = append(times, slack.NewOptionBlockObject(t.value, plain(t.label, optionMax), nil))
	}
	until := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, FilesUntil, times...)
	until.InitialOption = times[0]
	c.add(slack.NewInputBlock(FilesUntil, plain("For how long, in this thread?", 2000),
		plain("It is listed in your home tab and with “grants” in this thread; you and the admins can revoke it. A link in a file's place is asked about.", 2000), until))
	metadata, err := json.Marshal(ref)
	if err != nil { // strings
		panic(err)
	}
	v := modal("Approve edits", CallbackApproveFiles, string(metadata))
	v.Submit = plain("Approve edits", modalTitle)
	v.Blocks.BlockSet = c.blocks
	return v
}

// further shows the files that the answer goes on to write, as many of them as have room with
// all that they are to be written with, and returns the fingerprints of those and their
// choices, in groups. before is how many files the modal has already.
func (c *card) further(files []FileEdits, before int) (shown []string, groups [][]*slack.OptionBlockObject) {
	if len(files) == 0 {
		return nil, nil
	}
	head := len(c.blocks)
	c.section("")
	var options []*slack.OptionBlockObject
	chunksLeft := inputChunks
	for _, f := range files {
		name, found := mrkdwn.Reveal(c.o.redact(f.Name))
		parts, chunks, deceits := c.announced(f)
		found |= deceits
		if len(options) == furtherMost || mrkdwn.Width(name) > inputChunk || chunks > chunksLeft || len(c.blocks)+2+len(parts) > furtherBlocks {
			continue
		}
		chunksLeft -= chunks
		n := before + len(options)
		added, removed := f.changedLines()
		c.section(joinNonEmpty("\n", "*File "+strconv.Itoa(n+1)+"* · "+plural(len(f.Approvals), "call announced", "calls announced")+", "+plusMinus(added, removed),
			subject{request: request{cautions: found.Warnings()}}.warnings()))
		c.add(preBlock(c.id(), name))
		for _, part := range parts {
			c.add(withID(part, c.id()))
		}
		options, shown = append(options, f.option(n, len(options), c.o)), append(shown, f.shown())
	}
	left := ""
	if more := len(files) - len(options); more > 0 {
		left = " " + plural(more, "more file is", "more files are") + " too much to be read here, and asked about when their turn comes."
	}
	c.blocks[head] = section("further", "*This answer goes on to write "+plural(len(files), "more file", "more files")+"*, about which nobody was asked yet. "+
		"What it has announced is shown whole. Those that you tick are then written without asking, *whatever is written into them*."+left)
	if len(options) > 1 {
		all := slack.NewOptionBlockObject(FilesAll, plain("All "+count(len(options))+" that are shown here, each for itself", optionMax), nil)
		options = append([]*slack.OptionBlockObject{all}, options...)
	}
	return shown, slices.Collect(slices.Chunk(options, optionsMax))
}

// announced are the blocks that show all that a file is to be written with, and how many of
// them are pieces of it. Its own path is above them, unless it is written in another way.
func (c *card) announced(f FileEdits) (parts []slack.Block, pieces int, found mrkdwn.Deceit) {
	for _, a := range f.Approvals {
		chunks, deceits := inputChunksOf(a, c.o)
		found |= deceits
		itself := mrkdwn.Visible(c.o.redact(path.Join(a.Workspace, f.Name)))
		chunks = slices.DeleteFunc(chunks, func(p chunk) bool { return p.label == mrkdwn.Code("file_path") && p.text == itself })
		for _, p := range chunks {
			if p.label != "" && len(chunks) > 1 {
				parts = append(parts, contextBlock("", p.label))
			}
			parts = append(parts, preBlock("", p.text))
		}
		pieces += len(chunks)
	}
	return parts, pieces, found
}

// withID gives a block that shows an input its id.
func withID(b slack.Block, id string) slack.Block {
	switch b := b.(type) {
	case *slack.ContextBlock:
		b.BlockID = id
	case *slack.RichTextBlock:
		b.BlockID = id
	}
	return b
}

// option is the file's choice, the i-th of its kind and the n-th of the modal.
func (f FileEdits) option(n, i int, o Options) *slack.OptionBlockObject {
	label := "File " + strconv.Itoa(n+1)
	if long := label + ": " + mrkdwn.Visible(o.redact(f.Name)); mrkdwn.Width(long) <= optionMax {
		label = long
	}
	return slack.NewOptionBlockObject(strconv.Itoa(i)+":"+f.shown(), plain(label, optionMax), nil)
}

// changedLines are the lines that the requests add and remove.
func (f FileEdits) changedLines() (added, removed int) {
	for _, a := range f.Approvals {
		plus, minus := changedLines(a)
		added, removed = added+plus, removed+minus
	}
	return added, removed
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

// FilesChoice is what was chosen in ApproveFiles, of what is there now.
type FilesChoice struct {
	FilesView
	Chosen int // how many files were ticked, whatever has become of them since
	For    time.Duration
}

// ParseFiles is what was chosen in ApproveFiles, of what it listed. A file that neither waits
// nor follows any more is left out; one that waits meanwhile is among those that wait. What is
// missing gives an [*AnswerError].
func ParseFiles(files FilesView, ref FilesRef, values map[string]map[string]slack.BlockAction) (choice FilesChoice, err error) {
	var picked []string
	for id, of := range values {
		if id != FilesWhich && !strings.HasPrefix(id, FilesFurther) {
			continue
		}
		for _, option := range of[id].SelectedOptions {
			if option.Value == FilesAll {
				picked = append(picked, ref.Further...)
			} else if _, shown, ok := strings.Cut(option.Value, ":"); ok {
				picked = append(picked, shown)
			}
		}
	}
	if len(values[FilesWhich][FilesWhich].SelectedOptions) == 0 {
		return choice, &AnswerError{"Please choose at least one file of those that wait: the others are allowed with it. Or approve the requests one by one."}
	}
	slices.Sort(picked)
	picked = slices.DeleteFunc(slices.Compact(picked), func(shown string) bool {
		return !slices.Contains(ref.Waiting, shown) && !slices.Contains(ref.Further, shown)
	})
	others := func(f FileEdits) bool { return !slices.Contains(picked, f.shown()) }
	choice.Chosen = len(picked)
	choice.Waiting = slices.DeleteFunc(slices.Clone(files.Waiting), others)
	choice.Further = slices.DeleteFunc(slices.Clone(files.Further), others)
	for _, t := range fileTimes {
		if t.value == values[FilesUntil][FilesUntil].SelectedOption.Value {
			choice.For = t.d
			return choice, nil
		}
	}
	return choice, &AnswerError{"Please choose for how long edits are allowed."}
}
