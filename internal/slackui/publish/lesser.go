package publish

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/slackui/render"
)

// Place is where blocks are shown; what Slack takes at one it may refuse at another.
type Place string

// The places.
const (
	InMessage   Place = "message"
	InEphemeral Place = "ephemeral"
	InModal     Place = "modal"
	InHome      Place = "home"
)

// rendering is how much of a page is sent. What Slack refuses is sent again in a lesser one;
// there is none below the last, and each step down is taken once for a state.
type rendering int

const (
	whole    rendering = iota // but for types of blocks that are known to be refused here
	seasoned                  // no type of block that is younger than the others
	sections                  // sections of text alone
	worded                    // text alone
	least                     // a sentence of ours, with the page's first words
	bare                      // the sentence alone
)

var renderingNames = [...]string{"whole", "no young blocks", "sections of text", "text", "a sentence", "a sentence of ours"}

// oldBlocks are the types of blocks that every workspace takes.
var oldBlocks = []string{"section", "context", "actions", "divider", "header", "image", "input"}

// shape is how a page goes out: in which rendering, and without which types of blocks.
type shape struct {
	rendering rendering
	without   []string // sorted
	fresh     bool     // Slack has not been sent anything in it yet
}

// put reduces a page. A page that is whole and has nothing to leave out is itself.
func (w shape) put(p render.Page) (page render.Page, cut bool) {
	switch w.rendering {
	case whole:
	case seasoned:
		p, _ = p.Lesser(func(kind string) bool { return !slices.Contains(oldBlocks, kind) })
	case sections:
		p, _ = p.Lesser(func(string) bool { return true })
		return p, false
	case worded:
		return p.Worded()
	case least:
		return p.Least(), true
	case bare:
		return p.Bare(), true
	}
	if len(w.without) > 0 {
		p, _ = p.Lesser(func(kind string) bool { return slices.Contains(w.without, kind) })
	}
	return p, false
}

// lower is what to send after page, which was sent in w, was refused; false if there is
// nothing less. named are the types of blocks that Slack has named, unsupported those of
// them that it does not take at all.
func (w shape) lower(page render.Page, named, unsupported []string, err error) (shape, bool) {
	fresh := slices.DeleteFunc(slices.Clone(named), func(kind string) bool { return slices.Contains(w.without, kind) })
	w.fresh = true
	switch {
	case w.rendering == bare:
		return w, false
	case len(page.Blocks) == 0: // it is the text that Slack minds
		w.rendering = max(least, w.rendering+1)
	case slices.Contains(unsupported, "section"): // what all others become
		w.rendering = worded
	case refusedAs(err, "msg_blocks_too_long"), refusedAs(err, "view_too_large"):
		w.rendering = worded
	case w.rendering < sections && len(fresh) > 0:
		w.without = append(slices.Clone(w.without), fresh...)
		slices.Sort(w.without)
		w.without = slices.Compact(w.without)
	case w.rendering == whole && !slices.ContainsFunc(page.Blocks, isYoung):
		w.rendering = sections
	default:
		w.rendering++
	}
	return w, true
}

func isYoung(b slack.Block) bool { return !slices.Contains(oldBlocks, string(b.BlockType())) }

func refusedAs(err error, code string) bool {
	refused, ok := errors.AsType[slack.SlackErrorResponse](err)
	return ok && refused.Err == code
}

// pointer is the place in a request that Slack's words about a refusal end with.
var pointer = regexp.MustCompile(`\[json-pointer:(?:/view)?/blocks/([0-9]+)([^\]]*)\]`)

// blamed reads from a refusal which types of page's blocks Slack names, and which of them
// it does not take at all.
func blamed(page render.Page, err error) (named, unsupported []string) {
	refused, ok := errors.AsType[slack.SlackErrorResponse](err)
	if !ok {
		return nil, nil
	}
	for _, m := range refused.ResponseMetadata.Messages {
		at := pointer.FindStringSubmatch(m)
		if at == nil {
			continue
		}
		i, err := strconv.Atoi(at[1])
		if err != nil || i >= len(page.Blocks) {
			continue
		}
		kind := string(page.Blocks[i].BlockType())
		if !slices.Contains(named, kind) {
			named = append(named, kind)
		}
		if at[2] == "/type" && strings.Contains(m, "unsupported") && !slices.Contains(unsupported, kind) {
			unsupported = append(unsupported, kind)
		}
	}
	return named, unsupported
}

// How long a type of block is left out after Slack has named it, and after a message was
// taken without its young blocks when Slack had not said which it minds, twice. Blocks come to
// workspaces one by one; the next try costs one refused call.
const (
	namedFor     = time.Hour
	blamelessFor = 10 * time.Minute
)

// refusals knows which types of blocks the workspace refuses, by place. Its methods are
// safe for concurrent use.
type refusals struct {
	mu    sync.Mutex
	until map[Place]map[string]time.Time
	// suspected are types by place, until when.
	suspected map[string]time.Time
}

// suspect notes types that may be what Slack minds, and learns those that it suspects for the
// second time: a message may be refused for what is in it.
func (d *refusals) suspect(at Place, kinds []string, now time.Time) {
	d.mu.Lock()
	var again []string
	for _, kind := range kinds {
		key := string(at) + " " + kind
		if now.Before(d.suspected[key]) {
			again = append(again, kind)
		}
		if d.suspected == nil {
			d.suspected = map[string]time.Time{}
		}
		d.suspected[key] = now.Add(blamelessFor)
	}
	d.mu.Unlock()
	d.learn(at, again, now, blamelessFor)
}

// learn notes types that are refused at a place, for so long.
func (d *refusals) learn(at Place, kinds []string, now time.Time, long time.Duration) {
	if len(kinds) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until == nil {
		d.until = map[Place]map[string]time.Time{}
	}
	if d.until[at] == nil {
		d.until[at] = map[string]time.Time{}
	}
	for _, kind := range kinds {
		d.until[at][kind] = now.Add(long)
	}
}

// with is w without what is refused at a place.
func (d *refusals) with(w shape, at Place, now time.Time) shape {
	d.mu.Lock()
	defer d.mu.Unlock()
	for kind, until := range d.until[at] {
		switch {
		case now.After(until):
			delete(d.until[at], kind)
		case !slices.Contains(w.without, kind):
			w.without = append(slices.Clip(w.without), kind)
		}
	}
	slices.Sort(w.without)
	if _, none := d.until[at]["section"]; none {
		w.rendering = max(w.rendering, worded)
	}
	return w
}

// refusal is what was learnt from one: what to send next, or that there is nothing less.
func (s *Scheduler) refusal(at Place, what string, w shape, page render.Page, err error) (shape, bool) {
	named, unsupported := blamed(page, err)
	s.refusals.learn(at, unsupported, time.Now(), namedFor)
	next, ok := w.lower(page, named, unsupported, err)
	log := s.o.Log.With(zap.String("place", string(at)), zap.String("what", what), zap.Strings("blocks", named), zap.Error(explain(err)))
	if !ok {
		log.Error("slack refused even a sentence")
		return w, false
	}
	log.Error("slack refused what was shown; showing less of it",
		zap.String("instead", renderingNames[next.rendering]), zap.Strings("without", next.without))
	return next, true
}

// taken learns from what Slack took after it had refused more, without saying what it
// minds.
func (s *Scheduler) taken(at Place, w shape, page render.Page) {
	if !w.fresh || w.rendering != seasoned {
		return
	}
	var young []string
	for _, b := range page.Blocks {
		if isYoung(b) {
			young = append(young, string(b.BlockType()))
		}
	}
	slices.Sort(young)
	s.refusals.suspect(at, slices.Compact(young), time.Now())
}

// Reduced sends a page by send in the richest rendering that Slack takes, as a message of the
// scheduler's own is. It returns what send said last, where nothing less can be sent or the
// page is not what is wrong. what says in the logs what it was for. A modal or home tab has
// no text: nothing less than sections is sent of it.
func (s *Scheduler) Reduced(at Place, what string, page render.Page, send func(render.Page) error) error {
	w := s.refusals.with(shape{}, at, time.Now())
	view := at == InModal || at == InHome
	if view {
		w.rendering = min(w.rendering, sections)
	}
	for {
		dressed, _ := w.put(page)
		err := send(dressed)
		if v, _ := judge(err); v != content {
			if err == nil {
				s.taken(at, w, page)
			}
			return err
		}
		next, ok := s.refusal(at, what, w, dressed, err)
		if !ok || view && next.rendering > sections {
			return err
		}
		w = next
	}
}
