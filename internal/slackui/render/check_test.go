package render_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/slack-go/slack"

	workspace "deckhand/internal/playground/slack"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
)

// The people of the tests, whose live mentions are ours.
const (
	asker    = "U0ASKER"
	approver = "U0APPROVER"
	bot      = "U0BOT"
)

// problems collects what is wrong with rendered content.
type problems struct{ list []string }

func (p *problems) addf(format string, args ...any) {
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

// checkPage holds a page against Slack's limits and our own rules.
func checkPage(p render.Page) []string {
	var out problems
	if p.Text == "" || mrkdwntest.Units(p.Text) > 3000 {
		out.addf("the text has %d characters", mrkdwntest.Units(p.Text))
	}
	checkMrkdwn(&out, "text", p.Text)
	checkBlocks(&out, p.Blocks, 50, true)
	return out.list
}

func checkView(blocks []slack.Block) []string {
	var out problems
	checkBlocks(&out, blocks, 100, false)
	return out.list
}

// checkModal holds a modal against Slack's limits.
func checkModal(v slack.ModalViewRequest) []string {
	var out problems
	for name, t := range map[string]*slack.TextBlockObject{"title": v.Title, "submit": v.Submit, "close": v.Close} {
		if t != nil && (t.Text == "" || mrkdwntest.Units(t.Text) > 24) {
			out.addf("the %s has %d characters", name, mrkdwntest.Units(t.Text))
		}
	}
	if mrkdwntest.Units(v.PrivateMetadata) > 3000 || v.CallbackID == "" {
		out.addf("metadata or callback id")
	}
	checkBlocks(&out, v.Blocks.BlockSet, 100, false)
	return out.list
}

func checkBlocks(out *problems, blocks []slack.Block, most int, message bool) {
	raw, err := json.Marshal(blocks)
	if err != nil {
		out.addf("encode: %v", err)
		return
	}
	var list []map[string]any
	if err := json.Unmarshal(raw, &list); err != nil {
		out.addf("decode: %v", err)
		return
	}
	if len(list) > most {
		out.addf("%d blocks", len(list))
	}
	total, markdown := 0, 0
	ids := map[string]bool{}
	for i, b := range list {
		at := fmt.Sprintf("block %d (%s)", i, b["type"])
		if id, _ := b["block_id"].(string); id != "" {
			if ids[id] || mrkdwntest.Units(id) > 255 {
				out.addf("%s: block_id %q is long or there twice", at, id)
			}
			ids[id] = true
		}
		if b["type"] == "markdown" {
			text, _ := b["text"].(string)
			if text == "" || !message {
				out.addf("%s: empty, or not in a message", at)
			}
			markdown += mrkdwntest.Units(text)
			for _, problem := range mrkdwntest.Live(text) {
				out.addf("%s: %s", at, problem)
			}
		}
		if b["type"] == "table" && !message {
			out.addf("%s: not in a message", at)
		}
		total += checkObject(out, at, b)
	}
	if message && total > 10000 {
		out.addf("the blocks have %d characters", total)
	}
	if markdown > 12000 {
		out.addf("the markdown blocks have %d characters", markdown)
	}
}

// checkObject checks the texts in a block and counts their characters.
func checkObject(out *problems, at string, v any) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for i, x := range v {
			n += checkObject(out, fmt.Sprintf("%s[%d]", at, i), x)
		}
	case map[string]any:
		kind, _ := v["type"].(string)
		if text, ok := v["text"].(string); ok {
			n += mrkdwntest.Units(text)
			most := 3000
			if kind == "mrkdwn" {
				checkMrkdwn(out, at, text)
				if v["verbatim"] != true {
					out.addf("%s: mrkdwn is not verbatim", at)
				}
			}
			if kind == "markdown" {
				most = 12000
			}
			if text == "" || mrkdwntest.Units(text) > most {
				out.addf("%s: the text has %d characters", at, mrkdwntest.Units(text))
			}
			if !utf8.ValidString(text) {
				out.addf("%s: the text is not UTF-8", at)
			}
		}
		if d, ok := v["confirm"].(map[string]any); ok && d["title"] != nil {
			for key, most := range map[string]int{"title": 100, "text": 300, "confirm": 30, "deny": 30} {
				if t, _ := d[key].(map[string]any)["text"].(string); t == "" || mrkdwntest.Units(t) > most {
					out.addf("%s: the dialog's %s has %d characters", at, key, mrkdwntest.Units(t))
				}
			}
		}
		limits := map[string]map[string]int{
			"button":        {"text": 75},
			"radio_buttons": {"options": 10}, "checkboxes": {"options": 10},
			"context": {"elements": 10}, "actions": {"elements": 25}, "header": {"text": 150},
			"table": {"rows": 100}, "static_select": {"options": 100},
		}
		for key, most := range limits[kind] {
			switch x := v[key].(type) {
			case []any:
				if len(x) == 0 || len(x) > most {
					out.addf("%s: %d %s", at, len(x), key)
				}
			case map[string]any:
				if t, _ := x["text"].(string); mrkdwntest.Units(t) > most {
					out.addf("%s: %d characters in %s", at, mrkdwntest.Units(t), key)
				}
			}
		}
		if s, ok := v["value"].(string); ok && (s == "" || mrkdwntest.Units(s) > 2000) {
			out.addf("%s: value of %d characters", at, mrkdwntest.Units(s))
		}
		for k, x := range v {
			if k == "options" {
				for _, o := range x.([]any) {
					for _, f := range []string{"text", "description"} {
						if t, ok := o.(map[string]any)[f].(map[string]any); ok && mrkdwntest.Units(t["text"].(string)) > 75 {
							out.addf("%s: an option's %s is too long", at, f)
						}
					}
				}
			}
			n += checkObject(out, at+"."+k, x)
		}
	}
	return n
}

// ourTokens are the mentions in mrkdwn that we write, besides links.
var ourTokens = regexp.MustCompile(`^<(@(` + asker + `|` + approver + `|` + bot + `)>|#C0[A-Z]+>|!date\^\d+\^(\{date_short_pretty\}( \{time\})?|\{time\})\|[\w: ]+>|!subteam\^S0[A-Z]+>)`)

// checkMrkdwn makes sure that every token in mrkdwn is one that we wrote.
func checkMrkdwn(out *problems, at, text string) {
	for _, problem := range mrkdwntest.Foreign(text, ourTokens) {
		out.addf("%s: %s", at, problem)
	}
}

// judge is the playground's workspace, which holds messages against Slack's rules
// as far as they are known.
type judge struct{ client *slack.Client }

type inProcess struct{ h http.Handler }

func (c inProcess) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	in := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), strings.NewReader(string(body)))
	in.Header = r.Header
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, in)
	return w.Result(), nil
}

func newJudge(t testing.TB) judge {
	t.Helper()
	srv, err := workspace.New(workspace.Options{NoRateLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		usable(t, srv.Handler())
		_ = srv.Close(context.Background())
	})
	return judge{slack.New(srv.BotToken(),
		slack.OptionAPIURL("http://127.0.0.1/api/"), slack.OptionHTTPClient(inProcess{srv.Handler()}))}
}

// usable holds that everybody can use what was sent: with alternative texts, a text beside the
// blocks, buttons that are told apart by their names, and no sign without a word.
func usable(t testing.TB, workspace http.Handler) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, "http://127.0.0.1/_control/accessibility", nil)
	workspace.ServeHTTP(w, r)
	var got struct {
		Unfit []struct{ Method, What, Text string } `json:"unfit"`
	}
	if err := json.NewDecoder(w.Body).Decode(&got); err != nil || w.Code != http.StatusOK {
		t.Errorf("what not everybody can use: status %d, %v", w.Code, err)
	}
	for _, u := range got.Unfit {
		t.Errorf("%s: %q", u.What, u.Text)
	}
}

// page posts a page and edits the message to it once more.
func (j judge) page(t testing.TB, p render.Page) {
	t.Helper()
	opts := []slack.MsgOption{slack.MsgOptionText(p.Text, false), slack.MsgOptionBlocks(p.Blocks...)}
	_, ts, err := j.client.PostMessageContext(t.Context(), workspace.ChannelEngineering, opts...)
	if err == nil {
		_, _, _, err = j.client.UpdateMessageContext(t.Context(), workspace.ChannelEngineering, ts, opts...)
	}
	if err != nil {
		t.Errorf("the workspace refuses it: %v", detailed(err))
	}
}

func (j judge) home(t testing.TB, v slack.HomeTabViewRequest) {
	t.Helper()
	_, err := j.client.PublishViewContext(t.Context(), slack.PublishViewContextRequest{UserID: workspace.UserAda, View: v})
	if err != nil {
		t.Errorf("the workspace refuses it: %v", detailed(err))
	}
}

// modal checks a modal's blocks, as those of a home tab: both take the same.
func (j judge) modal(t testing.TB, v slack.ModalViewRequest) {
	t.Helper()
	j.home(t, slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: v.Blocks})
}

func detailed(err error) string {
	s := err.Error()
	if r, ok := err.(slack.SlackErrorResponse); ok { //nolint:errorlint // slack-go returns it bare
		s += ": " + strings.Join(r.ResponseMetadata.Messages, "; ")
	}
	return s
}
