package memstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// samePost reports whether two are the same message.
func samePost(x, y outbox.PostedMessage) bool {
	return x.Kind == y.Kind && x.Subject == y.Subject && x.Part == y.Part && x.Audience == y.Audience
}

// SavePosts is [store.Store.SavePosts].
func (b *Store) SavePosts(ctx context.Context, posts ...outbox.PostedMessage) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, p := range posts {
		i := slices.IndexFunc(b.posts, func(q outbox.PostedMessage) bool { return samePost(p, q) })
		switch {
		case i < 0:
			p.CreatedAt, p.Open = time.Now(), false
			b.posts = append(b.posts, p)
		case p.TS != "":
			b.posts[i].ChannelID, b.posts[i].TS = p.ChannelID, p.TS
		}
	}
	return nil
}

// Posts is [store.Store.Posts].
func (b *Store) Posts(ctx context.Context, kind outbox.PostKind, subject string) ([]outbox.PostedMessage, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	return b.postsOf(kind, subject), nil
}

func (b *Store) postsOf(kind outbox.PostKind, subject string) (out []outbox.PostedMessage) {
	for _, p := range b.posts {
		if p.Kind == kind && p.Subject == subject {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(x, y outbox.PostedMessage) int {
		return cmp.Or(cmp.Compare(x.Part, y.Part), cmp.Compare(x.Audience, y.Audience))
	})
	return out
}

// postedAs is the ts of the message in its thread that shows something, or "".
func (b *Store) postedAs(kind outbox.PostKind, subject string) string {
	for _, p := range b.postsOf(kind, subject) {
		if p.Part == 0 && p.Audience == "" {
			return p.TS
		}
	}
	return ""
}

// ForgetPost is [store.Store.ForgetPost].
func (b *Store) ForgetPost(ctx context.Context, p outbox.PostedMessage, replica string) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if id, err := strconv.Atoi(p.Subject); p.Kind == outbox.PlacePost && err == nil && id >= 1 && id <= len(b.threads) {
		if owner := b.threads[id-1].LeaseOwner; owner != "" && owner != replica {
			return nil
		}
	}
	b.posts = slices.DeleteFunc(b.posts, func(q outbox.PostedMessage) bool {
		return q.Kind == p.Kind && q.Subject == p.Subject && (q.CreatedAt.Equal(p.CreatedAt) || q.TS == p.TS && q.TS != "")
	})
	return nil
}

// TurnPosts is [store.Store.TurnPosts].
func (b *Store) TurnPosts(ctx context.Context, turnID int64) ([]outbox.PostedMessage, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	return b.postsOfTurn(turnID), nil
}

func (b *Store) postsOfTurn(turnID int64) []outbox.PostedMessage {
	out := b.postsOf(outbox.TurnPost, strconv.FormatInt(turnID, 10))
	seen := map[string]bool{}
	for _, a := range b.approvals {
		if a.TurnID != turnID || seen[a.CardID] {
			continue
		}
		seen[a.CardID] = true
		for _, p := range b.postsOf(outbox.CardPost, a.CardID) {
			p.Open = slices.ContainsFunc(b.approvals, func(o *approvals.Approval) bool {
				return o.TurnID == turnID && o.CardID == a.CardID && bindable(o) && !o.Delivered
			})
			if p.Audience == "" {
				out = append(out, p)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y outbox.PostedMessage) int { return cmp.Compare(x.TS, y.TS) })
	return out
}

// WroteBelow is [store.Store.WroteBelow]: nobody does.
func (b *Store) WroteBelow(context.Context, threads.ThreadKey, int64, time.Time, time.Time) (bool, error) {
	return false, nil
}
