package slacktypes_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"deckhand/internal/needtest"
	"deckhand/internal/playground/slacktypes"
)

// sdk finds Slack's Node SDK and the compiler, or skips the test.
func sdk(t *testing.T) string {
	t.Helper()
	required := needtest.Required()
	dir, err := slacktypes.Folder(t.Context(), "../bolt/install.sh", required)
	switch {
	case err != nil && required:
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
	return dir
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// rendered adds all that package render's tests keep, as the calls that show it.
func rendered(t *testing.T, s *slacktypes.Shapes) {
	t.Helper()
	files, err := filepath.Glob("../../slackui/render/testdata/*/*.json")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		var all any
		read(t, file, &all)
		list, ok := all.([]any)
		if !ok {
			list = []any{all}
		}
		for _, one := range list {
			page, ok := one.(map[string]any)
			if !ok {
				continue
			}
			method, args := "", map[string]any{}
			switch page["type"] {
			case "modal":
				method, args["trigger_id"], args["view"] = "views.open", "1", page
			case "home":
				method, args["user_id"], args["view"] = "views.publish", "U1", page
			default:
				if page["Text"] == nil {
					continue // no page
				}
				method, args["channel"], args["text"] = "chat.postMessage", "C1", page["Text"]
				if page["Blocks"] != nil {
					args["blocks"] = page["Blocks"]
				}
			}
			if err := s.Add(method, args); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// TestWhatIsShownFitsSlacksTypes compiles all that is rendered, and the manifest with its
// scopes and events, against the types of Slack's own SDK.
func TestWhatIsShownFitsSlacksTypes(t *testing.T) {
	t.Parallel()
	var s slacktypes.Shapes
	rendered(t, &s)
	raw, err := os.ReadFile("../../../deploy/slack-manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest map[string]any
	if err := yaml.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	s.AddManifest(manifest)
	problems, err := s.Check(t.Context(), sdk(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// TestWhatDoesNotFitIsFound: else the test above says nothing.
func TestWhatDoesNotFitIsFound(t *testing.T) {
	t.Parallel()
	var s slacktypes.Shapes
	for method, args := range map[string]map[string]any{
		"chat.update":     {"channel": "C1", "ts": "1.0", "text": "x", "unfurl_links": "false"},
		"views.open":      {"trigger_id": "1", "view": `{"type": "modal", "title": {"type": "plain_text", "text": "x"}, "blocks": [{"type": "actions", "elements": [{"type": "button", "text": {"type": "mrkdwn", "text": "x"}}]}]}`},
		"reactions.add":   {"channel": "C1", "name": "eyes"},
		"chat.noSuchCall": {"channel": "C1"},
	} {
		if err := s.Add(method, args); err != nil {
			t.Fatal(err)
		}
	}
	s.AddManifest(map[string]any{"display_information": map[string]any{"name": "x"}, "oauth_config": map[string]any{"scopes": map[string]any{"bot": []any{"chat:shout"}}}})
	problems, err := s.Check(t.Context(), sdk(t))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(problems, "\n")
	for _, want := range []string{"unfurl_links", `"mrkdwn"`, "timestamp", "ChatNoSuchCallArguments", "chat:shout"} {
		if !strings.Contains(all, want) {
			t.Errorf("nothing is said of %s: %s", want, all)
		}
	}
	if len(problems) != 5 {
		t.Errorf("%d problems, want 5: %s", len(problems), all)
	}
}

// TestTheManifestHasRoom holds the manifest against the limits of Slack's own schema of
// manifests (github.com/slackapi/manifest-schema), which its types do not have.
func TestTheManifestHasRoom(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../deploy/slack-manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest map[string]any
	if err := yaml.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	for path, room := range map[string]struct {
		least, most int
		form        string
	}{
		"display_information/name":                      {1, 35, ""},
		"display_information/description":               {1, 140, ""},
		"display_information/long_description":          {175, 4000, ""},
		"display_information/background_color":          {4, 7, `^#[0-9a-fA-F]{3}([0-9a-fA-F]{3})?$`},
		"features/bot_user/display_name":                {1, 80, ""},
		"features/slash_commands":                       {1, 50, ""},
		"features/slash_commands/*/command":             {2, 32, "^/"},
		"features/slash_commands/*/description":         {1, 2000, ""},
		"features/slash_commands/*/usage_hint":          {1, 1000, ""},
		"features/shortcuts":                            {1, 10, ""},
		"features/shortcuts/*/name":                     {1, 24, ""},
		"features/shortcuts/*/callback_id":              {1, 255, ""},
		"features/shortcuts/*/description":              {1, 150, ""},
		"oauth_config/scopes/bot":                       {1, 255, ""},
		"oauth_config/scopes/bot/*":                     {1, 50, ""},
		"settings/event_subscriptions/bot_events":       {1, 100, ""},
		"settings/event_subscriptions/bot_events/*":     {1, 50, ""},
		"features/agent_view/suggested_prompts":         {0, 4, ""},
		"features/agent_view/agent_description":         {1, 300, ""},
		"features/agent_view/suggested_prompts/*/title": {1, 75, ""},
	} {
		for _, v := range at(manifest, strings.Split(path, "/")) {
			n, text := 0, ""
			switch v := v.(type) {
			case string:
				n, text = utf8.RuneCountInString(v), v
			case []any:
				n = len(v)
				if names := map[any]bool{}; strings.HasSuffix(path, "bot_events") || strings.HasSuffix(path, "bot") {
					for _, name := range v {
						if names[name] {
							t.Errorf("%s has %v twice", path, name)
						}
						names[name] = true
					}
				}
			}
			if n < room.least || n > room.most || room.form != "" && !regexp.MustCompile(room.form).MatchString(text) {
				t.Errorf("%s has %d, and takes %d to %d %s: %v", path, n, room.least, room.most, room.form, v)
			}
		}
	}
}

// at are the values at a path; * is each of a list.
func at(v any, path []string) (out []any) {
	if len(path) == 0 {
		return []any{v}
	}
	switch v := v.(type) {
	case map[string]any:
		if inner, ok := v[path[0]]; ok {
			return at(inner, path[1:])
		}
	case []any:
		for _, one := range v {
			out = append(out, at(one, path[1:])...)
		}
	}
	return out
}
