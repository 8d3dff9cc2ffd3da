package costs

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

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
	// mark is the first block's id, by which the message can be found again; or empty.
	mark string
	// stale is why it need not be sent any more; or nil.
	stale func() error
}

// attachment is a file. Alt describes a picture to those who cannot see it.
type attachment struct {
	name, title, alt string
	content          []byte
}

// rendering is how much of an answer Slack takes: charts and tables are young.
type rendering int

const (
	dressChart rendering = iota // with a native chart
	dressTable                  // without it
	dressText                   // plain text
)

// refusedBlocks are Slack's words for blocks that it does not take.
var refusedBlocks = []string{
	"invalid_blocks", "invalid_blocks_format", "invalid_arguments", "msg_blocks_too_long", "msg_too_long",
	"unsupported_block_type", "unknown_block_type", "only_one_table_allowed",
}

func refusesBlocks(err error) bool {
	refused, ok := errors.AsType[slack.SlackErrorResponse](err)
	return ok && slices.Contains(refusedBlocks, refused.Err)
}

// deliver sends an answer, in the richest rendering that Slack takes; a chart that it
// refuses becomes a picture. done is called once the message is there, or with why
// it will never be; the files follow.
func (a *Accountant) deliver(d delivery, done func(error)) {
	worn := dressChart
	if a.refusesCharts(d).Load() {
		worn = dressTable
	}
	a.deliverIn(d, worn, worn, done)
}

// refusesCharts is what is known of charts in messages of the kind.
func (a *Accountant) refusesCharts(d delivery) *atomic.Bool {
	if d.to != "" {
		return &a.whisperedChartsRefused
	}
	return &a.chartsRefused
}

func (d delivery) page(worn rendering) render.Page {
	d.view.Chart = worn == dressChart
	page := render.CostReport(d.view)
	if worn == dressText {
		page.Blocks = nil
	}
	if d.mark != "" && len(page.Blocks) > 0 {
		if head, ok := page.Blocks[0].(*slack.HeaderBlock); ok {
			marked := *head
			marked.BlockID = d.mark
			page.Blocks[0] = &marked
		}
	}
	return page
}

func (a *Accountant) deliverIn(d delivery, first, worn rendering, done func(error)) {
	page := d.page(worn)
	hasChart := render.HasCostChart(d.view.Answer)
	call := publish.Call{
		Method: publish.PostMessage, Channel: d.channel, Priority: publish.Answer, Group: d.threadTS, What: "costs",
		OnError: done,
	}
	if d.to != "" {
		call.Method, call.Channel = publish.PostEphemeral, ""
	}
	call.Do = func(ctx context.Context) error {
		if d.stale != nil {
			if err := d.stale(); err != nil {
				return publish.Permanent(err)
			}
		}
		channel, err := a.postPage(ctx, d, page)
		switch {
		case refusesBlocks(err) && worn < dressText:
			next := worn + 1
			if worn == dressChart && render.CostChart(d.view.Answer, d.view.Names) == nil {
				next = dressText // there was no chart to refuse
			}
			a.c.Log.Warn("slack refused blocks of an answer about costs", zap.Error(err), zap.Int("dress", int(worn)))
			a.deliverIn(d, first, next, done)
			return nil
		case err != nil:
			return err
		}
		if first == dressChart && worn == dressTable {
			a.refusesCharts(d).Store(true) // for as long as this process lives
		}
		a.files(d, channel, hasChart && worn != dressChart)
		done(nil)
		return nil
	}
	a.c.Publisher.Once(call)
}

// postPage posts a page and returns the channel that it stands in.
func (a *Accountant) postPage(ctx context.Context, d delivery, page render.Page) (channel string, err error) {
	place := publish.InMessage
	if d.to != "" {
		place = publish.InEphemeral
	}
	send := func(page render.Page) (err error) {
		options := page.PostOptions()
		if d.to != "" {
			options = page.MsgOptions()
		}
		if d.threadTS != "" {
			options = append(options, slack.MsgOptionTS(d.threadTS))
		}
		if d.to != "" {
			channel = d.channel
			_, err = a.c.API.PostEphemeralContext(ctx, d.channel, d.to, options...)
			return err
		}
		channel, _, err = a.c.API.PostMessageContext(ctx, d.channel, options...)
		return err
	}
	if len(page.Blocks) > 0 { // the next rendering has its files
		return channel, send(page)
	}
	err = a.c.Publisher.Reduced(place, "costs", page, send)
	return channel, err
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
					a.c.Say(channel, threadTS, render.Sentence("The file "+f.name+" could not be attached. Ask again in a while."))
				}
			},
		})
	}
}
