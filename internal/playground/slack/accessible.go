package slack

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// unfitCall is something that the app sent which not everybody can use. Slack takes it all the
// same; GET /_control/accessibility tells of it.
type unfitCall struct {
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	What   string    `json:"what"` // a sentence
	Text   string    `json:"text"` // what it is about, or the beginning of it
}

// maxUnfit is how many are remembered: the first ones.
const maxUnfit = 200

// shownBy are the methods that show something to people.
var shownBy = map[string]bool{
	"chat.postMessage": true, "chat.update": true, "chat.postEphemeral": true,
	"views.open": true, "views.push": true, "views.update": true, "views.publish": true,
}

// judgeAccess notes what of a call that Slack took is not for everybody. The caller holds the
// workspace's mutex.
func (s *Server) judgeAccess(c *call) {
	if !shownBy[c.method] {
		return
	}
	var found reading
	blocks := decoded(c.values["blocks"])
	if v, ok := decoded(c.values["view"]).(object); ok {
		blocks = v["blocks"]
	} else if list, _ := blocks.([]any); len(list) > 0 {
		found.fallback(c.str("text"))
	}
	found.walk(blocks, "")
	for _, f := range found.list {
		if len(s.unfit) == maxUnfit {
			return
		}
		s.unfit = append(s.unfit, unfitCall{Time: now().UTC(), Method: c.method, What: f.what, Text: cutRunes(f.text, 200)})
	}
}

// decoded is an argument as JSON, which forms carry as a string.
func decoded(v any) any {
	t, ok := v.(string)
	if !ok {
		return v
	}
	var out any
	if decodeJSON([]byte(t), &out) != nil {
		return nil
	}
	return out
}

// reading goes through a message or a view as somebody does who does not see it.
type reading struct {
	list  []struct{ what, text string }
	names map[string]string // what a button does, by what it is called
}

func (r *reading) addf(text, format string, args ...any) {
	r.list = append(r.list, struct{ what, text string }{fmt.Sprintf(format, args...), text})
}

// word is one, in any script.
var word = regexp.MustCompile(`\p{L}{2,}|\p{Lo}`)

// fallback is what a lock screen shows and a screen reader says of a message with blocks.
func (r *reading) fallback(t string) {
	switch plain := strings.TrimSpace(linkMarkup.ReplaceAllString(t, "$1$2")); {
	case plain == "":
		r.addf("", "a message with blocks has no text")
	case !word.MatchString(plain):
		r.addf(t, "the text beside blocks has no word")
	case strings.HasPrefix(plain, "…"), strings.HasPrefix(plain, "```"):
		r.addf(t, "the text beside blocks begins in the middle of something")
	}
}

// signs are emoji that tell how something stands.
const signs = "✅☑✔❌✖⏳⌛✋⏸⏹🚫⛔🛑🔌🔴🟡🟢⚪⬜🔲🔳"

var signed = regexp.MustCompile(`^[\s↳•]*(?:[` + signs + `]\x{FE0F}?\s*)+`)

// stated are words that say the same as a sign.
var stated = regexp.MustCompile(`(?i)\b(done|ran|allow\w*|approv\w*|accepted|answered|raised|going on|goes on|has room|passed|failed|wait\w*|working|work\w*|running|thinking|` +
	`retr\w*|tr(y|ied) again|begin\w*|begun|starts?|denied|refused|declined|skipped|left|stop\w*|interrupt\w*|cancel\w*|withdrawn|expired|paused?|used up|blocked|closed|open|to do|next|in progress|` +
	`not finished|pending|decide[ds]?|asks?|restart\w*|over|on|off|idle|needs?|reserved|missing|ready|live|revoked|ended)\b`)

// sign is a line that begins with how something stands. That something is done is the rule,
// and ✅ is read as a check mark: every other sign has a word.
func (r *reading) sign(t string) {
	for line := range strings.Lines(t) {
		if mark := signed.FindString(line); mark != "" && strings.TrimSpace(mark) != "✅" && !strings.HasSuffix(strings.TrimSpace(mark), "↳ ✅") && !stated.MatchString(line[len(mark):]) {
			r.addf(strings.TrimSpace(line), "a sign stands without a word that says the same")
		}
	}
}

// walk goes through blocks and what is in them. The model's own text, and what was written by
// others, is read as it is: it is in markdown and in preformatted text.
func (r *reading) walk(v any, within string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			r.walk(x, within)
		}
	case object:
		kind := text(v["type"])
		switch kind {
		case "image":
			if !strings.ContainsFunc(text(v["alt_text"]), unicode.IsLetter) {
				r.addf(text(v["image_url"]), "a picture has no words")
			}
		case "button", "icon_button", "workflow_button":
			r.button(v)
		case "mrkdwn", "plain_text":
			r.sign(text(v["text"]))
		case "static_select", "external_select", "users_select", "conversations_select", "channels_select":
			if within != "input" && v["placeholder"] == nil {
				r.addf(text(v["action_id"]), "a list has no name")
			}
		case "markdown", "rich_text_preformatted":
			return
		}
		if kind == "" {
			kind = within
		}
		for _, x := range v {
			r.walk(x, kind)
		}
	}
}

// button holds that a button has a name, that the name has the words that are seen, and that
// no other one in the same place has it.
func (r *reading) button(b object) {
	seen, _ := b["text"].(object)
	label := strings.TrimSpace(text(seen["text"]))
	name := label
	if own := text(b["accessibility_label"]); own != "" {
		name = own
		if !strings.Contains(strings.ToLower(own), strings.ToLower(strings.TrimRight(label, "…."))) {
			r.addf(own, "a button is called otherwise than it reads: %s", label)
		}
	}
	if !word.MatchString(name) {
		r.addf(name, "a button has no word")
		return
	}
	does := text(b["action_id"]) + " " + text(b["value"]) + " " + text(b["url"])
	if r.names == nil {
		r.names = map[string]string{}
	}
	if other, ok := r.names[name]; ok && other != does {
		r.addf(name, "two buttons of a message have one name")
	}
	r.names[name] = does
}

// getAccessibility answers with what the app has sent that not everybody can use.
func (s *Server) getAccessibility(http.ResponseWriter, *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return object{"unfit": append([]unfitCall{}, s.unfit...)}, nil
}
