package agent

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"deckhand/internal/agent/place"
	"deckhand/internal/agent/threadtools"
	"deckhand/internal/agent/tools"
	"deckhand/internal/attachment"
	"deckhand/internal/store/threads"
)

// preview is the tool by which a session shows the project's page, before its work and after. It
// is used once at a time in a thread: each is a browser.
func preview(t threads.Thread, p place.Project, host *place.Host, chat threadtools.Chat) tools.Tool {
	var one sync.Mutex
	return tools.Tool{
		Name:        "preview",
		Description: "Show people in this Slack thread how the project's page looks: before the work of this thread's branch, and now, with what is not committed yet. The page is started with `" + p.Preview.Run + "` in a sandbox of its own, without a network, and a browser takes a picture of " + p.Preview.URL + ". It takes up to a few minutes. The pictures also become part of the pull request.",
		Schema:      `{"type":"object","properties":{},"additionalProperties":false}`,
		Run: func(ctx context.Context, c tools.Call) (string, error) {
			one.Lock()
			defer one.Unlock()
			now, err := host.Look(ctx, t, p)
			if err != nil {
				return "", fmt.Errorf("no picture was taken: %w", err)
			}
			after := threadtools.File{Name: "after.png", Title: "After", Content: now.After}
			files, said := []threadtools.File{after}, "Posted: the page now. There is no picture of before: "+now.Why
			if now.Before != nil {
				files = []threadtools.File{{Name: "before.png", Title: "Before, at " + now.Base[:min(len(now.Base), 10)], Content: now.Before}, after}
				said = "Posted: the page before and now."
			} else {
				files[0].Title = "After. Before is not shown: " + cmp.Or(now.Why, "it is not known")
			}
			if err := chat.PostFiles(ctx, t.Key(), files...); err != nil {
				return "", err
			}
			if err := host.KeepPictures(t, now); err != nil {
				return "", fmt.Errorf("the pictures are posted, and could not be kept for the pull request: %w", err)
			}
			in := attachment.Inbox{Workspace: t.Workspace, Thread: t.ID}
			for _, f := range files {
				if at, err := in.Put(c.Approval.TurnID, f.Name, f.Content); err == nil {
					said += " Read " + filepath.Join(t.Workspace, at) + " to see it."
				}
			}
			return said, nil
		},
	}
}
