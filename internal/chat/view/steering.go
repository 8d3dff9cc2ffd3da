package view

import (
	"strings"

	"deckhand/internal/agent"
	"deckhand/internal/money"
)

// Model is a model that may be chosen, with its price, in plain words.
func Model(m agent.ModelChoice) string {
	if !m.Priced {
		return m.Name + " (no price known)"
	}
	return m.Name + " (" + money.USD(m.Input) + " in, " + money.USD(m.Output) + " out)"
}

// Models says in plain words which models may be chosen, and what they cost. now is the one
// that is chosen, empty for the first; what is none of them marks none.
func Models(list []agent.ModelChoice, now string) string {
	switch len(list) {
	case 0:
		return "This project names no model: Claude Code chooses it. An admin can write models under the project in deckhand.yaml."
	case 1:
		return "Work in this project is done by " + Model(list[0]) + " per million tokens. An admin can write models under the project in deckhand.yaml, for a choice."
	}
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = Model(m)
		if m.Name == now || now == "" && i == 0 {
			names[i] += ", which answers now"
		}
	}
	return "You can choose, at these prices per million tokens: " + strings.Join(names, "; ") + "."
}
