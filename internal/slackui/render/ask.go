package render

import (
	"regexp"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// askMax is how long a prompt in a modal may be, in characters.
const askMax = 3000

// namedPerson is a mention of a person in a text that is escaped.
var namedPerson = regexp.MustCompile(`&lt;@([UW][A-Z0-9]+)(?:\|[^&<>]*)?&gt;`)

// Ask is the modal in which somebody asks for work: about a message, or anywhere.
func Ask(v view.Ask) slack.ModalViewRequest {
	m := modal("Ask Deckhand", "Ask", view.CallbackAsk, view.Encode(v.Place))
	add := func(b slack.Block) { m.Blocks.BlockSet = append(m.Blocks.BlockSet, b) }
	prompt := longText(view.AskPrompt, askMax)
	prompt.Placeholder = plain("Find out why, and propose a fix", 150)
	switch o := (Options{Redact: v.Redact}); {
	case v.Place.TS != "":
		about := "A message"
		if mrkdwn.IsID(v.Author) {
			about = "A message of " + mrkdwn.Mention(v.Author)
		}
		if text := plaintext.Clip(plaintext.OneLine(plaintext.Visible(o.redact(v.Text))), 300); text != "" {
			about += ":\n> " + namedPerson.ReplaceAllString(mrkdwn.Escape(text), "<@$1>") // a window calls nobody
		}
		add(section("about", about))
	default:
		channel := slack.NewOptionsSelectBlockElement(slack.OptTypeConversations, plain("Your direct messages with Deckhand", 150), view.AskChannel)
		channel.Filter = &slack.SelectBlockElementFilter{Include: []string{"public", "private"}, ExcludeExternalSharedChannels: true, ExcludeBotUsers: true}
		in := slack.NewInputBlock(view.AskChannel, plain("Where", 2000), plain("The channel's project is worked on. Left empty, Deckhand answers you alone.", 2000), channel)
		in.Optional = true
		add(in)
	}
	add(slack.NewInputBlock(view.AskPrompt, plain("What should Deckhand do?", 2000), nil, prompt))
	if v.Place.TS != "" {
		add(contextBlock("where", "It works on *"+mrkdwn.Escape(v.Project)+"*, and answers in the message's thread. The message goes with your words, as something to read."))
	}
	return m
}

// Asked is the message that shows who has asked for what in a modal. prompt is plain text.
func Asked(user, prompt string, o Options) Page {
	text := mrkdwn.Escape(plaintext.Clip(plaintext.Mute(plaintext.Printable(o.redact(prompt))), askMax-200))
	head := mrkdwn.Mention(user) + " asks Deckhand:"
	return Page{
		Text:   mrkdwn.ClipEscaped(head+" "+plaintext.OneLine(text), fallbackMax),
		Blocks: []slack.Block{section("asked", head+"\n> "+strings.ReplaceAll(text, "\n", "\n> "))},
	}
}

// Notice is a modal that says a sentence, for where no message can be shown.
func Notice(sentence string) slack.ModalViewRequest {
	v := modal("Deckhand", "", "notice", "")
	v.Blocks.BlockSet = []slack.Block{section("notice", mrkdwn.Escape(sentence))}
	return v
}
