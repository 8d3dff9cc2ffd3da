package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/playground/slack"
)

// newWorldWith starts a demo whose configuration has something added, such as a
// policy. More than one thing goes under a key of its own.
func newWorldWith(t testing.TB, added string, flags ...string) *world {
	t.Helper()
	return newWorldIn(t, demoSandbox(t.Context()), added, flags...)
}

// newWorldIn is a world with a line of its own about the sandbox.
func newWorldIn(t testing.TB, sandbox, added string, flags ...string) *world {
	t.Helper()
	w := unstartedWorld(t)
	w.configure(sandbox, added)
	w.start(flags...)
	return w
}

// plainConfig is a configuration in which threads share the folder of the sample, and each
// call is asked that is not known to be harmless.
const plainConfig = `projects:
  sample:
    dir: %q
%s
channels:
  %s: sample
  %s: sample
  %s: sample
direct_messages: sample
roles:
  admins: [%s]
  approvers: [%s]
  users: [%s]
`

// configure writes the configuration of the stories with a sandbox, and something added.
func (w *world) configure(sandbox, added string) {
	w.t.Helper()
	config := fmt.Sprintf(plainConfig, filepath.Join(w.dir, "sample"), sandbox, slack.ChannelGeneral, slack.ChannelEngineering, slack.ChannelPrivate,
		slack.UserAda, slack.GroupApprovers, slack.GroupEngineers) + added
	if err := os.WriteFile(filepath.Join(w.dir, "deckhand.yaml"), []byte(config), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// exists reports whether the agent has made a file in the workspace.
func (w *world) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.Workspace, name))
	return err == nil
}

// submit submits a modal.
func (w *world) submit(user string, v view, values map[string]any) {
	w.t.Helper()
	w.must(http.MethodPost, "/_control/views/"+v.ID+"/submit", map[string]any{"user": user, "values": values}, nil)
}

// submitWrong presses a modal's button with something that one of its inputs refuses,
// and returns what stands below it then. The modal stays open.
func (w *world) submitWrong(user string, v view, input, value string) (said string) {
	w.t.Helper()
	var out struct {
		Errors map[string]string `json:"errors"`
	}
	w.must(http.MethodPost, "/_control/views/"+v.ID+"/submit", map[string]any{"user": user, "values": map[string]any{input: map[string]any{input: value}}}, &out)
	return out.Errors[input]
}

// alwaysAllow answers the modal of “Always allow…” with the offer of that number.
func (w *world) alwaysAllow(user, channel, card string, offer int, scope string) (shown string) {
	w.t.Helper()
	v, text := w.opens(user, channel, card, "always")
	prefix := fmt.Sprintf("%d:", offer)
	var value string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, prefix) && len(line) == len(prefix)+16 {
			value = line
		}
	}
	if value == "" {
		w.t.Fatalf("there is no offer %d in the modal:\n%s", offer, text)
	}
	w.submit(user, v, map[string]any{
		"rule": map[string]any{"rule": value}, "where": map[string]any{"where": scope}, "until": map[string]any{"until": "7d"},
	})
	return text
}

// asks posts a prompt that makes the model run a command.
func (w *world) runs(user, channel, thread, command string) string {
	w.t.Helper()
	b, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.post(user, channel, thread, "@deckhand tool: Bash "+string(b))
}

// bot runs the program with a command of its own on the world's database.
func (w *world) bot(args ...string) (out string, ok bool) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(w.t.Context(), self, args...)
	cmd.Env = append(w.environ(), "DATABASE_URL="+w.DatabaseURL, "DECKHAND_CONFIG="+filepath.Join(w.dir, "deckhand.yaml"))
	b, err := cmd.CombinedOutput()
	return string(b), err == nil
}

// notified says who was notified of a message, and why.
func (w *world) notified(ts string) map[string]string {
	w.t.Helper()
	var out struct {
		Notifications []struct{ User, Reason, TS string } `json:"notifications"`
	}
	w.must(http.MethodGet, "/_control/notifications", nil, &out)
	who := map[string]string{}
	for _, n := range out.Notifications {
		if n.TS == ts {
			who[n.User] += n.Reason
		}
	}
	return who
}

// auditIsWhole checks the audit as an auditor would.
func (w *world) auditIsWhole() {
	w.t.Helper()
	if out, ok := w.bot("audit", "verify"); !ok {
		w.t.Errorf("the audit: %s", out)
	}
}

// approveAtHome approves a request on a person's home tab, which shows what it is about, and
// then that it does not wait any more, without being opened again.
func (w *world) approveAtHome(user, approvalID string) {
	w.t.Helper()
	var home map[string]any
	w.eventually("the request on the home tab of "+user, func() bool {
		w.must(http.MethodGet, "/_control/home?user="+user, nil, &home)
		return strings.Contains(flatten(home), "home:"+approvalID)
	})
	if shown := flatten(home); !strings.Contains(shown, "git tag five") || !strings.Contains(shown, "For admins") || !strings.Contains(shown, "ready, version") {
		w.t.Errorf("the home tab of %s:\n%s", user, shown)
	}
	view, _ := home["view"].(map[string]any)
	w.must(http.MethodPost, "/_control/actions", map[string]any{"user": user, "view_id": view["id"], "action_id": "home_whose", "value": "all"}, nil)
	w.eventually("everybody's threads", func() bool {
		w.must(http.MethodGet, "/_control/home?user="+user, nil, &home) // which it is opened by, once more
		return strings.Contains(flatten(home), `{"all":true}`) && strings.Contains(flatten(home), "waits for you")
	})
	w.must(http.MethodPost, "/_control/actions", map[string]any{
		"user": user, "view_id": view["id"], "action_id": "approve", "value": approvalID, "block_id": "home:" + approvalID,
	}, nil)
	w.eventually("the home tab to follow", func() bool {
		var out struct{ Calls []map[string]any }
		w.must(http.MethodGet, "/_control/calls?method=views.publish", nil, &out)
		last := flatten(out.Calls[len(out.Calls)-1])
		return strings.Contains(last, user) && strings.Contains(last, `{"all":true}`) && !strings.Contains(last, approvalID)
	})
}

// home opens a person's home tab once it shows something to click, and returns it.
func (w *world) home(user string) map[string]any {
	w.t.Helper()
	var out map[string]any
	w.eventually("the home tab of "+user, func() bool {
		w.must(http.MethodGet, "/_control/home?user="+user, nil, &out)
		return strings.Contains(flatten(out), "revoke")
	})
	return out
}

// clickHome clicks the first button with the action in a home tab.
func (w *world) clickHome(user string, home map[string]any, action string) {
	w.t.Helper()
	var value string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if v["action_id"] == action {
				value, _ = v["value"].(string)
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(home)
	own := map[string]any{}
	w.must(http.MethodGet, "/_control/home?user="+user, nil, &own)
	id, _ := own["id"].(string)
	if view, ok := own["view"].(map[string]any); ok {
		id, _ = view["id"].(string)
	}
	w.must(http.MethodPost, "/_control/actions", map[string]any{
		"user": user, "view_id": id, "action_id": action, "value": value, "stale": true,
	}, nil)
}

// pendingID waits until a command is asked for and returns its approval's id.
func (w *world) pendingID(command string) string {
	w.t.Helper()
	var id string
	w.eventually("a question about "+command, func() bool {
		id = w.text(`SELECT COALESCE(max(id), '') FROM approvals WHERE status = 'pending' AND input LIKE '%` + command + `%'`)
		return id != ""
	})
	return id
}

// untick takes the tick of one row of a card away, and returns the value of the card's buttons.
func (w *world) untick(user, channel string, card message, row string) (all string) {
	w.t.Helper()
	for _, block := range card.blocks(w.t) {
		elements, _ := block["elements"].([]any)
		for _, e := range elements {
			tick, _ := e.(map[string]any)
			if tick["action_id"] != "tick" {
				continue
			}
			var left []string
			for _, o := range tick["options"].([]any) {
				value := o.(map[string]any)["value"].(string)
				if all += " " + value; value != row {
					left = append(left, value)
				}
			}
			w.must(http.MethodPost, "/_control/state_values", map[string]any{
				"user": user, "channel": channel, "message_ts": card.TS,
				"values": map[string]any{block["block_id"].(string): map[string]any{"tick": left}},
			}, nil)
			return strings.TrimSpace(all)
		}
	}
	w.t.Fatalf("the card has nothing to tick:\n%s", card.all())
	return ""
}

// clickOn clicks the button of one row.
func (w *world) clickOn(user, channel, ts, action, value string) {
	w.t.Helper()
	w.must(http.MethodPost, "/_control/actions", map[string]any{
		"user": user, "channel": channel, "message_ts": ts, "action_id": action, "value": value,
	}, nil)
}

// sandboxHere is the line about the sandbox that works on this machine.
var sandboxHere = sync.OnceValue(func() string { return demoSandbox(context.Background()) })
