package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
)

// directory is a loopback stand-in for the few methods of Slack's that tell names.
func directory(t *testing.T) (api *slack.Client, calls func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	counts := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := strings.TrimPrefix(r.URL.Path, "/")
		mu.Lock()
		counts[method]++
		mu.Unlock()
		user := func(id string) string {
			return fmt.Sprintf(`{"id":%q,"name":"login","deleted":%t,"real_name":"Real %s","profile":{"display_name":%q}}`, id, id == "U2", id, map[string]string{"U1": "Ann"}[id])
		}
		switch {
		case method == "users.info" && r.FormValue("user") != "U404":
			fmt.Fprintf(w, `{"ok":true,"user":%s}`, user(r.FormValue("user")))
		case method == "users.list" && r.FormValue("cursor") == "":
			fmt.Fprintf(w, `{"ok":true,"members":[%s],"response_metadata":{"next_cursor":"more"}}`, user("U1"))
		case method == "users.list":
			fmt.Fprintf(w, `{"ok":true,"members":[%s],"response_metadata":{"next_cursor":""}}`, user("U2"))
		case method == "conversations.info" && r.FormValue("channel") == "D1":
			fmt.Fprint(w, `{"ok":true,"channel":{"id":"D1","is_im":true}}`)
		case method == "conversations.info":
			fmt.Fprintf(w, `{"ok":true,"channel":{"id":%q,"name":"general"}}`, r.FormValue("channel"))
		case method == "conversations.list" && r.FormValue("cursor") == "":
			fmt.Fprint(w, `{"ok":true,"channels":[{"id":"C1","name":"general"}],"response_metadata":{"next_cursor":"more"}}`)
		case method == "conversations.list":
			fmt.Fprint(w, `{"ok":true,"channels":[{"id":"C2","name":"random"}],"response_metadata":{"next_cursor":""}}`)
		default:
			fmt.Fprint(w, `{"ok":false,"error":"user_not_found"}`)
		}
	}))
	t.Cleanup(server.Close)
	return slack.New("xoxb-1", slack.OptionAPIURL(server.URL+"/")), func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return counts
	}
}

func ids(users, channels []string) nameIDs {
	n := nameIDs{users: map[string]bool{}, channels: map[string]bool{}}
	for _, id := range users {
		n.add(n.users, id)
	}
	for _, id := range channels {
		n.add(n.channels, id)
	}
	return n
}

func TestOnlyWhatIsShownIsLookedUp(t *testing.T) {
	t.Parallel()
	api, calls := directory(t)
	n := slackNamesOf(t.Context(), api, ids([]string{"U1", "U2", "U404", ""}, []string{"C9", "D1"}))
	if diff := cmp.Diff(map[string]slackUser{"U1": {name: "Ann"}, "U2": {name: "Real U2", deleted: true}}, n.users, cmp.AllowUnexported(slackUser{})); diff != "" {
		t.Errorf("people (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"C9": "general", "D1": "direct message"}, n.channels); diff != "" {
		t.Errorf("channels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"users.info": 3, "conversations.info": 2}, calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// Hundreds of names come by the list, in a few calls that Slack's limits allow.
func TestManyNamesAreLookedUpTogether(t *testing.T) {
	t.Parallel()
	api, calls := directory(t)
	var users, channels []string
	for i := range 500 {
		users, channels = append(users, fmt.Sprintf("U%d", i)), append(channels, fmt.Sprintf("C%d", i))
	}
	n := slackNamesOf(t.Context(), api, ids(users, channels))
	if name, deleted := n.UserName("U2"); name != "Real U2" || !deleted {
		t.Errorf("U2 is %q, %t", name, deleted)
	}
	if name, _ := n.UserName("U3"); name != "" || n.ChannelName("C2") != "random" || n.ChannelName("C3") != "" {
		t.Errorf("U3 is %q, C2 %q, C3 %q", name, n.ChannelName("C2"), n.ChannelName("C3"))
	}
	if diff := cmp.Diff(map[string]int{"users.list": 2, "conversations.list": 2}, calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
