package slackui

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	slackgo "github.com/slack-go/slack"

	"deckhand/internal/playground/slack"
	"deckhand/internal/waittest"
)

// The part of the manifest that the table makes, as it stands in the file.
func TestManifestIsMadeOfTheTable(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../deploy/slack-manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var comment, scopes, events strings.Builder
	var heard []string
	for _, u := range uses {
		heard = append(heard, strings.Fields(u.events)...)
		if u.scope == "" {
			continue
		}
		fmt.Fprintf(&comment, "#   %-18s %s\n", u.scope, u.what)
		fmt.Fprintf(&scopes, "      - %s\n", u.scope)
		for feature := range strings.FieldsSeq(u.features) {
			if !strings.Contains(string(raw), "\n  "+feature+":\n") {
				t.Errorf("%s is asked for a feature that the manifest has not: %s", u.scope, feature)
			}
		}
	}
	slices.Sort(heard)
	for _, event := range heard {
		fmt.Fprintf(&events, "      - %s\n", event)
	}
	for _, part := range []string{
		". Why each scope:\n#\n" + comment.String() + "_metadata:\n",
		"\noauth_config:\n  scopes:\n    bot:\n" + scopes.String() + "settings:\n",
		"\n    bot_events:\n" + events.String() + "  interactivity:\n",
	} {
		if strings.Count(string(raw), part) != 1 {
			t.Errorf("deploy/slack-manifest.yaml must have this part:\n%s", part)
		}
	}
}

// calls are all ways in which the code calls Slack's Web API by slack-go, and how to
// make each of them.
var calls = map[string]func(context.Context, *slackgo.Client){
	"AuthTestContext":        func(ctx context.Context, c *slackgo.Client) { _, _ = c.AuthTestContext(ctx) },
	"StartSocketModeContext": func(ctx context.Context, c *slackgo.Client) { _, _, _ = c.StartSocketModeContext(ctx) },
	"PostMessageContext": func(ctx context.Context, c *slackgo.Client) {
		_, _, _ = c.PostMessageContext(ctx, "C1", slackgo.MsgOptionText("x", false))
	},
	"DeleteMessageContext": func(ctx context.Context, c *slackgo.Client) { _, _, _ = c.DeleteMessageContext(ctx, "C1", "1.0") },
	"RemoveReactionContext": func(ctx context.Context, c *slackgo.Client) {
		_ = c.RemoveReactionContext(ctx, "eyes", slackgo.NewRefToMessage("C1", "1.0"))
	},
	"UpdateMessageContext": func(ctx context.Context, c *slackgo.Client) {
		_, _, _, _ = c.UpdateMessageContext(ctx, "C1", "1.0", slackgo.MsgOptionText("x", false))
	},
	"StartStreamContext":  func(ctx context.Context, c *slackgo.Client) { _, _, _ = c.StartStreamContext(ctx, "C1") },
	"AppendStreamContext": func(ctx context.Context, c *slackgo.Client) { _, _, _ = c.AppendStreamContext(ctx, "C1", "1.0") },
	"StopStreamContext":   func(ctx context.Context, c *slackgo.Client) { _, _, _ = c.StopStreamContext(ctx, "C1", "1.0") },
	"PostEphemeralContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.PostEphemeralContext(ctx, "C1", "U1", slackgo.MsgOptionText("x", false))
	},
	"AddReactionContext": func(ctx context.Context, c *slackgo.Client) {
		_ = c.AddReactionContext(ctx, "eyes", slackgo.NewRefToMessage("C1", "1.0"))
	},
	"GetFileInfoContext": func(ctx context.Context, c *slackgo.Client) { _, _, _, _ = c.GetFileInfoContext(ctx, "F1", 0, 0) },
	"GetFileContext": func(ctx context.Context, c *slackgo.Client) {
		_ = c.GetFileContext(ctx, "https://example.org/", io.Discard)
	},
	"UploadFileContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.UploadFileContext(ctx, slackgo.UploadFileParameters{Content: "x", FileSize: 1, Filename: "x", Channel: "C1"})
	},
	"GetUploadURLExternalContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.GetUploadURLExternalContext(ctx, slackgo.GetUploadURLExternalParameters{FileName: "x", FileSize: 1})
	},
	"UploadToURL": func(ctx context.Context, c *slackgo.Client) {
		_ = c.UploadToURL(ctx, slackgo.UploadToURLParameters{UploadURL: "https://example.org/", Content: "x", Filename: "x"})
	},
	"CompleteUploadExternalContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.CompleteUploadExternalContext(ctx, slackgo.CompleteUploadExternalParameters{Files: []slackgo.FileSummary{{ID: "F1"}}, Channel: "C1"})
	},
	"SetAgentSessionStatusContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.SetAgentSessionStatusContext(ctx, slackgo.AgentSessionSetStatusParameters{Status: "active"})
	},
	"SetAssistantThreadsSuggestedPromptsContext": func(ctx context.Context, c *slackgo.Client) {
		_ = c.SetAssistantThreadsSuggestedPromptsContext(ctx, slackgo.AssistantThreadsSetSuggestedPromptsParameters{})
	},
	"SetAssistantThreadsTitleContext": func(ctx context.Context, c *slackgo.Client) {
		_ = c.SetAssistantThreadsTitleContext(ctx, slackgo.AssistantThreadsSetTitleParameters{})
	},
	"SetAssistantThreadsStatusContext": func(ctx context.Context, c *slackgo.Client) {
		_ = c.SetAssistantThreadsStatusContext(ctx, slackgo.AssistantThreadsSetStatusParameters{})
	},
	"OpenViewContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.OpenViewContext(ctx, "1", slackgo.ModalViewRequest{})
	},
	"UpdateViewContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.UpdateViewContext(ctx, slackgo.ModalViewRequest{}, "", "", "V1")
	},
	"PublishViewContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.PublishViewContext(ctx, slackgo.PublishViewContextRequest{UserID: "U1"})
	},
	"GetConversationInfoContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: "C1"})
	},
	"GetConversationsContext": func(ctx context.Context, c *slackgo.Client) {
		_, _, _ = c.GetConversationsContext(ctx, &slackgo.GetConversationsParameters{})
	},
	"GetConversationsForUserContext": func(ctx context.Context, c *slackgo.Client) {
		_, _, _ = c.GetConversationsForUserContext(ctx, &slackgo.GetConversationsForUserParameters{})
	},
	"GetConversationHistoryContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{ChannelID: "C1"})
	},
	"GetConversationRepliesContext": func(ctx context.Context, c *slackgo.Client) {
		_, _, _, _ = c.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{ChannelID: "C1", Timestamp: "1.0"})
	},
	"OpenConversationContext": func(ctx context.Context, c *slackgo.Client) {
		_, _, _, _ = c.OpenConversationContext(ctx, &slackgo.OpenConversationParameters{Users: []string{"U1"}})
	},
	"GetUserInfoContext": func(ctx context.Context, c *slackgo.Client) { _, _ = c.GetUserInfoContext(ctx, "U1") },
	"GetUsersPaginated":  func(ctx context.Context, c *slackgo.Client) { _, _ = c.GetUsersPaginated().Next(ctx) },
	"GetUserGroupsContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.GetUserGroupsContext(ctx)
	},
	"GetUserGroupMembersContext": func(ctx context.Context, c *slackgo.Client) {
		_, _ = c.GetUserGroupMembersContext(ctx, "S1")
	},
}

// Whoever calls Slack in a new way finds the table: every call of the code is in it, and
// it holds nothing that is not called.
func TestEveryCallOfSlackIsInTheTable(t *testing.T) {
	t.Parallel()
	for at, name := range callsOfSlack(t) {
		if calls[name] == nil {
			t.Errorf("%s calls %s: write how here, and the method and its scope in the table of scopes.go", at, name)
		}
	}
	found := slices.Collect(maps.Values(callsOfSlack(t)))
	called := map[string]bool{}
	for name, call := range calls {
		if !slices.Contains(found, name) {
			t.Errorf("nothing calls %s any more", name)
		}
		for _, method := range methodsOf(t, call) {
			called[method] = true
		}
	}
	var listed []string
	for _, u := range uses {
		listed = append(listed, strings.Fields(u.methods)...)
	}
	for method := range called {
		if !slices.Contains(listed, method) {
			t.Errorf("%s is called, and has no row in the table", method)
		}
	}
	for _, method := range listed {
		if !called[method] {
			t.Errorf("%s has a row in the table, and nothing calls it", method)
		}
	}
}

// callsOfSlack finds the methods of slack-go's client that the bot's code names, by where.
func callsOfSlack(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	methods := map[string]bool{}
	for m := range reflect.TypeFor[*slackgo.Client]().Methods() {
		methods[m.Name] = true
	}
	walk := func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "playground" || d.Name() == "node_modules" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"github.com/slack-go/slack"` }) {
			return nil
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || !methods[s.Sel.Name] {
				return true
			}
			if of, ok := s.X.(*ast.Ident); !ok || of.Name != "publish" { // its rates have the methods' names
				out[set.Position(s.Pos()).String()] = s.Sel.Name
			}
			return true
		})
		return nil
	}
	for _, root := range []string{"../../internal", "../../cmd"} {
		if err := filepath.WalkDir(root, walk); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// methodsOf makes a call of slack-go's and tells which methods of the Web API it came to.
func methodsOf(t *testing.T, call func(context.Context, *slackgo.Client)) (methods []string) {
	t.Helper()
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if method, ok := strings.CutPrefix(r.URL.Path, "/api/"); ok {
			mu.Lock()
			methods = append(methods, method)
			mu.Unlock()
		}
		_, _ = fmt.Fprintf(w, `{"ok":true,"upload_url":"http://%s/upload","file_id":"F1","files":[{"id":"F1"}],"channel":{"id":"D1"}}`, r.Host)
	}))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	call(ctx, slackgo.New("xoxb-1", slackgo.OptionAPIURL(srv.URL+"/api/"), slackgo.OptionAppLevelToken("xapp-1")))
	mu.Lock()
	defer mu.Unlock()
	return methods
}

// The playground has Slack's documentation from elsewhere than the table: a row with the
// wrong scope, and a method without its row's scope, are found here.
func TestTheTableHasTheScopesOfTheDocumentation(t *testing.T) {
	t.Parallel()
	var all []string
	for _, u := range uses {
		if u.scope != "" {
			all = append(all, u.scope)
		}
	}
	if !slices.IsSorted(all) {
		t.Errorf("the rows are not in order: %q", all)
	}
	if got := slack.DefaultScopes(); !slices.Equal(all, got) {
		t.Errorf("the playground's app has the scopes %q, the manifest's %q", got, all)
	}
	for _, given := range [][]string{all, {"none"}} {
		srv, err := slack.New(slack.Options{NoRateLimits: true, Scopes: given})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = srv.Close(context.WithoutCancel(t.Context())) })
		for _, u := range uses {
			for method := range strings.FieldsSeq(u.methods) {
				askPlayground(t, srv, u, method, len(given) > 1)
			}
		}
	}
}

// askPlayground calls a method of the playground without arguments: it looks at the scopes
// first.
func askPlayground(t *testing.T, srv *slack.Server, u use, method string, granted bool) {
	t.Helper()
	token := srv.BotToken()
	if method == "apps.connections.open" {
		token = srv.AppToken()
	}
	ask := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/"+method, http.NoBody)
	ask.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	srv.Handler().ServeHTTP(answer, ask)
	accepted := strings.Split(answer.Header().Get("X-Accepted-Oauth-Scopes"), ",")
	if !slices.Contains(accepted, u.scope) {
		t.Errorf("%s takes one of %q, not %s", method, accepted, cmp.Or(u.scope, "none"))
	}
	if refused := strings.Contains(answer.Body.String(), "missing_scope"); refused != (!granted && u.scope != "") {
		t.Errorf("%s, granted %t: %s", method, granted, answer.Body)
	}
}
