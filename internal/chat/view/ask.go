package view

import (
	"encoding/json"
	"strings"
)

// AskPrompt and AskChannel are the blocks of its inputs, and the inputs' action ids.
const (
	AskPrompt  = "prompt"
	AskChannel = "channel"
)

// AskPlace is where somebody asks: the message that they ask about, or nothing.
type AskPlace struct {
	Channel string `json:"channel,omitempty"`
	Thread  string `json:"thread,omitempty"` // the ts of its thread's first message
	TS      string `json:"ts,omitempty"`
}

// ParseAskPlace reads a modal's private metadata.
func ParseAskPlace(metadata string) (p AskPlace, ok bool) {
	err := json.Unmarshal([]byte(metadata), &p)
	return p, err == nil && (p.Channel == "") == (p.TS == "") && (p.Channel == "") == (p.Thread == "")
}

// Ask is what a modal says in which somebody asks for work.
type Ask struct {
	Place AskPlace
	// Author wrote the message that is asked about, and Text is it, as Slack delivers text.
	Author, Text string
	Project      string // that works there; empty where the person chooses
	Redact       func(string) string
}

// ParseAsk reads what was asked for, and in which channel; empty for direct messages.
func ParseAsk(values Inputs) (prompt, channel string) {
	return strings.TrimSpace(values[AskPrompt][AskPrompt].Value), values[AskChannel][AskChannel].Choice()
}
