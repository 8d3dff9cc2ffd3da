package slackui

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"testing"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
)

// TestPicturesAreShownOnce: as the turn grows, at its end, and when it is shown once more;
// the same picture again, more than a few of them, and what is none, are not.
func TestPicturesAreShownOnce(t *testing.T) {
	t.Parallel()
	picture := func(turn, n, side int) claude.Item {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, side, 1))); err != nil {
			t.Fatal(err)
		}
		return claude.Item{Kind: claude.ItemImage, ID: fmt.Sprintf("t%d-%d/image0", turn, n), Final: true, Data: base64.StdEncoding.EncodeToString(b.Bytes())}
	}
	atDesk(t, func(d *desk) {
		show := func(turn int64, state agent.TurnState, items ...claude.Item) int {
			t.Helper()
			view := d.turn
			view.ID, view.State, view.Content, view.StartedAt = turn, state, claude.Output{Items: items}, time.Now()
			d.front().ShowTurn(view)
			d.rest()
			return d.slack.count("files.completeUploadExternal")
		}
		var items []claude.Item
		for n := range picturesMost + 2 {
			items = append(items, picture(77, n, n+1))
			if got := show(77, agent.TurnRunning, items...); got != min(n+1, picturesMost) {
				t.Errorf("after %d pictures %d are shown", n+1, got)
			}
		}
		for range 2 {
			if got := show(77, agent.TurnDone, items...); got != picturesMost {
				t.Errorf("at the end %d are shown", got)
			}
		}
		none := picture(78, 3, 1)
		none.Data = base64.StdEncoding.EncodeToString([]byte("<svg/>"))
		if got := show(78, agent.TurnRunning, picture(78, 1, 1), picture(78, 2, 100), none); got != picturesMost+1 {
			t.Errorf("of the next turn's, one new, %d are shown", got-picturesMost)
		}
		d.bot.app.screen.c.HidePictures = true
		if got := show(79, agent.TurnRunning, picture(79, 1, 200)); got != picturesMost+1 {
			t.Error("a picture is shown that is to be hidden")
		}
		for turn := range int64(2) {
			show(78+turn, agent.TurnDone)
		}
	})
}
