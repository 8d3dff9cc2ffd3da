package costs

import (
	"bytes"
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
)

// delivery is an answer about costs on its way to people: a message, and the files
// that belong to it.
type delivery struct {
	view     render.CostReportView
	channel  string // or a person, for a direct message
	threadTS string
	// to is the only person who may see it; then the files go to their direct
	// messages, since files cannot be shown to one person in a channel. Empty: all.
	to  string
	csv *attachment
	// mark is a block's id, by which the message can be found again; or empty.
	mark string
	// stale is why it need not be sent any more; or nil.
	stale func() error
}

// attachment is a file. Alt describes a picture to those who cannot see it.
type attachment struct {
	name, title, alt string
	content          []byte
}

// deliver sends an answer; where Slack does not show its chart, a picture does. done is called once
// the message is there, or with why it will never be; the files follow.
func (a *Accountant) deliver(d delivery, done func(error)) {
	page := render.CostReport(d.view)
	for _, b := range page.Blocks {
		if sum, ok := b.(*slack.SectionBlock); ok && d.mark != "" && sum.BlockID == render.CostSum {
			sum.BlockID = d.mark
		}
	}
	call := publish.Call{
		Method: publish.PostMessage, Channel: d.channel, Priority: publish.Answer, Group: d.threadTS, What: "costs",
		OnError: done,
	}
	place := publish.InMessage
	if d.to != "" {
		call.Method, call.Channel, place = publish.PostEphemeral, "", publish.InEphemeral
	}
	call.Do = func(ctx context.Context) error {
		if d.stale != nil {
			if err := d.stale(); err != nil {
				return publish.Permanent(err)
			}
		}
		channel, drawn := d.channel, false
		err := a.c.Publisher.Reduced(place, "costs", page, func(page render.Page) (err error) {
			drawn = hasChart(page)
			options := page.PostOptions()
			if d.to != "" {
				options = page.MsgOptions()
			}
			if d.threadTS != "" {
				options = append(options, slack.MsgOptionTS(d.threadTS))
			}
			if d.to != "" {
				_, err = a.c.API.PostEphemeralContext(ctx, d.channel, d.to, options...)
				return err
			}
			channel, _, err = a.c.API.PostMessageContext(ctx, d.channel, options...)
			return err
		})
		if err != nil {
			return err
		}
		a.files(d, channel, hasChart(page) && !drawn)
		done(nil)
		return nil
	}
	a.c.Publisher.Once(call)
}

func hasChart(p render.Page) bool {
	return slices.ContainsFunc(p.Blocks, func(b slack.Block) bool { return b.BlockType() == slack.MBTDataVisualization })
}

// files uploads what belongs to a message that was posted in a channel.
func (a *Accountant) files(d delivery, channel string, chart bool) {
	var list []*attachment
	if chart {
		picture, err := chartFile(d.view)
		if err != nil {
			a.c.Log.Error("draw the chart of an answer about costs", zap.Error(err))
		} else {
			list = append(list, picture)
		}
	}
	if d.csv != nil {
		list = append(list, d.csv)
	}
	switch {
	case len(list) == 0:
	case d.to == "":
		a.upload(channel, d.threadTS, list)
	default:
		a.uploadDirect(d, list)
	}
}

// uploadDirect brings files to a person's direct messages, with a word on what they
// are.
func (a *Accountant) uploadDirect(d delivery, list []*attachment) {
	page := render.Sentence("The files of what you asked for: " + render.CostTitle(d.view.Answer, d.view.Names) + ".")
	a.c.Publisher.Once(publish.Call{
		Method: publish.PostMessage, Priority: publish.Answer, Group: d.to, What: "announce files to " + d.to,
		Do: func(ctx context.Context) error {
			channel, _, err := a.c.API.PostMessageContext(ctx, d.to, page.PostOptions()...)
			if err == nil {
				a.upload(channel, "", list)
			}
			return err
		},
	})
}

// uploadTimeout bounds one upload, which is three calls.
const uploadTimeout = time.Minute

// upload puts files into a channel or a thread, in their order.
func (a *Accountant) upload(channel, threadTS string, list []*attachment) {
	key := "files/" + rand.Text()
	for _, f := range list {
		a.c.Publisher.Once(publish.Call{
			Method: publish.UploadFile, Key: key, Priority: publish.Normal, Group: threadTS, What: "attach " + f.name, Timeout: uploadTimeout,
			Do: func(ctx context.Context) error {
				_, err := a.c.API.UploadFileContext(ctx, slack.UploadFileParameters{
					Reader: bytes.NewReader(f.content), FileSize: len(f.content), Filename: f.name, Title: f.title, AltTxt: f.alt,
					Channel: channel, ThreadTimestamp: threadTS,
				})
				return err
			},
			OnError: func(error) {
				if threadTS != "" {
					a.c.Say(channel, threadTS, view.Sentence("The file "+f.name+" could not be attached. Ask again in a while."))
				}
			},
		})
	}
}
