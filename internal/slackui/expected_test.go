package slackui

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/outbox"
)

// page is a page as it is to be seen; plain, where Slack refused its blocks.
func seen(p render.Page) (text, blocks string) { return p.Text, canonical(string(mustJSON(p.Blocks))) }

// page is a card as it is to be seen in the thread.
func (d *desk) page(list []approvals.Approval) render.Page {
	posts, err := d.store.Posts(context.Background(), outbox.CardPost, list[0].CardID)
	d.must(err)
	return d.bot.app.screen.poster.shown(d.bot.app.CardIn(context.Background(), list, posts))
}

// worded are the texts of a page as they are to be seen where Slack takes no blocks.
func worded(p render.Page) []string {
	all, _ := p.Worded()
	return []string{all.Text, p.Least().Text}
}

// less are the blocks of a page as they are to be seen where Slack refuses some.
func less(p render.Page) []string {
	_, plain := seen(p.Plain())
	p.Blocks = slices.DeleteFunc(slices.Clone(p.Blocks), func(b slack.Block) bool { return b.BlockType() == "context_actions" })
	_, unrated := seen(p)
	return []string{plain, unrated}
}

// expected is a message as it is to be seen.
type expected struct {
	what, text, blocks string
	turn               int64    // of a page; else 0
	worded             []string // what it is where Slack takes no blocks
	less               []string // and where it refuses some
}

// is reports whether a message shows it, or what is left of it where Slack refused some.
func (w expected) is(m shownMessage) bool {
	return m.text == w.text && (m.blocks == w.blocks || slices.Contains(w.less, m.blocks)) || m.blocks == "" && slices.Contains(w.worded, m.text)
}

// assign says which message shows what is wanted, -1 for none. Messages may look alike, and
// more so where Slack refused some of them: one is left out only if it must be, and pages
// are in the order of their turns if they can be.
func assign(want []expected, got []shownMessage) []int {
	of, at := make([]int, len(got)), make([]int, len(want))
	for i := range of {
		of[i] = -1
	}
	var put func(w int, tried []bool) bool
	put = func(w int, tried []bool) bool {
		for i, m := range got {
			if tried[i] || !want[w].is(m) {
				continue
			}
			tried[i] = true
			if of[i] < 0 || put(of[i], tried) {
				of[i], at[w] = w, i
				return true
			}
		}
		return false
	}
	for w := range want {
		at[w] = -1
		put(w, make([]bool, len(got)))
	}
	for a := range want {
		for b := range want[:a] {
			if want[a].turn != 0 && want[b].turn != 0 && at[b] > at[a] && at[a] >= 0 && want[a].is(got[at[b]]) && want[b].is(got[at[a]]) {
				at[a], at[b] = at[b], at[a]
			}
		}
	}
	return at
}

// wrong says how the thread differs from what was shown last: of each turn its pages,
// of each card its approvals as they stand, nothing else, and nothing twice.
func (d *desk) wrong() []string {
	var want []expected
	for _, t := range d.shown {
		o := d.bot.app.screen.turnScreen.rendering(t)
		pages := render.Turn(t, o)
		for i, id := range d.cardsOf(t.ID) {
			if !render.GoesOn(t, o, id) { // it stands where the turn will go on
				list, err := d.store.CardApprovals(context.Background(), id)
				d.must(err)
				page := d.page(list)
				page.Number = (i + 1) * 16
				pages = append(pages, page)
			}
		}
		slices.SortStableFunc(pages, func(p, q render.Page) int { return cmp.Compare(p.Number, q.Number) })
		for _, p := range pages {
			text, blocks := seen(p)
			want = append(want, expected{fmt.Sprintf("page %d of turn %d", p.Number, t.ID), text, blocks, t.ID, worded(p), less(p)})
		}
	}
	got := d.slack.inThread(deskThread)
	var problems []string
	last := map[int64]int{}
	at := assign(want, got)
	for i, w := range want {
		if at[i] < 0 {
			problems = append(problems, w.what+" is not as it was shown last")
			continue
		}
		if before, more := last[w.turn]; w.turn != 0 && more && before > at[i] {
			problems = append(problems, w.what+" stands above an earlier one")
		}
		last[w.turn] = at[i]
	}
	for i, m := range got {
		if !slices.Contains(at, i) {
			problems = append(problems, "a message that is left over: "+m.text)
		}
	}
	return problems
}
