// Package costs shows answers about costs in the richest rendering that Slack takes: a native
// chart or a picture, a table or plain text, and a file. What is answered is package chat/costs's.
package costs

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
)

// API is what is asked of Slack's Web API: a [slack.Client].
type API interface {
	PostMessageContext(ctx context.Context, channelID string, options ...slack.MsgOption) (channel, ts string, err error)
	PostEphemeralContext(ctx context.Context, channelID, userID string, options ...slack.MsgOption) (ts string, err error)
	GetConversationHistoryContext(ctx context.Context, p *slack.GetConversationHistoryParameters) (*slack.GetConversationHistoryResponse, error)
}

// Screen shows answers in a workspace. All of it is required.
type Screen struct {
	API       API
	Publisher *publish.Scheduler
	// Say posts into a thread.
	Say func(channel, threadTS string, page view.Page)
	Log *zap.Logger
}

// Deliver sends an answer; where Slack does not show its chart, a picture does. done is called once
// the message is there, or with why it will never be; the files follow.
func (a Screen) Deliver(d view.CostDelivery, done func(error)) {
	page := render.CostReport(d.Report)
	for _, b := range page.Blocks {
		if sum, ok := b.(*slack.SectionBlock); ok && d.Mark != "" && sum.BlockID == render.CostSum {
			sum.BlockID = d.Mark
		}
	}
	call := publish.Call{
		Method: publish.PostMessage, Channel: d.Channel, Priority: publish.Answer, Group: d.Thread, What: "costs",
		OnEnd: done,
	}
	place := publish.InMessage
	if d.To != "" {
		call.Method, call.Channel, place = publish.PostEphemeral, "", publish.InEphemeral
	}
	call.Do = func(ctx context.Context) error {
		if d.Stale != nil {
			if err := d.Stale(); err != nil {
				return publish.Permanent(err)
			}
		}
		channel, drawn := d.Channel, false
		err := a.Publisher.Reduced(place, "costs", page, func(page render.Page) (err error) {
			drawn = hasChart(page)
			options := page.PostOptions()
			if d.To != "" {
				options = page.MsgOptions()
			}
			if d.Thread != "" {
				options = append(options, slack.MsgOptionTS(d.Thread))
			}
			if d.To != "" {
				_, err = a.API.PostEphemeralContext(ctx, d.Channel, d.To, options...)
				return err
			}
			channel, _, err = a.API.PostMessageContext(ctx, d.Channel, options...)
			return err
		})
		if err != nil {
			return err
		}
		a.files(d, channel, hasChart(page) && !drawn)
		return nil
	}
	a.Publisher.Once(call)
}

func hasChart(p render.Page) bool {
	return slices.ContainsFunc(p.Blocks, func(b slack.Block) bool { return b.BlockType() == slack.MBTDataVisualization })
}

// files uploads what belongs to a message that was posted in a channel.
func (a Screen) files(d view.CostDelivery, channel string, chart bool) {
	var list []slack.UploadFileParameters
	add := func(file slack.UploadFileParameters, err error) {
		if err != nil {
			a.Log.Error("make a file of an answer about costs", zap.Error(err))
			return
		}
		list = append(list, file)
	}
	if chart {
		add(chartFile(d.Report))
	}
	if d.CSV {
		add(csvFile(d.Report))
	}
	switch {
	case len(list) == 0:
	case d.To == "":
		a.upload(channel, d.Thread, list)
	default:
		a.uploadDirect(d, list)
	}
}

// uploadDirect brings files to a person's direct messages, with a word on what they
// are.
func (a Screen) uploadDirect(d view.CostDelivery, list []slack.UploadFileParameters) {
	page := render.Sentence("The files of what you asked for: " + view.CostTitle(d.Report.Answer, d.Report.Names) + ".")
	a.Publisher.Once(publish.Call{
		Method: publish.PostMessage, Priority: publish.Answer, Group: d.To, What: "announce files to " + d.To,
		Do: func(ctx context.Context) error {
			channel, _, err := a.API.PostMessageContext(ctx, d.To, page.PostOptions()...)
			if err == nil {
				a.upload(channel, "", list)
			}
			return err
		},
	})
}

// upload puts files into a channel or a thread, in their order.
func (a Screen) upload(channel, threadTS string, list []slack.UploadFileParameters) {
	key := "files/" + rand.Text()
	for _, f := range list {
		f.Channel, f.ThreadTimestamp = channel, threadTS
		a.Publisher.Upload(f, publish.Call{
			Key: key, Priority: publish.Normal, Group: threadTS, What: "attach " + f.Filename,
			OnEnd: func(err error) {
				if err != nil && threadTS != "" {
					a.Say(channel, threadTS, view.Sentence("The file "+f.Filename+" could not be attached. Ask again in a while."))
				}
			},
		})
	}
}

// Delivered looks for an answer among what was posted in a channel since some time.
func (a Screen) Delivered(ctx context.Context, channel string, since time.Time, mark string) (bool, error) {
	history, err := a.API.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
		ChannelID: channel, Oldest: fmt.Sprintf("%d.000000", since.Unix()), Limit: 200,
	})
	if err != nil {
		return false, fmt.Errorf("look for a digest: %w", err)
	}
	for _, m := range history.Messages {
		if slices.ContainsFunc(m.Blocks.BlockSet, func(b slack.Block) bool { return b.ID() == mark }) {
			return true, nil
		}
	}
	return false, nil
}

// Refused is Slack's word for why it did not do something, or empty.
func (Screen) Refused(err error) string { return publish.Code(err) }
