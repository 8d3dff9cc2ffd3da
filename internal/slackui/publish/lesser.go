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

// Place is where blocks are shown; Slack may accept them in one place and reject them in another.
type Place string

// The places.
const (
	InMessage   Place = "message"
	InEphemeral Place = "ephemeral"
	InModal     Place = "modal"
	InHome      Place = "home"

	inStream Place = "stream"
)

// feedback is the type of the block with feedback buttons.
const feedback = "context_actions"

// anyKind stands for everything in a stream.
const anyKind = "*"

// rendering is how much of a page is sent. A page is rich, or text; what Slack refuses is sent again in the next
// rendering, each of them once per state.
type rendering int

const (
	rich     rendering = iota // all of it
	plain                     // text, with buttons and fields in blocks that every workspace supports
	worded                    // text alone
	sentence                  // a sentence of ours
)

var renderingNames = [...]string{"all of it", "text and buttons", "text", "a sentence"}

// put is a page in the rendering; cut reports that something is missing in it.
func (d rendering) put(p render.Page) (page render.Page, cut bool) {
	switch d {
	case plain:
		return p.Plain(), false
	case worded:
		return p.Worded()
	case sentence:
		return p.Least(), true
	}
	return p, false
}

// pointer is the location at the end of Slack's refusal message.
var pointer = regexp.MustCompile(`\[json-pointer:(?:/view)?/blocks/([0-9]+)([^\]]*)\]`)

// blamed reads from a refusal whether Slack names blocks of a page, and which types it does not support.
func blamed(page render.Page, err error) (named bool, unsupported []string) {
	refused, _ := errors.AsType[slack.SlackErrorResponse](err)
	for _, m := range refused.ResponseMetadata.Messages {
		at := pointer.FindStringSubmatch(m)
		if at == nil {
			continue
		}
		named = true
		i, err := strconv.Atoi(at[1])
		if err == nil && i < len(page.Blocks) && at[2] == "/type" && strings.Contains(m, "unsupported") {
			unsupported = append(unsupported, string(page.Blocks[i].BlockType()))
		}
	}
	return named, unsupported
}

// oldBlocks are types of blocks that every workspace supports: if Slack refuses a page without naming a block, they
// are not suspected.
var oldBlocks = []string{"section", "context", "actions", "divider", "header", "image", "input"}

// How long a type of block is omitted after Slack has named it, or has refused it twice without naming it. Slack
// rolls blocks out per workspace; the next try costs one refused call.
const (
	namedFor     = time.Hour
	blamelessFor = 10 * time.Minute
)

// refusals tracks the types of blocks that the workspace refuses. Its methods are safe for concurrent use.
type refusals struct {
	mu    sync.Mutex
	known map[kindAt]refusal
}

// kindAt is a type of block at a place.
type kindAt struct {
	at   Place
	kind string
}

// refusal is what is known of a type until it expires. An unnamed one is only suspected at first: the page may have
// been refused for its content.
type refusal struct {
	until time.Time
	sure  bool
}

// learn records types that were refused at a place.
func (r *refusals) learn(at Place, kinds []string, named bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.known == nil {
		r.known = map[kindAt]refusal{}
	}
	for _, kind := range kinds {
		if key := (kindAt{at, kind}); named {
			r.known[key] = refusal{now.Add(namedFor), true}
		} else {
			r.known[key] = refusal{now.Add(blamelessFor), now.Before(r.known[key].until)}
		}
	}
}

// has reports whether a type is known to be refused at a place. r.mu is held.
func (r *refusals) has(at Place, kind string, now time.Time) bool {
	known := r.known[kindAt{at, kind}]
	return known.sure && now.Before(known.until)
}

// noStreams reports whether Slack refuses streams' content.
func (r *refusals) noStreams() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.has(inStream, anyKind, time.Now())
}

// put is a page in the richest rendering, from d on, without anything refused at a place. Refused feedback blocks
// are omitted, since text cannot replace them.
func (r *refusals) put(d rendering, at Place, p render.Page) (_ rendering, page render.Page, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.has(at, feedback, now) {
		p.Blocks = slices.DeleteFunc(slices.Clone(p.Blocks), func(b slack.Block) bool { return string(b.BlockType()) == feedback })
	}
	for ; ; d++ {
		page, cut = d.put(p)
		if !slices.ContainsFunc(page.Blocks, func(b slack.Block) bool { return r.has(at, string(b.BlockType()), now) }) {
			return d, page, cut
		}
	}
}

// refused learns from the refusal of a page, and returns the next rendering; false if there is none.
func (s *Scheduler) refused(at Place, what string, d rendering, page render.Page, err error) (rendering, bool) {
	named, kinds := blamed(page, err)
	tooLong := RefusedAs(err, "msg_blocks_too_long", "view_too_large", "msg_too_long")
	if !named && !tooLong && d == rich {
		for _, b := range page.Blocks {
			if kind := string(b.BlockType()); !slices.Contains(oldBlocks, kind) && !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	s.refusals.learn(at, kinds, named)
	log := s.o.Log.With(zap.String("place", string(at)), zap.String("what", what), zap.Strings("blocks", kinds), zap.Error(explain(err)))
	switch {
	case d == sentence:
		log.Error("slack refused even a sentence")
		return d, false
	case len(page.Blocks) == 0: // Slack rejects the text
		d = sentence
	case tooLong:
		d = worded
	case d == rich && isPlain(page):
		d = worded
	default:
		d++
	}
	log.Error("slack refused what was shown; showing less of it", zap.String("instead", renderingNames[d]))
	return d, true
}

// Reduced sends a page by send in the richest rendering that Slack accepts, like the scheduler's own messages. It
// returns send's last error if nothing less can be sent or the page is not the cause. what describes it in the
// logs. A modal or home tab has no text: nothing less than plain is sent.
func (s *Scheduler) Reduced(at Place, what string, page render.Page, send func(render.Page) error) error {
	view := at == InModal || at == InHome
	for d := rich; ; {
		put, dressed, _ := s.refusals.put(d, at, page)
		if view && put > plain {
			put, dressed = plain, page.Plain()
		}
		err := send(dressed)
		if v, _ := judge(err); v != content {
			return err
		}
		next, ok := s.refused(at, what, put, dressed, err)
		if !ok || view && next > plain {
			return err
		}
		d = next
	}
}

// isPlain reports whether a page is unchanged by the plain rendering.
func isPlain(p render.Page) bool {
	return slices.EqualFunc(p.Blocks, p.Plain().Blocks, func(a, b slack.Block) bool { return a.BlockType() == b.BlockType() })
}
