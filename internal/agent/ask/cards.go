package ask

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/store/approvals"
)

// Card is a message that asks for some of a turn's calls. Once all of them have an answer it
// is the message in which the turn goes on, up to the next card.
type Card struct {
	ID string // see approvals.Approval.CardID
	// From is the place in Content.Items of its first call, or of what came after the request
	// if that has none: what is there or follows belongs to the card, but for what belongs to
	// a later one.
	From int
	// Earlier says that it was posted by an attempt before this turn.
	Earlier bool
	At      time.Time // when it was asked for
	// Meanwhile says that the card above it waited still when it was posted.
	Meanwhile bool
	Requests  []Request
}

// Open reports whether the CLI waits for an answer to something on the card.
func (c Card) Open() bool {
	return slices.ContainsFunc(c.Requests, func(r Request) bool { return r.Status == approvals.Pending })
}

// Request is a call on a card, and how people have decided about it.
type Request struct {
	ApprovalID string
	ToolUseID  string // of the call
	ToolName   string
	Host       string // that is asked for, in the middle of the call; else empty
	Status     approvals.Status
	By         []string // Slack users: who has denied it, or all who have approved
	Quorum     int      // how many had to
	ChangedBy  string   // who changed the input that ran; empty for nobody
	Reason     string   // the decider's
	Answers    map[string]string
}

// RequestOf is an approval as its turn shows it.
func RequestOf(a approvals.Approval) Request {
	r := Request{ApprovalID: a.ID, ToolUseID: a.ToolUseID, ToolName: a.ToolName, Status: a.Status, Quorum: a.Terms.Quorum, Reason: a.Reason}
	if a.ToolName == policy.NetworkTool {
		r.Host = HostOf(a)
	}
	for _, v := range a.Votes {
		if v.Allow && (a.Status != approvals.Denied || a.Terms.Quorum > 1) {
			r.By = append(r.By, v.UserID)
		}
	}
	if a.Status == approvals.Denied || a.Status == approvals.Allowed && len(r.By) == 0 {
		r.By = []string{a.DecidedBy}
	}
	if a.Edited.Times > 0 {
		r.ChangedBy = a.Edited.By
	}
	if a.Kind == approvals.Question && a.Answer != nil {
		var answer struct{ Answers map[string]string }
		if json.Unmarshal(a.Answer, &answer) == nil {
			r.Answers = answer.Answers
		}
	}
	return r
}

// maxPerCard bounds the requests on one card, for Slack's limits.
const maxPerCard = 8

// openCard is the card that a request joins, because since it was posted nothing came but
// calls of the same answer, which the CLI may ask about while the model still writes them; or
// empty for a card of its own.
func (d *Desk) openCard() string {
	n, items := len(d.cards)-1, d.Content.Items
	if n < 0 || d.carded < 0 || d.carded > len(items) || len(d.cards[n].Requests) >= maxPerCard {
		return ""
	}
	for i, it := range items[d.carded:] {
		if d.carded+i == 0 || !it.CalledWith(items[d.carded+i-1]) {
			return ""
		}
	}
	return d.cards[n].ID
}

// putOnCard notes on which card a request is shown.
func (d *Desk) putOnCard(a approvals.Approval) {
	d.carded = len(d.Content.Items)
	i := slices.IndexFunc(d.cards, func(c Card) bool { return c.ID == a.CardID })
	if i < 0 {
		c := Card{ID: a.CardID, From: d.carded, At: a.CreatedAt, Earlier: a.CreatedAt.Before(d.Turn.StartedAt)}
		if at := placeOf(d.Content.Items, a.ToolUseID); at >= 0 && a.ToolName != policy.NetworkTool {
			c.From = at
		}
		if n := len(d.cards); n > 0 {
			c.From, c.Meanwhile = max(c.From, d.cards[n-1].From), d.cards[n-1].Open()
		}
		d.cards, i = append(d.cards, c), len(d.cards)
	}
	d.cards[i].Requests = append(slices.Clip(d.cards[i].Requests), RequestOf(a))
}

// noteEnd notes how a request on a card has ended.
func (d *Desk) noteEnd(a approvals.Approval) {
	for i, c := range d.cards {
		if at := slices.IndexFunc(c.Requests, func(r Request) bool { return r.ApprovalID == a.ID }); at >= 0 {
			d.cards[i].Requests = slices.Clone(c.Requests) // views have the old ones
			d.cards[i].Requests[at] = RequestOf(a)
		}
	}
}

// ClosedCards are the cards of a turn that has ended: what nobody has decided about ended so, too.
func (d *Desk) ClosedCards(status approvals.Status) []Card {
	cards := slices.Clone(d.cards)
	for i, c := range cards {
		cards[i].Requests = slices.Clone(c.Requests)
		for at, r := range c.Requests {
			if r.Status == approvals.Pending {
				cards[i].Requests[at].Status = status
			}
		}
	}
	return cards
}

func placeOf(items []claude.Item, toolUseID string) int {
	return slices.IndexFunc(items, func(it claude.Item) bool { return it.Tool != nil && it.Tool.ID == toolUseID })
}

// saidMost bounds what is kept of what led to a request, in bytes.
const saidMost = 1000

// saidBefore is what the model said last before a call, in the same conversation: its last
// line.
func saidBefore(items []claude.Item, toolUseID string) string {
	at := placeOf(items, toolUseID)
	if at < 0 {
		return ""
	}
	for _, it := range slices.Backward(items[:at]) {
		said := strings.TrimSpace(it.Text)
		if it.Kind != claude.ItemText || it.ParentID != items[at].ParentID || said == "" {
			continue
		}
		said = said[strings.LastIndexByte(said, '\n')+1:]
		return strings.ToValidUTF8(said[max(0, len(said)-saidMost):], "")
	}
	return ""
}
