package slackui

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/attachment"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/threads"
)

const (
	// picturesMost is how many pictures of one turn are shown, and pictureBytes how large
	// each may be as the tool returns it, in base64.
	picturesMost = 5
	pictureBytes = 12 << 20
	// picturesKept bounds what is remembered of those that were shown.
	picturesKept = 1000
)

// pictureKey names a picture in a thread by what it looks like.
type pictureKey struct {
	thread threads.ThreadKey
	sum    [sha256.Size]byte
}

// pictures are those of tools that were shown, each once in its thread. A crash may lose one and shows
// none again. The zero value is ready to use; the turns' lock guards it.
type pictures struct{ shown map[pictureKey]bool }

// show uploads the pictures that tools have returned since the turn was shown last.
func (f *pictures) show(to *poster, s *shownTurn, t agent.TurnView, o render.Options) {
	if to.c.HidePictures {
		return
	}
	items := len(t.Content.Items)
	from := min(s.looked, items)
	s.looked = items
	for _, p := range render.Pictures(t, o, from, attachment.Folder) {
		key := pictureKey{t.Thread, sha256.Sum256([]byte(p.Data))}
		if f.shown[key] || s.pictures >= picturesMost || len(p.Data) > pictureBytes {
			continue
		}
		if f.shown == nil || len(f.shown) >= picturesKept {
			f.shown = map[pictureKey]bool{}
		}
		f.shown[key] = true
		s.pictures++
		to.uploadPicture(t.Thread, p)
	}
}

func (p *poster) uploadPicture(k threads.ThreadKey, shown render.Picture) {
	p.publisher.Once(publish.Call{
		Method: publish.UploadFile, Priority: publish.Normal, Group: k.ThreadTS, What: "show a picture of a tool",
		Timeout: time.Minute,
		Do: func(ctx context.Context) error {
			raw, err := base64.StdEncoding.DecodeString(shown.Data)
			if err != nil {
				return publish.Permanent(fmt.Errorf("a tool's picture: %w", err))
			}
			name, content, err := attachment.Clean(ctx, shown.Title, raw)
			if err != nil {
				return publish.Permanent(fmt.Errorf("a tool's picture %w", err))
			}
			return p.uploadOnce(ctx, k, slack.UploadFileParameters{Content: string(content), Filename: name, Title: shown.Title, AltTxt: shown.Alt})
		},
		OnEnd: func(err error) {
			if err != nil {
				p.c.Log.Warn("show a tool's picture", zap.Error(err))
			}
		},
	})
}
