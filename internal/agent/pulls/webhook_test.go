package pulls

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"deckhand/internal/forge"
)

const secretOfTests = "DECKHAND_TEST_WEBHOOK_SECRET"

// TestADeliveryHasTheForgeAsked: once its signature is right, and only about that pull request;
// everything else does nothing.
func TestADeliveryHasTheForgeAsked(t *testing.T) {
	t.Parallel()
	if err := os.Setenv(secretOfTests, "the secret"); err != nil { //nolint:usetesting // parallel tests, and always the same
		t.Fatal(err)
	}
	b := newBench(t)
	one, two := b.thread("one.txt", "1\n"), b.thread("two.txt", "2\n")
	first := b.opens(one)
	b.opens(two)
	sign := func(secret, body string) string {
		m := hmac.New(sha256.New, []byte(secret))
		_, _ = m.Write([]byte(body))
		return hex.EncodeToString(m.Sum(nil))
	}
	number := fmt.Sprintf(`{"action":"opened","pull_request":{"number":%d}}`, first.Number)
	const mr = `{"object_kind":"merge_request","object_attributes":{"iid":1}}`
	for _, c := range []struct {
		name, project string
		kind          forge.Kind
		headers       map[string]string
		body          string
		status, soon  int
	}{
		{"GitHub", "web", forge.GitHub, map[string]string{"X-Hub-Signature-256": "sha256=" + sign("the secret", number)}, number, 204, 1},
		{"Gitea", "web", forge.Gitea, map[string]string{"X-Gitea-Signature": sign("the secret", number)}, number, 204, 1},
		{"GitLab", "web", forge.GitLab, map[string]string{"X-Gitlab-Token": "the secret"}, mr, 204, 1},
		{"a check", "web", forge.GitHub, map[string]string{"X-Hub-Signature-256": "sha256=" + sign("the secret", `{"check_run":{"head_sha":"`+first.Head+`"}}`)}, `{"check_run":{"head_sha":"` + first.Head + `"}}`, 204, 1},
		{"a status", "web", forge.Gitea, map[string]string{"X-Gitea-Signature": sign("the secret", `{"sha":"`+first.Head+`"}`)}, `{"sha":"` + first.Head + `"}`, 204, 1},
		{"of nothing here", "web", forge.Gitea, map[string]string{"X-Gitea-Signature": sign("the secret", `{"pull_request":{"number":99}}`)}, `{"pull_request":{"number":99}}`, 204, 0},
		{"no JSON", "web", forge.Gitea, map[string]string{"X-Gitea-Signature": sign("the secret", "x")}, "x", 204, 0},
		{"another secret", "web", forge.GitHub, map[string]string{"X-Hub-Signature-256": "sha256=" + sign("a guess", number)}, number, 401, 0},
		{"another body", "web", forge.GitHub, map[string]string{"X-Hub-Signature-256": "sha256=" + sign("the secret", number)}, number + " ", 401, 0},
		{"without sha256=", "web", forge.GitHub, map[string]string{"X-Hub-Signature-256": sign("the secret", number)}, number, 401, 0},
		{"no signature", "web", forge.Gitea, nil, number, 401, 0},
		{"an empty one", "web", forge.Gitea, map[string]string{"X-Gitea-Signature": ""}, number, 401, 0},
		{"a wrong token", "web", forge.GitLab, map[string]string{"X-Gitlab-Token": "the secre"}, mr, 401, 0},
		{"another forge's header", "web", forge.GitLab, map[string]string{"X-Gitea-Signature": sign("the secret", mr)}, mr, 401, 0},
		{"no such project", "nowhere", forge.Gitea, map[string]string{"X-Gitea-Signature": sign("the secret", number)}, number, 401, 0},
		{"a project without a secret", "web", forge.Gitea, map[string]string{"X-Gitea-Signature": sign("", number)}, number, 401, 0},
		{"too long", "web", forge.Gitea, map[string]string{"X-Gitea-Signature": "00"}, strings.Repeat(" ", maxDelivery+1), 413, 0},
	} {
		p := b.Projects["web"]
		p.PullRequests.Kind, p.PullRequests.WebhookSecretEnv = c.kind, secretOfTests
		if c.name == "a project without a secret" {
			p.PullRequests.WebhookSecretEnv = ""
		}
		b.Projects["web"] = p
		if _, err := b.db.Exec(t.Context(), `UPDATE river_job SET state = 'scheduled', scheduled_at = now() + interval '1 hour' WHERE kind = 'pull_due'`); err != nil {
			t.Fatal(err)
		}
		for range 2 { // sent twice it counts once
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/"+c.project, strings.NewReader(c.body))
			for name, value := range c.headers {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			b.Webhooks().ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("%s: %d", c.name, w.Code)
			}
			var soon, right int
			if err := b.db.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE (args->>'pull_id')::bigint = $1) FROM river_job WHERE kind = 'pull_due' AND scheduled_at < now() + interval '1 minute'`, first.ID).Scan(&soon, &right); err != nil {
				t.Fatal(err)
			}
			if soon != c.soon || right != soon {
				t.Errorf("%s: %d pull requests are asked about, %d of them meant", c.name, soon, right)
			}
		}
	}
	if b.acts() != "opened opened" || b.wakes() != 0 {
		t.Errorf("deliveries did more: %s", b.acts())
	}
}
