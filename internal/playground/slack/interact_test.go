package slack_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/playground/slack"
)

// modal is a view with one text input.
func modal(more obj) obj {
	v := obj{
		"type": "modal", "callback_id": "cb", "title": plain("Why?"), "submit": plain("Send"), "notify_on_close": true,
		"blocks": []any{obj{"type": "input", "block_id": "why", "label": plain("Reason"), "element": obj{"type": "plain_text_input", "action_id": "text", "min_length": 3}}},
	}
	maps.Copy(v, more)
	return v
}

// clicks connects an app that hands interactive payloads over and answers them.
func (f *fast) clicks(answer func(obj) any) <-chan obj {
	out := make(chan obj, 100)
	f.hello().serve(func(e envelope) any {
		if e.obj["type"] != "interactive" {
			return nil
		}
		p := e.obj["payload"].(obj)
		var a any
		if answer != nil {
			a = answer(p)
		}
		out <- p
		return a
	})
	return out
}

func approve(ts string) obj {
	return obj{"user": slack.UserAda, "channel": slack.ChannelEngineering, "message_ts": ts, "action_id": "approve"}
}

func TestAClicksPayload(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		root := f.say(slack.UserLinus, slack.ChannelEngineering, "go", "")
		ts := f.card(slack.ChannelEngineering, root)
		clicks := f.clicks(nil)
		f.control("state_values", obj{"user": slack.UserAda, "channel": "C0ENG", "message_ts": ts, "values": obj{"scope": "session"}})
		f.control("actions", approve(ts))
		p := <-clicks
		want := obj{
			"type": "block_actions", "api_app_id": slack.AppID, "enterprise": nil, "is_enterprise_install": false,
			"token":     "playground-verification-token",
			"user":      obj{"id": slack.UserAda, "username": "ada", "name": "ada", "team_id": slack.TeamID},
			"team":      obj{"id": slack.TeamID, "domain": "deckhand-playground"},
			"channel":   obj{"id": "C0ENG", "name": "engineering"},
			"container": obj{"type": "message", "message_ts": ts, "channel_id": "C0ENG", "thread_ts": root, "is_ephemeral": false},
			"state":     obj{"values": obj{"what": obj{"scope": obj{"type": "static_select", "selected_option": option("session")}}}},
			"actions": []any{obj{
				"type": "button", "action_id": "approve", "block_id": "card", "value": "id-1", "text": plain("Approve"), "action_ts": dig(t, p, "actions/0/action_ts"),
			}},
			"message": p["message"], "trigger_id": p["trigger_id"], "response_url": p["response_url"],
		}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Error(diff)
		}
		if dig(t, p, "message/ts") != ts || dig(t, p, "message/thread_ts") != root || len(dig(t, p, "message/blocks").([]any)) != 2 || dig(t, p, "message/bot_id") != slack.BotID {
			t.Errorf("message: %v", p["message"])
		}
		// What one person chose is theirs alone.
		click := approve(ts)
		click["user"] = slack.UserGrace
		f.control("actions", click)
		if got := dig(t, <-clicks, "state/values/what/scope/selected_option/value"); got != "once" {
			t.Errorf("Grace's choice: %v", got)
		}
		f.control("actions", obj{"user": slack.UserAda, "channel": "C0ENG", "message_ts": ts, "action_id": "scope", "selected": "once"})
		p = <-clicks
		if dig(t, p, "actions/0/selected_option/value") != "once" || dig(t, p, "state/values/what/scope/selected_option/value") != "once" {
			t.Errorf("a select: %v", p)
		}
		f.control("actions", obj{"user": slack.UserAda, "channel": "C0ENG", "message_ts": ts, "action_id": "more", "value": "who"})
		if p = <-clicks; dig(t, p, "actions/0/selected_option/value") != "who" {
			t.Errorf("an overflow menu: %v", p)
		}
	})
}

func TestAClickOnWhatIsNotThere(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		ts := f.card(slack.ChannelEngineering, "")
		bare := f.say(slack.UserAda, slack.ChannelEngineering, "bare", "")
		with := func(more obj) obj {
			c := approve(ts)
			maps.Copy(c, more)
			return c
		}
		for _, c := range []struct {
			in   obj
			want string
		}{
			{with(obj{"action_id": "explode"}), `no element "explode" here; there are: scope, approve, deny, more`},
			{with(obj{"action_id": ""}), "which element?"},
			{with(obj{"value": "id-2"}), `no button "approve" has the value "id-2"`},
			{with(obj{"block_id": "other"}), `no element "approve"`},
			{with(obj{"message_ts": bare}), "nothing to click"},
			{with(obj{"message_ts": "1"}), `message "1"`},
			{with(obj{"user": ""}), "who acts?"},
			{with(obj{"user": "U0X"}), "nobody in this workspace"},
			{with(obj{"user": slack.BotUser}), "the app itself"},
			{with(obj{"user": slack.UserGuest}), "not a member"},
			{with(obj{"channel": "C0X"}), "no such channel"},
			{with(obj{"channel": ""}), "which one?"},
			{with(obj{"action_id": "scope", "selected": "forever"}), `no option "forever"`},
			{with(obj{"action_id": "more", "value": "x"}), `no option "x"`},
			{with(obj{"expect": "miracle"}), "view, ephemeral or message"},
			{obj{"user": slack.UserAda, "view_id": "V0X", "action_id": "x"}, "not open"},
		} {
			if got := f.refused("actions", c.in); !strings.Contains(got, c.want) {
				t.Errorf("%v: %q, want %q", c.in, got, c.want)
			}
		}
	})
}

func TestAButtonForSomePeopleIsHiddenFromOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		ts := f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x", "blocks": []any{obj{"type": "actions", "elements": []any{
			obj{"type": "button", "action_id": "approve", "text": plain("x"), "visible_to_user_ids": []any{slack.UserAda}},
		}}}})["ts"].(string)
		clicks := f.clicks(nil)
		f.control("actions", approve(ts))
		<-clicks
		click := approve(ts)
		click["user"] = slack.UserMallory
		f.refused("actions", click)
	})
}

func TestATriggerOpensOneModalWithinThreeSeconds(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		ts := f.card(slack.ChannelEngineering, "")
		clicks := f.clicks(nil)
		f.control("actions", approve(ts))
		id := (<-clicks)["trigger_id"]
		time.Sleep(1500 * time.Millisecond) // the click's own second of waiting included
		f.fails("views.open", "invalid_arguments", obj{"trigger_id": id, "view": obj{"type": "modal"}})
		got := f.ok("views.open", obj{"trigger_id": id, "view": modal(nil)}) // a refused view does not use it up
		if dig(t, got, "view/root_view_id") != dig(t, got, "view/id") || dig(t, got, "view/previous_view_id") != nil || dig(t, got, "view/hash") == "" {
			t.Errorf("view: %v", got)
		}
		f.fails("views.open", "exchanged_trigger_id", obj{"trigger_id": id, "view": modal(nil)})
		f.control("actions", approve(ts))
		id = (<-clicks)["trigger_id"]
		time.Sleep(3 * time.Second)
		f.fails("views.open", "expired_trigger_id", obj{"trigger_id": id, "view": modal(nil)})
		f.fails("views.open", "expired_trigger_id", obj{"trigger_id": "1.2.3", "view": modal(nil)})
		f.fails("views.open", "invalid_trigger_id", obj{"trigger_id": "guess", "view": modal(nil)})
		f.fails("views.open", "invalid_arguments", obj{"view": modal(nil)})
		f.fails("views.push", "expired_trigger_id", obj{"trigger_id": id, "view": modal(nil)})
	})
}

// opened clicks and opens a modal of the app's, whose id it returns.
func (f *fast) opened(clicks <-chan obj, ts string, view obj) string {
	f.t.Helper()
	go func() {
		p := <-clicks
		if out := f.call("views.open", obj{"trigger_id": p["trigger_id"], "view": view}); out["ok"] != true {
			f.t.Errorf("views.open: %v", out)
		}
	}()
	c := approve(ts)
	c["expect"] = "view"
	got := f.control("actions", c)
	return dig(f.t, got, "views/0/id").(string)
}

func TestModalsStackUpdateAndClose(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		ts := f.card(slack.ChannelEngineering, "")
		clicks := f.clicks(nil)
		id := f.opened(clicks, ts, modal(obj{"external_id": "ext", "blocks": []any{
			obj{"type": "actions", "block_id": "b", "elements": []any{obj{"type": "button", "action_id": "deeper", "text": plain("x")}}},
		}}))
		push := func(view string) (obj, string) {
			go f.do("POST", "/_control/views/"+view+"/actions", "application/json", "", encode(t, obj{"user": slack.UserAda, "action_id": "deeper"}))
			p := <-clicks
			if dig(t, p, "container/view_id") != view || dig(t, p, "view/id") != view || p["response_url"] != nil {
				t.Errorf("click in a modal: %v", p)
			}
			return p, p["trigger_id"].(string)
		}
		deeper := modal(obj{"blocks": []any{obj{"type": "actions", "block_id": "b", "elements": []any{obj{"type": "button", "action_id": "deeper", "text": plain("x")}}}}})
		_, trigger := push(id)
		second := dig(t, f.ok("views.push", obj{"trigger_id": trigger, "view": deeper}), "view").(obj)
		if second["previous_view_id"] != id || second["root_view_id"] != id {
			t.Errorf("second: %v", second)
		}
		_, trigger = push(second["id"].(string))
		third := dig(t, f.ok("views.push", obj{"trigger_id": trigger, "view": deeper}), "view").(obj)
		_, trigger = push(third["id"].(string))
		f.fails("views.push", "push_limit_reached", obj{"trigger_id": trigger, "view": deeper})
		if n := len(f.control("views?user="+slack.UserAda, nil)["views"].([]any)); n != 3 {
			t.Errorf("%d views", n)
		}
		f.fails("views.update", "hash_conflict", obj{"view_id": third["id"], "hash": "old", "view": deeper})
		updated := f.ok("views.update", obj{"view_id": third["id"], "hash": third["hash"], "view": modal(obj{"title": plain("New")})})
		if dig(t, updated, "view/title/text") != "New" || dig(t, updated, "view/hash") == third["hash"] {
			t.Errorf("updated: %v", updated)
		}
		f.ok("views.update", obj{"external_id": "ext", "view": modal(obj{"external_id": "ext"})})
		f.fails("views.update", "not_found", obj{"view_id": "V0X", "view": deeper})
		f.fails("views.update", "invalid_arguments", obj{"view": deeper})
		f.fails("views.update", "duplicate_external_id", obj{"view_id": third["id"], "view": modal(obj{"external_id": "ext"})})
		f.fails("views.update", "view_too_large", obj{"view_id": third["id"], "view": modal(obj{"private_metadata": strings.Repeat("x", 251<<10)})})

		f.refused("views/"+id+"/close", obj{"user": slack.UserAda})
		f.refused("views/"+id+"/submit", obj{"user": slack.UserAda})
		got := f.control("views/"+third["id"].(string)+"/close", obj{"user": slack.UserAda})
		if dig(t, got, "view/id") != second["id"] {
			t.Errorf("after closing: %v", got)
		}
		if p := <-clicks; p["type"] != "view_closed" || p["is_cleared"] != false || dig(t, p, "view/id") != third["id"] {
			t.Errorf("view_closed: %v", p)
		}
		if got := f.control("views/"+second["id"].(string)+"/close", obj{"user": slack.UserAda, "all": true}); got["view"] != nil {
			t.Errorf("after closing all: %v", got)
		}
		for range 2 {
			if p := <-clicks; p["is_cleared"] != true {
				t.Errorf("view_closed: %v", p)
			}
		}
		f.refused("views/"+id+"/submit", obj{"user": slack.UserAda})
	})
}

func TestSubmissions(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		ts := f.card(slack.ChannelEngineering, "")
		var answer any
		clicks := f.clicks(func(p obj) any {
			if p["type"] == "view_submission" {
				return answer
			}
			return nil
		})
		id := f.opened(clicks, ts, modal(nil))
		submit := func(values obj) obj {
			t.Helper()
			return f.control("views/"+id+"/submit", obj{"user": slack.UserAda, "values": values})
		}
		if got := submit(nil); dig(t, got, "errors/why") != "Please complete this required field." || got["submitted"] != false {
			t.Errorf("empty: %v", got)
		}
		if got := submit(obj{"text": "no"}); dig(t, got, "errors/why") != "Must be at least 3 characters." {
			t.Errorf("short: %v", got)
		}
		if got := f.refused("views/"+id+"/submit", obj{"user": slack.UserAda, "values": obj{"colour": "red"}}); !strings.Contains(got, "colour") {
			t.Errorf("unknown input: %q", got)
		}
		f.refused("views/"+id+"/submit", obj{"user": slack.UserGrace})

		answer = obj{"response_action": "errors", "errors": obj{"why": "Say more."}}
		if got := submit(obj{"why": obj{"text": "because"}}); dig(t, got, "errors/why") != "Say more." || dig(t, got, "view/id") != id {
			t.Errorf("errors: %v", got)
		}
		p := <-clicks
		if dig(t, p, "view/state/values/why/text/value") != "because" || p["type"] != "view_submission" || p["trigger_id"] == "" || p["response_urls"] == nil {
			t.Errorf("submission: %v", p)
		}
		for name, bad := range map[string]any{
			"an unknown block":  obj{"response_action": "errors", "errors": obj{"where": "x"}},
			"no errors":         obj{"response_action": "errors"},
			"no view":           obj{"response_action": "update"},
			"an invalid view":   obj{"response_action": "push", "view": obj{"type": "modal"}},
			"an unknown action": obj{"response_action": "explode"},
		} {
			answer = bad
			if got := submit(nil); got["problem"] == nil || dig(t, got, "view/id") != id {
				t.Errorf("%s: %v", name, got)
			}
			<-clicks
		}
		answer = obj{"response_action": "update", "view": modal(obj{"title": plain("Sure?")})}
		if got := submit(nil); dig(t, got, "view/title/text") != "Sure?" || dig(t, got, "view/id") != id || dig(t, got, "view/state/values/why/text/value") != "because" {
			t.Errorf("update: %v", got)
		}
		answer = obj{"response_action": "push", "view": modal(obj{"title": plain("More")})}
		got := submit(nil)
		if dig(t, got, "view/title/text") != "More" || dig(t, got, "view/previous_view_id") != id {
			t.Errorf("push: %v", got)
		}
		first := id
		id = dig(t, got, "view/id").(string)
		answer = nil
		if got := submit(obj{"text": "fine"}); dig(t, got, "view/id") != first || got["cleared"] != false {
			t.Errorf("a pushed modal closes to the one below: %v", got)
		}
		id = first
		answer = obj{"response_action": "clear"}
		if got := submit(nil); got["view"] != nil || got["cleared"] != true {
			t.Errorf("clear: %v", got)
		}
	})
}

func TestASubmissionThatIsNotAcknowledgedKeepsTheModal(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		ts := f.card(slack.ChannelEngineering, "")
		clicks := f.clicks(nil)
		id := f.opened(clicks, ts, modal(nil))
		f.control("faults", obj{"drop_acks": 1})
		got := f.control("views/"+id+"/submit", obj{"user": slack.UserAda, "values": obj{"text": "because"}})
		if got["acked"] != false || dig(t, got, "view/id") != id || dig(t, got, "errors/") == "" {
			t.Errorf("unacknowledged: %v", got)
		}
	})
}

func TestTheHomeTabIsEmptyWithoutAnApp(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		start := time.Now()
		if got := f.control("home?user="+slack.UserAda, nil); got["view"] != nil || got["published"] != false || time.Since(start) != 3*time.Second {
			t.Errorf("without an app: %v after %v", got, time.Since(start))
		}
	})
}

func TestTheHomeTab(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		home := func(text string) obj {
			return obj{"type": "home", "blocks": []any{
				obj{"type": "section", "text": plain(text)},
				obj{"type": "actions", "block_id": "b", "elements": []any{obj{"type": "button", "action_id": "refresh", "text": plain("x")}}},
			}}
		}
		s := f.hello()
		clicks := make(chan obj, 10)
		s.serve(func(e envelope) any {
			switch {
			case e.obj["type"] == "interactive":
				clicks <- e.obj["payload"].(obj)
			case dig(t, e.obj, "payload/event/type") == "app_home_opened":
				go f.call("views.publish", obj{"user_id": dig(t, e.obj, "payload/event/user"), "view": home("hello")})
			}
			return nil
		})
		got := f.control("home", obj{"user": slack.UserAda})
		if dig(t, got, "view/blocks/0/text/text") != "hello" || got["published"] != true {
			t.Errorf("home: %v", got)
		}
		id := dig(t, got, "view/id").(string)
		f.control("views/"+id+"/actions", obj{"user": slack.UserAda, "action_id": "refresh"})
		if p := <-clicks; dig(t, p, "view/type") != "home" || dig(t, p, "container/type") != "view" {
			t.Errorf("click: %v", p)
		}
		f.fails("views.publish", "hash_conflict", obj{"user_id": slack.UserAda, "hash": "old", "view": home("x")})
		f.ok("views.publish", obj{"user_id": slack.UserAda, "hash": dig(t, got, "view/hash"), "view": home("x")})
		f.ok("views.update", obj{"view_id": id, "view": home("y")})
		f.fails("views.publish", "invalid_arguments", obj{"user_id": "U0X", "view": home("x")})
		f.fails("views.publish", "invalid_arguments", obj{"user_id": slack.UserAda, "view": modal(nil)})
		f.refused("home?user="+slack.UserConnect, nil)
		f.refused("views/"+id+"/submit", obj{"user": slack.UserAda})
	})
}

func TestSlashCommands(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		var answer any
		got := make(chan obj, 10)
		f.hello().serve(func(e envelope) any {
			if e.obj["type"] != "slash_commands" {
				return nil
			}
			if e.obj["accepts_response_payload"] != true {
				t.Errorf("envelope: %v", e.obj)
			}
			got <- e.obj["payload"].(obj)
			return answer
		})
		slash := obj{"user": slack.UserLinus, "channel": "C0ENG", "text": "/deckhand costs of @Ada"}
		f.control("slash", slash)
		p := <-got
		if p["command"] != "/deckhand" || p["text"] != "costs of <@U0ADA>" || p["user_id"] != slack.UserLinus || p["channel_name"] != "engineering" || p["team_domain"] == "" {
			t.Errorf("payload: %v", p)
		}
		f.respond(t, p["response_url"].(string), obj{"text": "later"}, 200)
		answer = obj{"text": "at once"}
		out := f.control("slash", slash)
		if dig(t, out, "ephemerals/0/text") != "at once" || dig(t, out, "ephemerals/0/ephemeral_to") != slack.UserLinus {
			t.Errorf("answer: %v", out)
		}
		answer = obj{"text": "for all", "response_type": "in_channel"}
		slash["expect"], slash["channel"] = "message", "#engineering"
		if out := f.control("slash", slash); dig(t, out, "messages/0/text") != "for all" {
			t.Errorf("in_channel: %v", out)
		}
		f.refused("slash", obj{"user": slack.UserGuest, "channel": "C0ENG", "text": "x"})
	})
}

func TestShortcutsAndSuggestions(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		said := f.say(slack.UserLinus, slack.ChannelEngineering, "look", "")
		menu := f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x", "blocks": []any{obj{"type": "actions", "elements": []any{obj{"type": "external_select", "action_id": "ext"}}}}})["ts"]
		clicks := f.clicks(func(p obj) any {
			if p["type"] == "block_suggestion" {
				return obj{"options": []any{option(p["value"].(string))}}
			}
			return nil
		})
		f.control("shortcut", obj{"user": slack.UserAda, "callback_id": "new"})
		if p := <-clicks; p["type"] != "shortcut" || p["callback_id"] != "new" || p["trigger_id"] == "" {
			t.Errorf("shortcut: %v", p)
		}
		f.control("shortcut", obj{"user": slack.UserAda, "callback_id": "ask", "channel": "C0ENG", "message_ts": said})
		if p := <-clicks; p["type"] != "message_action" || dig(t, p, "message/text") != "look" || p["response_url"] == "" {
			t.Errorf("message action: %v", p)
		}
		got := f.control("options", obj{"user": slack.UserAda, "channel": "C0ENG", "message_ts": menu, "action_id": "ext", "value": "de"})
		if dig(t, got, "options/0/value") != "de" {
			t.Errorf("options: %v", got)
		}
		<-clicks
		f.control("actions", obj{"user": slack.UserAda, "channel": "C0ENG", "message_ts": menu, "action_id": "ext", "selected": option("de")})
		if p := <-clicks; dig(t, p, "actions/0/selected_option/text/text") != "DE" {
			t.Errorf("select: %v", p)
		}
		f.refused("shortcut", obj{"user": slack.UserAda})
	})
}
