package slackui

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/store"
)

// visitors remember when this process has heard of whom in a thread. The zero value is
// ready to use.
type visitors struct {
	mu   sync.Mutex
	seen map[visitor]time.Time
}

type visitor struct {
	thread store.ThreadKey
	user   string
	wrote  bool // and not only did something
}

// peopleMost is how many are remembered before those are forgotten of whom nothing was
// heard for a day.
const peopleMost = 4096

// heard notes that somebody has done something in a thread, or has written there.
func (p *visitors) heard(k store.ThreadKey, user string, wrote bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.seen == nil {
		p.seen = map[visitor]time.Time{}
	}
	if len(p.seen) >= peopleMost {
		for who, at := range p.seen {
			if now.Sub(at) > 24*time.Hour {
				delete(p.seen, who)
			}
		}
	}
	p.seen[visitor{k, user, false}] = now
	if wrote {
		p.seen[visitor{k, user, true}] = now
	}
}

// follows reports whether somebody has written in a thread, as far as this process has
// heard: Slack tells them of every reply.
func (p *visitors) follows(k store.ThreadKey, user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, wrote := p.seen[visitor{k, user, true}]
	return wrote
}

// saw reports whether somebody has done something in a thread since then.
func (p *visitors) saw(k store.ThreadKey, user string, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[visitor{k, user, false}].After(since)
}

// takeAway returns what ends the showing of a turn of which some pages have no place any more,
// as those that had a closing answer before: their messages are deleted, and then end is called.
func (f *frontend) takeAway(t agent.TurnView, pages []int, end func(error)) func(error) {
	if len(pages) == 0 || end == nil {
		return end
	}
	return func(err error) {
		if err != nil {
			end(err)
			return
		}
		f.app.publisher.Once(publish.Call{
			Method: publish.DeleteMessage, Priority: publish.Answer, Group: t.Thread.ThreadTS, Patient: true, OnEnd: end,
			What: "take away what a closing answer has said again",
			Do: func(ctx context.Context) error {
				posted, err := f.app.c.Store.TurnPosts(ctx, t.ID)
				for _, m := range posted {
					if m.Kind == store.TurnPost && slices.Contains(pages, m.Part) {
						err = errors.Join(err, f.remove(ctx, m))
					}
				}
				return err
			},
		})
	}
}

// remove deletes a message of ours, also one that is a stream.
func (f *frontend) remove(ctx context.Context, m store.PostedMessage) error {
	_, _, err := f.app.api.DeleteMessageContext(ctx, m.ChannelID, m.TS)
	if refusedAs(err, "cant_delete_message") {
		if _, _, err := f.app.api.StopStreamContext(ctx, m.ChannelID, m.TS); err != nil && !publish.IsOver(err) {
			return err
		}
		_, _, err = f.app.api.DeleteMessageContext(ctx, m.ChannelID, m.TS)
	}
	if refusedAs(err, "message_not_found") {
		return nil
	}
	return err
}
