package render

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render/mrkdwn"
)

// CallbackAsk is the callback id of the modal that [Ask] makes; its private metadata is an
// [AskPlace].
const CallbackAsk = "ask"

// AskPrompt and AskChannel are the blocks of its inputs, and the inputs' action ids.
const (
	AskPrompt  = "prompt"
	AskChannel = "channel"
)

// askMax is how long a prompt in a modal may be, in characters.
const askMax = 3000

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

// AskView is what a modal says in which somebody asks for work.
type AskView struct {
	Place AskPlace
	// Author wrote the message that is asked about, and Text is it, as Slack delivers text.
	Author, Text string
	Project      string // that works there; empty where the person chooses
	Redact       func(string) string
}

// namedPerson is a mention of a person in a text that is escaped.
var namedPerson = regexp.MustCompile(`&lt;@([UW][A-Z0-9]+)(?:\|[^&<>]*)?&gt;`)

// Ask is the modal in which somebody asks for work: about a message, or anywhere.
func Ask(v AskView) slack.ModalViewRequest {
	m := modal("Ask Deckhand", CallbackAsk, encodedJSON(v.Place))
	m.Submit = plain("Ask", modalTitle)
	add := func(b slack.Block) { m.Blocks.BlockSet = append(m.Blocks.BlockSet, b) }
	prompt := slack.NewPlainTextInputBlockElement(plain("Find out why, and propose a fix", 150), AskPrompt)
	prompt.Multiline, prompt.MaxLength = true, askMax
	switch o := (Options{Redact: v.Redact}); {
	case v.Place.TS != "":
		about := "A message"
		if mrkdwn.IsID(v.Author) {
			about = "A message of " + mrkdwn.Mention(v.Author)
		}
		if text := mrkdwn.Clip(mrkdwn.OneLine(mrkdwn.Visible(o.redact(v.Text))), 300); text != "" {
			about += ":\n> " + namedPerson.ReplaceAllString(mrkdwn.Escape(text), "<@$1>") // a window calls nobody
		}
		add(section("about", about))
	default:
		channel := slack.NewOptionsSelectBlockElement(slack.OptTypeConversations, plain("Your direct messages with Deckhand", 150), AskChannel)
		channel.Filter = &slack.SelectBlockElementFilter{Include: []string{"public", "private"}, ExcludeExternalSharedChannels: true, ExcludeBotUsers: true}
		in := slack.NewInputBlock(AskChannel, plain("Where", 2000), plain("The channel's project is worked on. Left empty, Deckhand answers you alone.", 2000), channel)
		in.Optional = true
		add(in)
	}
	add(slack.NewInputBlock(AskPrompt, plain("What should Deckhand do?", 2000), nil, prompt))
	if v.Place.TS != "" {
		add(contextBlock("where", "It works on *"+mrkdwn.Escape(v.Project)+"*, and answers in the message's thread. The message goes with your words, as something to read."))
	}
	return m
}

// ParseAsk reads what was asked for, and in which channel; empty for direct messages.
func ParseAsk(values map[string]map[string]slack.BlockAction) (prompt, channel string) {
	return strings.TrimSpace(values[AskPrompt][AskPrompt].Value), values[AskChannel][AskChannel].SelectedConversation
}

// Asked is the message that shows who has asked for what in a modal. prompt is plain text.
func Asked(user, prompt string, o Options) Page {
	text := mrkdwn.Escape(mrkdwn.Clip(mrkdwn.Mute(mrkdwn.Printable(o.redact(prompt))), askMax-200))
	head := mrkdwn.Mention(user) + " asks Deckhand:"
	return Page{
		Text:   mrkdwn.ClipEscaped(head+" "+mrkdwn.OneLine(text), fallbackMax),
		Blocks: []slack.Block{section("asked", head+"\n> "+strings.ReplaceAll(text, "\n", "\n> "))},
	}
}

// Notice is a modal that says a sentence, for where no message can be shown.
func Notice(sentence string) slack.ModalViewRequest {
	v := modal("Deckhand", "notice", "")
	v.Submit, v.Close = nil, plain("Close", modalTitle)
	v.Blocks.BlockSet = []slack.Block{section("notice", mrkdwn.Escape(sentence))}
	return v
}
