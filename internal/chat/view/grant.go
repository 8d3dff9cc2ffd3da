package view

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/store/approvals"
)

// The inputs of the form about a grant.
const (
	GrantRule  = "rule"
	GrantWhere = "where"
	GrantUntil = "until"
)

// GrantOffer is a rule that could be made of a decision.
type GrantOffer struct {
	// Pattern is the policy's, as in "Bash(go test *)"; empty for exactly the input
	// that was asked for.
	Pattern string
	// Label names the rule in a few words.
	Label string
	// Sentence says all that it would allow.
	Sentence string
}

// Shown is a fingerprint of what the offer says to people.
func (g GrantOffer) Shown() string {
	sum := sha256.Sum256([]byte(strconv.Quote(g.Pattern) + strconv.Quote(g.Label) + strconv.Quote(g.Sentence)))
	return hex.EncodeToString(sum[:8])
}

// GrantChoice is what somebody chose in GrantModal.
type GrantChoice struct {
	Offer int // index into the offers
	Scope approvals.GrantScope
	For   time.Duration

	shown string // the offer's fingerprint
}

// Of returns the offer that was chosen, given the offers as they are made now. It
// is an [*AnswerError] when the one that was shown is no longer the same: nobody
// allows what they did not read.
func (c GrantChoice) Of(offers []GrantOffer) (GrantOffer, error) {
	if c.Offer < 0 || c.Offer >= len(offers) || offers[c.Offer].Shown() != c.shown {
		return GrantOffer{}, &AnswerError{"The rules on offer have changed since. Please open “Always allow…” again."}
	}
	return offers[c.Offer], nil
}

// GrantTimes are the choices of how long a rule holds.
var GrantTimes = []struct {
	Value, Label string
	d            time.Duration
}{
	{"1h", "1 hour", time.Hour},
	{"8h", "8 hours", 8 * time.Hour},
	{"24h", "24 hours", 24 * time.Hour},
	{"7d", "7 days", 7 * 24 * time.Hour},
	{"30d", "30 days", 30 * 24 * time.Hour},
	{"90d", "90 days", 90 * 24 * time.Hour},
}

// sessionGrantMost is how long a rule for one session holds at most.
const sessionGrantMost = 24 * time.Hour

// ParseGrant reads GrantModal's values: block id → action id → value. What is
// missing or was not offered gives an [*AnswerError].
func ParseGrant(values Inputs) (GrantChoice, error) {
	var out GrantChoice
	number, shown, ok := strings.Cut(values[GrantRule][GrantRule].Choice(), ":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 || n >= OptionsMax {
		return GrantChoice{}, &AnswerError{"Please choose which rule to make."}
	}
	out.Offer, out.shown = n, shown
	switch s := approvals.GrantScope(values[GrantWhere][GrantWhere].Choice()); s {
	case approvals.GrantSession, approvals.GrantThread, approvals.GrantChannel, approvals.GrantProject:
		out.Scope = s
	default:
		return GrantChoice{}, &AnswerError{"Please choose where the rule holds."}
	}
	for _, t := range GrantTimes {
		if t.Value == values[GrantUntil][GrantUntil].Choice() {
			if out.For = t.d; out.Scope == approvals.GrantSession {
				out.For = min(out.For, sessionGrantMost)
			}
			return out, nil
		}
	}
	return GrantChoice{}, &AnswerError{"Please choose for how long the rule holds."}
}

// How long the value of an option may be, in bytes, and how many options a choice has.
const (
	OptionValueMax = 75
	OptionsMax     = 10
)
