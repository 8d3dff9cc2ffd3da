package pulls

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/forge"
)

// maxDelivery is what is read of a delivery. Forges' own are smaller.
const maxDelivery = 4 << 20

// delivery is what a forge says has changed: the numbers of pull requests, and commits. What else
// it says is not read.
type delivery struct {
	SHA              string // of a status
	Number           int
	PullRequest      numbered `json:"pull_request"`
	Issue            numbered // a comment on a pull request
	MergeRequest     numbered `json:"merge_request"`
	ObjectAttributes numbered `json:"object_attributes"` // GitLab's merge requests and pipelines
	CheckRun         numbered `json:"check_run"`
	CheckSuite       numbered `json:"check_suite"`
	WorkflowRun      numbered `json:"workflow_run"`
}

type numbered struct {
	Number, IID int
	SHA         string
	HeadSHA     string `json:"head_sha"`
}

// Webhooks takes the deliveries of forges at /webhooks/{project}. One whose signature is right has
// the forge asked about its pull request soon, as a poll does, and does nothing else.
func (s *Service) Webhooks() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks/{project}", s.delivered)
	return mux
}

func (s *Service) delivered(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDelivery))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	project, ok := s.Projects[r.PathValue("project")]
	if err != nil || !ok || !signed(project.PullRequests.Kind, os.Getenv(project.PullRequests.WebhookSecretEnv), r.Header, body) {
		http.Error(w, "the signature is wrong", http.StatusUnauthorized)
		return
	}
	var d delivery
	_ = json.Unmarshal(body, &d) // what is not there is zero, and of no pull request
	numbers, commits := []int{d.Number}, []string{d.SHA}
	for _, n := range []numbered{d.PullRequest, d.Issue, d.MergeRequest, d.ObjectAttributes, d.CheckRun, d.CheckSuite, d.WorkflowRun} {
		numbers, commits = append(numbers, n.Number, n.IID), append(commits, n.SHA, n.HeadSHA)
	}
	if err := s.Store.PollPulls(r.Context(), project.Name, numbers, commits); err != nil {
		s.Log.Error("have a pull request asked about", zap.Error(err))
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// signed reports whether whoever knows the secret sent this; without a secret nobody did.
func signed(kind forge.Kind, secret string, h http.Header, body []byte) bool {
	if secret == "" {
		return false
	}
	sum := func(key, text []byte) []byte {
		m := hmac.New(sha256.New, key)
		_, _ = m.Write(text) // it never fails
		return m.Sum(nil)
	}
	var given string
	switch kind {
	case forge.GitLab: // it sends the secret itself; sums are compared, so that not even its length shows
		return hmac.Equal(sum(nil, []byte(h.Get("X-Gitlab-Token"))), sum(nil, []byte(secret)))
	case forge.GitHub:
		var ok bool
		if given, ok = strings.CutPrefix(h.Get("X-Hub-Signature-256"), "sha256="); !ok {
			return false
		}
	case forge.Gitea:
		given = h.Get("X-Gitea-Signature")
	}
	mac, err := hex.DecodeString(given)
	return err == nil && hmac.Equal(mac, sum([]byte(secret), body))
}
