package slackui

import (
	"slices"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/agent/ask"
)

// offersMost bounds the ended turns that are kept to take their buttons back. Those of
// earlier ones are taken back in Slack, as those of an earlier process.
const offersMost = 100

// offer keeps an ended turn that offers to go on. f.mu is held.
func (f *turnScreen) offer(t agent.TurnView) {
	if !t.Offers() {
		return
	}
	f.offers = append(f.offers, t)
	if len(f.offers) > offersMost {
		f.offers = slices.Delete(f.offers, 0, 1)
	}
}

// CloseOffer implements [chat.Screen].
func (f *turnScreen) CloseOffer(turnID int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.offers, func(t agent.TurnView) bool { return t.ID == turnID })
	if i < 0 {
		remains{f.poster}.clear(turnID)
		return
	}
	t := f.offers[i]
	t.Continue, t.OpensPull = false, false
	f.conclude(t, nil, unchanged)
	f.offers = slices.Delete(f.offers, i, i+1)
}

// Abandon implements [chat.Screen].
func (f *turnScreen) Abandon(turnID int64, sentence string) {
	f.mu.Lock()
	s := f.shown[turnID]
	f.mu.Unlock()
	if s != nil {
		f.interrupted(s.latest, sentence, nil)
	}
}

// interrupted renders a turn of this process a last time.
func (f *turnScreen) interrupted(t agent.TurnView, sentence string, end func(error)) {
	t.State, t.Problem, t.EndedAt, t.Waiting = agent.TurnInterrupted, sentence, time.Now(), 0
	t.Cards = slices.DeleteFunc(slices.Clone(t.Cards), ask.Card.Open) // they are asked again
	f.ShowTurn(t, end)
}
