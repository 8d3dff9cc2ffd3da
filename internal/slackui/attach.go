package slackui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/agent/threadtools"
	"deckhand/internal/attachment"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/threads"
)

const (
	// uploadsAgain is after how long files are attached again where Slack has refused one for
	// good.
	uploadsAgain = time.Hour
	// attachedKept bounds the ended turns of which it is known what became of their files.
	attachedKept = 1000
)

// attachments are the files of ended turns: what their messages leave out. The zero value is
// ready to use.
type attachments struct {
	mu      sync.Mutex
	refused time.Time            // Slack takes no files, as it said then
	over    map[int64]bool       // turns whose files are there (true), or cannot be
	going   map[int64]*attaching // turns whose files are being attached
}

// attaching is a turn whose files are on their way.
type attaching struct {
	latest agent.TurnView // to be shown when that is over
	change func(*publish.Message)
	ends   []func(error)
}

// takes reports whether what is left out of a turn's messages can be attached.
func (a *attachments) takes(turnID int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if there, known := a.over[turnID]; known {
		return there
	}
	return a.refused.IsZero() || time.Since(a.refused) > uploadsAgain
}

// begin notes that a turn is to be shown as it ended, and reports whether its files are to be
// attached before that is the last of it. Else it is shown when they are, or is to be shown.
func (a *attachments) begin(t agent.TurnView, end func(error), change func(*publish.Message)) (attach, wait bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.over[t.ID]; known {
		return false, false
	}
	g := a.going[t.ID]
	if wait = g != nil; !wait {
		g = &attaching{}
		if a.going == nil {
			a.going = map[int64]*attaching{}
		}
		a.going[t.ID] = g
	}
	g.latest, g.change = t, change
	if end != nil {
		g.ends = append(g.ends, end)
	}
	return !wait, wait
}

// done notes what became of a turn's files. It returns what waits for that.
func (a *attachments) done(turnID int64, there, refused bool) *attaching {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.over) >= attachedKept || a.over == nil {
		a.over = map[int64]bool{}
	}
	a.over[turnID] = there
	if refused {
		a.refused = time.Now()
	}
	return a.leave(turnID)
}

// stop forgets a turn whose messages could not be shown. It returns what waits for its files.
func (a *attachments) stop(turnID int64) *attaching {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leave(turnID)
}

func (a *attachments) leave(turnID int64) *attaching {
	g := a.going[turnID]
	delete(a.going, turnID)
	return g
}

// end is all of ends at once.
func (g *attaching) end(err error) {
	for _, end := range g.ends {
		end(err)
	}
}

// conclude shows an ended turn. What its messages leave out is attached below them; they are
// final when it is. If Slack takes no files, they are shown once more, with all of it that a
// few messages hold. Whoever does this again, as a process was killed meanwhile, attaches
// what is not there. f.mu is held.
func (f *turnScreen) conclude(t agent.TurnView, end func(error), change func(*publish.Message)) {
	o := f.rendering(t)
	files := render.Files(t, o)
	if len(files) == 0 {
		f.publishPages(t, o, end, change)
		return
	}
	attach, wait := f.files.begin(t, end, change)
	switch {
	case wait:
		return
	case !attach:
		f.publishPages(t, o, end, change)
		return
	}
	f.publishPages(t, o, func(err error) {
		if err != nil {
			f.files.stop(t.ID).end(err)
			return
		}
		f.attach(t, files)
	}, func(m *publish.Message) {
		change(m)
		m.Final = false
	})
}

// attach uploads the files of an ended turn, each once.
func (f *turnScreen) attach(t agent.TurnView, files []render.File) {
	f.publisher.Once(publish.Call{
		Method: publish.UploadFile, Priority: publish.Answer, Group: t.Thread.ThreadTS, What: "attach what a turn's messages leave out",
		Timeout: time.Minute,
		Do: func(ctx context.Context) error {
			there, err := f.attached(ctx, t)
			for _, file := range files {
				if err == nil && !slices.Contains(there, file.Name) {
					_, err = f.api.UploadFileContext(ctx, slack.UploadFileParameters{
						Content: file.Text, FileSize: len(file.Text), Filename: file.Name, Title: file.Title,
						Channel: t.Thread.ChannelID, ThreadTimestamp: t.Thread.ThreadTS,
					})
				}
			}
			return err
		},
		OnEnd: func(err error) {
			if errors.Is(err, publish.ErrTooMany) { // whoever shows the turn may be calling
				f.files.stop(t.ID).end(err)
				return
			}
			if err != nil {
				f.c.Log.Warn("slack takes no file; a long answer is shown in messages", zap.Int64("turn", t.ID), zap.Error(err))
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			g := f.files.done(t.ID, err == nil, err != nil && !publish.IsTemporary(err) && !ofThePlace(err))
			f.publishPages(g.latest, f.rendering(g.latest), g.end, g.change)
		},
	})
}

// ofThePlace reports whether Slack refuses a file for where it was to be, which tells nothing
// of other threads.
func ofThePlace(err error) bool {
	return publish.RefusedAs(err,
		"channel_not_found", "invalid_channel", "not_in_channel", "is_archived", "thread_not_found", "message_not_found", "invalid_thread_ts",
		"restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_locked", "posting_to_general_channel_denied")
}

// attached are the names of the files that we have attached in a turn's thread since it began.
func (f *turnScreen) attached(ctx context.Context, t agent.TurnView) (names []string, err error) {
	found, err := f.ourPosts(ctx, whereOf(t.Thread), t.StartedAt)
	for _, m := range found {
		for _, file := range m.Files {
			names = append(names, file.Name)
		}
	}
	return names, err
}

// fileTitleMost bounds a file's title, in bytes.
const fileTitleMost = 200

// PostFiles implements [threadtools.Chat]. Pictures are decoded and written anew, and texts are redacted.
func (a *files) PostFiles(ctx context.Context, k threads.ThreadKey, files ...threadtools.File) error {
	var out []slack.UploadFileParameters
	for _, f := range files {
		file, err := attachment.Read(ctx, f.Name, f.Content)
		switch {
		case err != nil:
			return fmt.Errorf("%s %w", f.Name, err)
		case file.Kind == attachment.Picture && a.poster.c.HidePictures:
			return errors.New("pictures are not shown in this workspace (attachments: tool_pictures in deckhand.yaml)")
		case file.Kind == attachment.Text && !utf8.Valid(file.Content):
			return fmt.Errorf("%s is text in another encoding than UTF-8, which cannot be searched for secrets: convert it first", f.Name)
		case file.Kind == attachment.Text:
			file.Content = []byte(a.poster.c.Redact(string(file.Content)))
		}
		title := plaintext.Prefix(a.poster.c.Redact(plaintext.OneLine(f.Title)), fileTitleMost)
		out = append(out, slack.UploadFileParameters{Content: string(file.Content), Filename: file.Name, Title: cmp.Or(title, file.Name)})
	}
	ended := make(chan error, 1)
	a.poster.publisher.Once(publish.Call{
		Method: publish.UploadFile, Priority: publish.Normal, Group: k.ThreadTS, What: "post files of a session", Timeout: time.Minute,
		Do:    func(ctx context.Context) error { return a.poster.uploadOnce(ctx, k, out...) },
		OnEnd: func(err error) { ended <- err },
	})
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		a.poster.c.Log.Warn("post files of a session", zap.String("name", files[0].Name), zap.Error(err))
		return fmt.Errorf("the file was not posted (Slack: %s); tell people so", cmp.Or(publish.Code(err), "no answer"))
	}
	return nil
}

// uploadOnce uploads files into a thread, as one message. An upload that was not answered may be there all the same,
// and is not made again.
func (p *poster) uploadOnce(ctx context.Context, k threads.ThreadKey, files ...slack.UploadFileParameters) (err error) {
	done := slack.CompleteUploadExternalParameters{Channel: k.ChannelID, ThreadTimestamp: k.ThreadTS}
	for _, f := range files {
		var to *slack.GetUploadURLExternalResponse
		if to, err = p.api.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{AltTxt: f.AltTxt, FileName: f.Filename, FileSize: len(f.Content)}); err == nil {
			err = p.api.UploadToURL(ctx, slack.UploadToURLParameters{UploadURL: to.UploadURL, Content: f.Content, Filename: f.Filename})
		}
		if err != nil {
			break
		}
		done.Files = append(done.Files, slack.FileSummary{ID: to.FileID, Title: f.Title})
	}
	if err == nil {
		_, err = p.api.CompleteUploadExternalContext(ctx, done)
	}
	if _, limited := errors.AsType[*slack.RateLimitedError](err); err != nil && !limited {
		return publish.Permanent(err)
	}
	return err
}
