package slackui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/attachment"
	"deckhand/internal/chat"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/store/inbox"
)

func sharedFiles(files []slack.File) (out []chat.SharedFile) {
	for _, f := range files {
		out = append(out, chat.SharedFile{ID: f.ID, Name: f.Name})
	}
	return out
}

const (
	// fileTries is how often a call about a file is made that fails for a reason that may
	// pass, and filePause the time between.
	fileTries = 3
	filePause = time.Second
)

// files are what people attach, and what sessions post.
type files struct{ poster *poster }

// Fetch implements [agent.Files]: it asks Slack about the file now, and downloads it with
// the bot's token, from Slack's own hosts alone.
func (a *files) Fetch(ctx context.Context, f inbox.PromptFile, most int64) (name string, content []byte, err error) {
	var info *slack.File
	err = a.again(ctx, func() (err error) {
		info, _, _, err = a.poster.api.GetFileInfoContext(ctx, f.ID, 0, 0)
		return err
	})
	if err != nil {
		return "", nil, whyNoFile(err)
	}
	if refused := a.refusesFile(info, most); refused != nil {
		return info.Name, nil, refused
	}
	var body bytes.Buffer
	err = a.again(ctx, func() error {
		body.Reset()
		return a.poster.api.GetFileContext(ctx, cmp.Or(info.URLPrivateDownload, info.URLPrivate), &bounded{to: &body, left: most})
	})
	if errors.Is(err, errTooLong) {
		return info.Name, nil, tooLarge(most)
	}
	if err != nil {
		return info.Name, nil, fmt.Errorf("download %s: %w", f.ID, err)
	}
	return info.Name, body.Bytes(), nil
}

// refusesFile says why a file is not downloaded, or nil.
func (a *files) refusesFile(f *slack.File, most int64) *attachment.Refusal {
	switch {
	case f.Mode == "tombstone":
		return attachment.Refuse("was deleted")
	case f.Mode == "hidden_by_limit":
		return attachment.Refuse("is hidden by the limit of this Slack plan")
	case f.IsExternal || f.Mode == "external":
		return attachment.Refuse("does not lie in Slack but somewhere else, such as Google Drive. Attach the file itself")
	case f.UserTeam != "" && f.UserTeam != a.poster.self.TeamID:
		return attachment.Refuse("belongs to another team, and only this one's files are taken")
	case f.FileAccess != "" && f.FileAccess != "visible":
		return attachment.Refuse("may not be seen by Deckhand, as Slack says")
	case f.Mode != "" && f.Mode != "hosted" && f.Mode != "snippet":
		return attachment.Refuse("is a document of Slack's own, such as a canvas. Attach it as a file, or paste its text")
	case int64(f.Size) > most:
		return tooLarge(most)
	}
	return nil
}

func tooLarge(most int64) *attachment.Refusal {
	return attachment.Refuse("is too large: the limit is %s", attachment.Size(most))
}

// whyNoFile is what files.info says, for people where it is final.
func whyNoFile(err error) error {
	switch publish.Code(err) {
	case "file_not_found", "file_deleted":
		return attachment.Refuse("was deleted, or may not be seen by Deckhand")
	case "access_denied", "file_not_visible", "not_visible", "team_access_not_granted":
		return attachment.Refuse("may not be seen by Deckhand, as Slack says")
	case "missing_scope":
		return attachment.Refuse("cannot be read: the Slack app lacks the scope files:read. Ask an admin to add it, as bot doctor says")
	}
	return fmt.Errorf("ask Slack about a file: %w", err)
}

// again makes a call again that fails for a reason that may pass, until ctx ends.
func (a *files) again(ctx context.Context, call func() error) error {
	for try := 1; ; try++ {
		err := call()
		after, passes := publish.RetryAfter(err)
		if err == nil || !passes || try == fileTries || errors.Is(err, errTooLong) {
			return err
		}
		a.poster.c.Log.Warn("a call about a file is made again", zap.Error(err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(after, filePause)):
		}
	}
}

var errTooLong = errors.New("there is more than may be")

// bounded writes at most so many bytes: what Slack says of a file's size is not believed.
type bounded struct {
	to   *bytes.Buffer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, errTooLong
	}
	b.left -= int64(len(p))
	return b.to.Write(p)
}

// onlyToSlack keeps a redirection from leading anywhere but to the host that was asked, and
// to Slack's own.
func onlyToSlack(r *http.Request, via []*http.Request) error {
	to := r.URL
	if len(via) < 5 && (to.Host == via[0].URL.Host && to.Scheme == via[0].URL.Scheme || isSlacks(to)) {
		return nil
	}
	return fmt.Errorf("slack redirects to %s, which is not followed", to.Host)
}

func isSlacks(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	for _, own := range []string{"slack.com", "slack-gov.com"} {
		if u.Scheme == "https" && (host == own || strings.HasSuffix(host, "."+own)) {
			return true
		}
	}
	return false
}
