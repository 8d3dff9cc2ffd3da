package directory

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/playground/slack"
)

// loopback stands in for the few methods of Slack's that tell names.
func loopback(t *testing.T) (api *slackgo.Client, calls func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	counts := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := strings.TrimPrefix(r.URL.Path, "/")
		mu.Lock()
		counts[method]++
		mu.Unlock()
		user := func(id string) string {
			return fmt.Sprintf(`{"id":%q,"name":"login","deleted":%t,"real_name":"Real %s","profile":{"display_name":%q}}`, id, id == "U2", id, map[string]string{"U1": " Ann", "U2": "  "}[id])
		}
		switch {
		case method == "users.info" && r.FormValue("user") != "U404":
			fmt.Fprintf(w, `{"ok":true,"user":%s}`, user(r.FormValue("user")))
		case method == "users.list" && r.FormValue("cursor") == "":
			fmt.Fprintf(w, `{"ok":true,"members":[%s],"response_metadata":{"next_cursor":"more"}}`, user("U1"))
		case method == "users.list":
			fmt.Fprintf(w, `{"ok":true,"members":[%s],"response_metadata":{"next_cursor":""}}`, user("U2"))
		case method == "conversations.info":
			fmt.Fprintf(w, `{"ok":true,"channel":{"id":%q,"name":"general"}}`, r.FormValue("channel"))
		case method == "conversations.list" && r.FormValue("cursor") == "":
			fmt.Fprint(w, `{"ok":true,"channels":[{"id":"C1","name":"general"}],"response_metadata":{"next_cursor":"more"}}`)
		case method == "conversations.list":
			fmt.Fprint(w, `{"ok":true,"channels":[{"id":"C2","name":"random","is_private":true}],"response_metadata":{"next_cursor":""}}`)
		default:
			fmt.Fprint(w, `{"ok":false,"error":"user_not_found"}`)
		}
	}))
	t.Cleanup(server.Close)
	return slackgo.New("xoxb-1", slackgo.OptionAPIURL(server.URL+"/")), func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return counts
	}
}

func TestOnlyWhatIsShownIsLookedUp(t *testing.T) {
	t.Parallel()
	api, calls := loopback(t)
	n := New(api, zap.NewNop()).Names(t.Context(), []string{"U1", "U2", "U404"}, []string{"C9", "D1"}, nil)
	want := Names{
		people:   map[string]person{"U1": {name: "Ann"}, "U2": {name: "Real U2", deleted: true}, "U404": {deleted: true}},
		channels: map[string]string{"C9": "general", "D1": "direct messages"},
	}
	if diff := cmp.Diff(want, n, cmp.AllowUnexported(Names{}, person{})); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"users.info": 3, "conversations.info": 1}, calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// Hundreds of names come by the list, in a few calls that Slack's limits allow.
func TestManyNamesAreLookedUpTogether(t *testing.T) {
	t.Parallel()
	api, calls := loopback(t)
	d := New(api, zap.NewNop())
	var people, channels []string
	for i := range namesMost {
		people, channels = append(people, fmt.Sprintf("U9%d", i)), append(channels, fmt.Sprintf("C9%d", i))
	}
	people, channels = append(people, "U2", "U3"), append(channels, "C1", "C2", "C3", "D2")
	for range 2 {
		n := d.Names(t.Context(), people, channels, func(string) bool { return false })
		if name, deleted := n.UserName("U2"); name != "Real U2" || !deleted {
			t.Errorf("U2 is %q, %t", name, deleted)
		}
		if name, _ := n.UserName("U3"); name != "" {
			t.Errorf("U3 is %q", name)
		}
		got := []string{n.ChannelName("C1"), n.ChannelName("C2"), n.ChannelName("C3"), n.ChannelName("D2")}
		if diff := cmp.Diff([]string{"general", "private-channel", "", "direct messages"}, got); diff != "" {
			t.Errorf("channels (-want +got):\n%s", diff)
		}
	}
	want := map[string]int{"users.info": namesMost, "conversations.info": namesMost, "users.list": 2, "conversations.list": 2}
	if diff := cmp.Diff(want, calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestNamesOfChannels: private ones are named where they are known anyway.
func TestNamesOfChannels(t *testing.T) {
	t.Parallel()
	d := workspace(t)
	here := func(known string) func(string) bool { return func(id string) bool { return id == known } }
	tests := []struct {
		id    string
		known func(string) bool
		want  string
	}{
		{slack.ChannelEngineering, here(""), "engineering"},
		{slack.ChannelPrivate, here(""), "private-channel"},
		{slack.ChannelPrivate, here(slack.ChannelPrivate), "private-ops"},
		{slack.ChannelPrivate, nil, "private-ops"},
		{"D0LINUS", here(""), "direct messages"},
		{"D0LINUS", nil, "direct messages"},
		{"C0GONE", nil, ""},
	}
	for _, tt := range tests {
		if got := d.Names(t.Context(), nil, []string{tt.id}, tt.known).ChannelName(tt.id); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.id, got, tt.want)
		}
	}
}

// TestWhoIsThere: people, groups and channels of a workspace, and those who are not there.
func TestWhoIsThere(t *testing.T) {
	t.Parallel()
	d := workspace(t)
	ada, err := d.User(t.Context(), slack.UserAda)
	if err != nil || ada.ID != slack.UserAda || d.Name(t.Context(), slack.UserAda) != "Ada Admin" {
		t.Errorf("Ada is %+v, %v", ada, err)
	}
	if group, err := d.Group(t.Context(), slack.GroupApprovers); err != nil || !group[slack.UserGrace] || group[slack.UserLinus] {
		t.Errorf("the approvers are %v, %v", group, err)
	}
	for what, look := range map[string]func() error{
		"a person":  func() error { _, err := d.User(t.Context(), "U0NOBODY"); return err },
		"a group":   func() error { _, err := d.Group(t.Context(), "S0NOWHERE"); return err },
		"a channel": func() error { _, err := d.Channel(t.Context(), "C0NOWHERE"); return err },
	} {
		if look() == nil {
			t.Errorf("%s that is not there was found", what)
		}
	}
	if name := d.Name(t.Context(), "U0NOBODY"); name != "U0NOBODY" {
		t.Errorf("nobody is called %q", name)
	}
}

// TestFactsAreThoseOfSlack: what Slack says of people, channels and groups is what access
// hears, and what it cannot say is an error.
func TestFactsAreThoseOfSlack(t *testing.T) {
	t.Parallel()
	d := workspace(t)
	rules := access.Rules{Roles: access.Roles{Admins: []string{slack.UserAda}, Users: []string{slack.GroupEngineers, "S0NOWHERE"}}}
	for _, tt := range []struct{ user, channel, want string }{
		{slack.UserAda, slack.ChannelEngineering, ""},
		{slack.UserLinus, "", ""},
		{slack.UserMallory, "", "a user group could not be looked up"},
		{slack.UserGuest, "", "a guest"},
		{slack.BotUser, "", "a bot"},
		{slack.UserAda, slack.ChannelShared, "an externally shared channel"},
		{slack.UserAda, "C0NOWHERE", "the channel could not be looked up"},
		{"U0NOBODY", "", "the user could not be looked up"},
	} {
		q := access.Request{Act: access.Prompt, Team: slack.TeamID, User: tt.user, Channel: tt.channel}
		answer := d.Establish(t.Context(), slack.TeamID, tt.user, tt.channel, func(f access.Facts) access.Answer { return rules.Authorise(q, f) })
		if answer.Refusal.Reason != tt.want || answer.Allowed != (tt.want == "") {
			t.Errorf("%s in %q: %v, %q; want %q", tt.user, tt.channel, answer.Allowed, answer.Refusal.Reason, tt.want)
		}
	}
}

// TestWhatIsKnownIsBelievedForAMinute and what is not known is asked again.
func TestWhatIsKnownIsBelievedForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c cache[int]
		calls, fails := 0, errors.New("slack is away")
		get := func() error {
			_, err := c.get(t.Context(), "U1", func(context.Context) (int, error) { calls++; return calls, fails })
			return err
		}
		if err := errors.Join(get(), get()); !errors.Is(err, fails) || calls != 2 {
			t.Errorf("a failure was believed: %d calls, %v", calls, err)
		}
		fails = nil
		_, _ = get(), get()
		time.Sleep(ttl - time.Second)
		if err := get(); err != nil || calls != 3 {
			t.Errorf("%d calls within the minute, %v", calls, err)
		}
		time.Sleep(2 * time.Second)
		if err := get(); err != nil || calls != 4 {
			t.Errorf("%d calls after the minute, %v", calls, err)
		}
	})
}

// TestNobodyWaitsLongerThanTheyWant for a look-up that others wait for, too.
func TestNobodyWaitsLongerThanTheyWant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c cache[int]
		calls := 0
		slow := func(context.Context) (int, error) {
			calls++
			time.Sleep(6 * time.Second)
			return 7, nil
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.get(ctx, "U1", slow); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("it waited %s: %v", time.Since(begin), err)
		}
		if v, err := c.get(t.Context(), "U1", slow); v != 7 || err != nil || calls != 1 || time.Since(begin) != 6*time.Second {
			t.Errorf("the look-up under way gave %d after %s and %d calls: %v", v, time.Since(begin), calls, err)
		}
	})
}

func workspace(t *testing.T) *Directory {
	t.Helper()
	w, err := slack.New(slack.Options{NoRateLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := w.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return New(slackgo.New(w.BotToken(), slackgo.OptionAPIURL(server.URL+"/api/")), zap.NewNop())
}
