package ask

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"deckhand/internal/agent/policy"
)

// Running are the tool calls of a turn that run: allowed, and without a result.
type Running []run

type run struct {
	id, what string
	input    [sha256.Size]byte
}

// mostShown bounds what is kept of a command, in bytes. A card shows less of it.
const mostShown = 2000

// Begin notes that a call runs now, unless it does already or has calls of its own that run.
func (r *Running) Begin(toolUseID string, c policy.Call) {
	if r.Has(toolUseID) {
		return
	}
	what := c.Tool
	switch c.Tool {
	case "Agent", "Task":
		return // its own calls run
	case "Bash":
		what += ": " + gjson.GetBytes(c.Input, "command").String()
	case "WebFetch":
		what += ": " + gjson.GetBytes(c.Input, "url").String()
	}
	what = strings.ToValidUTF8(what[:min(len(what), mostShown)], "")
	*r = append(*r, run{toolUseID, strings.ReplaceAll(what, "\x00", ""), sha256.Sum256(c.Input)})
}

// End notes that a call has its result.
func (r *Running) End(toolUseID string) {
	*r = slices.DeleteFunc(*r, func(u run) bool { return u.id == toolUseID })
}

// Has reports whether a call runs.
func (r Running) Has(toolUseID string) bool {
	return slices.ContainsFunc(r, func(u run) bool { return u.id == toolUseID })
}

// HasWith reports whether it runs with exactly this input.
func (r Running) HasWith(toolUseID string, input []byte) bool {
	return slices.ContainsFunc(r, func(u run) bool { return u.id == toolUseID && u.input == sha256.Sum256(input) })
}

// Only is the call that runs, if it is the only one.
func (r Running) Only() string {
	if len(r) == 1 {
		return r[0].id
	}
	return ""
}

// Described says for a card which tool uses run while a host is asked for. Which of their
// programs asks cannot be told.
func (r Running) Described() string {
	switch len(r) {
	case 0:
		return "by a program in the background, while no tool use of this turn ran"
	case 1:
		return "while this ran: " + r[0].what
	}
	const most = 3
	var list []string
	for i, u := range r {
		if i == most {
			list = append(list, fmt.Sprintf("and %d more", len(r)-most))
			break
		}
		list = append(list, strings.ToValidUTF8(u.what[:min(len(u.what), mostShown/most)], ""))
	}
	return "while one of these ran: " + strings.Join(list, " | ")
}
