package view

import (
	"encoding/json"
	"strconv"
	"strings"

	"deckhand/internal/store/approvals"
	"deckhand/internal/transcript"
)

// How the value of a feedback button begins, before the turn's number.
const (
	FeedbackGood = "good:"
	FeedbackBad  = "bad:"
)

// ParseFeedback reads the value of a button: the turn's id, and what its answer is thought
// to be.
func ParseFeedback(value string) (turnID int64, good, ok bool) {
	id, good := strings.CutPrefix(value, FeedbackGood)
	if !good {
		if id, ok = strings.CutPrefix(value, FeedbackBad); !ok {
			return 0, false, false
		}
	}
	turnID, err := strconv.ParseInt(id, 10, 64)
	return turnID, good, err == nil && turnID > 0
}

// DiffPage names a page of the window that shows a turn's diff; it is the value of the buttons
// that open it and turn pages, and its private metadata.
type DiffPage struct {
	Turn int64 `json:"turn"`
	Page int   `json:"page"` // from 0
}

func (p DiffPage) String() string { return Encode(p) }

// ParseDiffPage reads the value of such a button.
func ParseDiffPage(value string) (DiffPage, bool) {
	var p DiffPage
	err := json.Unmarshal([]byte(value), &p)
	return p, err == nil && p.Turn > 0 && p.Page >= 0
}

// InputPage names a page of an approval's whole input; it is the value of the
// buttons that turn pages and the private metadata of the view.
type InputPage struct {
	ApprovalID string `json:"id"`
	Page       int    `json:"page"` // from 0
}

func (p InputPage) String() string { return Encode(p) }

// ParseInputPage reads the value of a button that turns pages.
func ParseInputPage(value string) (InputPage, bool) {
	var p InputPage
	err := json.Unmarshal([]byte(value), &p)
	return p, err == nil && p.ApprovalID != "" && p.Page >= 0
}

const (
	// StepsOnPage is how many steps a page of the window lists.
	StepsOnPage = 10
)

// StepsPage names a page of the window about a turn's steps.
type StepsPage struct {
	Turn  int64 `json:"turn"`
	First int   `json:"first"`          // Step of the list, from 0; -1: the last page
	Step  int   `json:"step,omitempty"` // the one that is shown, from 1; 0: the list
	Page  int   `json:"page,omitempty"` // of it, from 0
}

func (p StepsPage) String() string { return Encode(p) }

// ParseStepsPage reads the value of a button.
func ParseStepsPage(value string) (StepsPage, bool) {
	var p StepsPage
	err := json.Unmarshal([]byte(value), &p)
	return p, err == nil && p.Turn > 0 && p.First >= -1 && p.Step >= 0 && p.Page >= 0
}

// Steps is what the window shows: of which page, and what is known of it.
type Steps struct {
	Workspace string // that paths are shown relative to
	Page      StepsPage
	Steps     approvals.Steps // those of the page, or the one that is shown
	// Found is what the copies of the conversation hold of their results; nil while they are
	// being read. Unread says that they could not be.
	Found  *transcript.Found
	Unread bool
}
