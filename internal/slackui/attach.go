package slackui

import (
	"context"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// attach uploads what a turn's messages leave out.
func (f *frontend) attach(t agent.TurnView) {
	f.upload(t.Thread, fmt.Sprintf("turn-%d.md", t.ID), "The whole text", render.FullText(t, f.rendering(t)))
}

// Attach implements [agent.Frontend].
func (f *frontend) Attach(k store.ThreadKey, name, text string) {
	f.upload(k, name, name, f.app.c.Redact(text))
}

func (f *frontend) upload(k store.ThreadKey, name, title, text string) {
	f.app.publisher.Once(publish.Call{
		Method: publish.UploadFile, Priority: publish.Normal, Group: k.ThreadTS, What: "attach " + name,
		Timeout: time.Minute,
		Do: func(ctx context.Context) error {
			_, err := f.app.api.UploadFileContext(ctx, slack.UploadFileParameters{
				Content: text, FileSize: len(text), Filename: name, Title: title, Channel: k.ChannelID, ThreadTimestamp: k.ThreadTS,
			})
			return err
		},
		OnError: func(error) {
			f.Say(k, title+" could not be attached. Ask for the part that you miss.")
		},
	})
}
