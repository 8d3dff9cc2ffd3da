package slackui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/playground/slack"
	"deckhand/internal/report"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// crowd is a workspace of so many people, all called after their ids, that counts
// what it is asked.
func crowd(t *testing.T, people int) (a *App, asked func(method string) int) {
	t.Helper()
	var mu sync.Mutex
	calls := map[string]int{}
	user := func(id string) object {
		return object{"id": id, "name": "name-of-" + id, "deleted": strings.HasSuffix(id, "7")}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := strings.TrimPrefix(r.URL.Path, "/")
		mu.Lock()
		calls[method]++
		mu.Unlock()
		answer := object{"ok": true}
		switch method {
		case "users.info":
			answer["user"] = user(r.FormValue("user"))
		case "users.list":
			from := 0
			_, _ = fmt.Sscan(r.FormValue("cursor"), &from)
			var members []object
			for i := from; i < min(from+1000, people); i++ {
				members = append(members, user(fmt.Sprintf("U%05d", i)))
			}
			answer["members"] = members
			if from+1000 < people {
				answer["response_metadata"] = object{"next_cursor": fmt.Sprint(from + 1000)}
			}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	api := slackgo.New("xoxb-test", slackgo.OptionAPIURL(server.URL+"/"))
	return &App{api: api, log: zap.NewNop(), people: newDirectory(api, slack.TeamID)}, func(method string) int {
		mu.Lock()
		defer mu.Unlock()
		return calls[method]
	}
}

// TestNamesOfThousands: only those who are shown are looked up, and a file of all
// takes a few calls.
func TestNamesOfThousands(t *testing.T) {
	t.Parallel()
	a, asked := crowd(t, 3000)
	answer := report.Answer{By: store.ByUser}
	for i := range 3000 {
		answer.Lines = append(answer.Lines, report.Line{CostLine: store.CostLine{Key: fmt.Sprintf("U%05d", i), MicroUSD: int64(3000 - i)}})
	}
	names := a.costNames(t.Context(), answer, false, privateNames{})
	if name, deleted := names.UserName("U00007"); name != "name-of-U00007" || !deleted {
		t.Errorf("somebody of the table is called %q, deleted: %v", name, deleted)
	}
	if n := asked("users.info"); n != render.CostRows(store.ByUser) || asked("users.list") != 0 {
		t.Errorf("a table took %d look-ups and %d lists", n, asked("users.list"))
	}
	for range 2 {
		names = a.costNames(t.Context(), answer, true, privateNames{})
		if name, _ := names.UserName("U02999"); name != "name-of-U02999" {
			t.Errorf("the last of the file is called %q", name)
		}
	}
	if n := asked("users.info"); n > namesMost || asked("users.list") != 3 {
		t.Errorf("two files took %d look-ups and %d lists", n, asked("users.list"))
	}
}

// TestNamesOfChannels: private ones are named where they are known anyway.
func TestNamesOfChannels(t *testing.T) {
	t.Parallel()
	a := workspaceApp(t, Roles{})
	tests := []struct {
		id      string
		private privateNames
		want    string
	}{
		{slack.ChannelEngineering, privateNames{}, "engineering"},
		{slack.ChannelPrivate, privateNames{}, "private-channel"},
		{slack.ChannelPrivate, privateNames{here: slack.ChannelPrivate}, "private-ops"},
		{slack.ChannelPrivate, privateNames{all: true}, "private-ops"},
		{"D0LINUS", privateNames{}, "direct messages"},
		{"D0LINUS", privateNames{all: true}, "direct messages"},
		{"C0GONE", privateNames{all: true}, ""},
	}
	for _, tt := range tests {
		answer := report.Answer{By: store.ByChannel, Lines: []report.Line{{CostLine: store.CostLine{Key: tt.id}}}}
		if got := a.costNames(t.Context(), answer, false, tt.private).ChannelName(tt.id); got != tt.want {
			t.Errorf("%s, %+v: %q, want %q", tt.id, tt.private, got, tt.want)
		}
	}
}
