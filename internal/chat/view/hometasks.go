package view

import (
	"encoding/json"
	"time"

	"deckhand/internal/store/threads"
)

// HomeThread is a thread on the tab.
type HomeThread struct {
	Title     string // plain, without secrets; empty: the project's name stands for it
	Project   string
	Channel   string // id
	Permalink string // may be empty
	State     threads.State
	// Yours is true if it waits for this person's decision, else Whom are those whom it
	// waits for: users and user groups.
	Yours     bool
	Whom      []string
	StartedBy string    // user id; empty for the person's own
	Since     time.Time // when it was opened
	Active    time.Time // when somebody wrote last
	// MicroUSD is what it has cost; negative where the person may not see that.
	MicroUSD int64
}

// HomePage is how many threads are on a page of the tab.
const HomePage = 10

// HomePages bounds the pages.
const HomePages = 100

// HomeChoice is which threads a person chose to see. The zero value is all of their own.
type HomeChoice struct {
	All     bool   `json:"all,omitempty"`     // everybody's, as far as the person may see them
	State   string `json:"state,omitempty"`   // a key of homeStates; empty for all
	Project string `json:"project,omitempty"` // empty for all
	Page    int    `json:"page,omitempty"`    // from 0
}

func (c HomeChoice) String() string { return Encode(c) }

// ParseHomeChoice reads a tab's private metadata. What it does not understand is the zero
// value.
func ParseHomeChoice(metadata string) HomeChoice {
	var c HomeChoice
	if json.Unmarshal([]byte(metadata), &c) != nil || c.Page < 0 || c.Page >= HomePages || len(c.Project) > OptionValueMax ||
		c.State != "" && c.States() == nil {
		return HomeChoice{}
	}
	return c
}

// States are those of the threads that are chosen; nil for all.
func (c HomeChoice) States() []threads.State {
	for _, s := range HomeStates {
		if s.Key == c.State {
			return s.states
		}
	}
	return nil
}

// HomeStates are what threads can be narrowed to.
var HomeStates = []struct {
	Key, Label string
	states     []threads.State
}{
	{"waits", "Waiting for people", []threads.State{threads.ThreadWaits, threads.ThreadBudget, threads.ThreadSpent}},
	{"works", "Working", []threads.State{threads.ThreadWorks, threads.ThreadQueued}},
	{"over", "Answered or ended", []threads.State{threads.ThreadDone, threads.ThreadStopped, threads.ThreadFailed, threads.ThreadNew}},
}

// What narrows the list of threads on a Home, and how many projects it names.
const (
	HomeAny            = "any" // the value of an option that narrows nothing
	HomeWhoseAll       = "all"
	HomeProjectsListed = 95
)

// Choose is the choice after a menu or a button of the tab was used; value is the chosen
// option's. false for what is none of them.
func (c HomeChoice) Choose(action, value string) (HomeChoice, bool) {
	if value == HomeAny {
		value = ""
	}
	next := c
	next.Page = 0
	switch action {
	case ActionHomeWhose:
		next.All = value == HomeWhoseAll
	case ActionHomeState:
		next.State = value
	case ActionHomeProject:
		next.Project = value
	case ActionHomeEarlier:
		next.Page = min(c.Page+1, HomePages-1)
	case ActionHomeLater:
		next.Page = max(c.Page-1, 0)
	default:
		return c, false
	}
	return ParseHomeChoice(next.String()), true
}
