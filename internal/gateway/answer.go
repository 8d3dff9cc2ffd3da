package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"
)

// maxError bounds an error's text. A longer one is replaced by a sentence of ours.
const maxError = 64 << 10

func refuse(status int, sentence string) *Refusal { return &Refusal{status, sentence} }

func (n *Refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if n.Status == http.StatusFailedDependency {
		w.Header().Set("X-Should-Retry", "false") // it would fail the same
	}
	w.WriteHeader(n.Status)
	_, _ = w.Write(n.json()) // the caller may have gone
}

func (n *Refusal) json() []byte {
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	out, err := json.Marshal(struct {
		Type  string `json:"type"`
		Error inner  `json:"error"`
	}{"error", inner{errorType(n.Status), n.Sentence}})
	if err != nil {
		panic(err) // two texts
	}
	return out
}

// errorType is the API's name for a status.
func errorType(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusLengthRequired:
		return "invalid_request_error"
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	}
	return "api_error"
}

// handed are the response headers that reach the CLI, and the prefixes of such names. The others describe the
// network on the way, for example a team's own gateway.
var (
	handed         = []string{"Content-Type", "Content-Length", "Cache-Control", "Date", "Request-Id", "Retry-After", "Retry-After-Ms", "X-Request-Id", "X-Should-Retry"}
	handedPrefixes = []string{"Anthropic-", "X-Amzn-", "X-Ratelimit-"}
)

// answered checks the head of the provider's response.
func (s *Session) answered(resp *http.Response) error {
	t := tapOf(resp.Request)
	if t != nil {
		t.answered(resp)
	}
	for name := range resp.Header {
		if !slices.Contains(handed, name) && !slices.ContainsFunc(handedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			delete(resp.Header, name)
		}
	}
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode < 400:
		return fmt.Errorf("the provider answers with status %d: the gateway follows no redirects", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxError+1))
	_ = resp.Body.Close()
	if t != nil {
		t.end()
	}
	var object map[string]json.RawMessage
	if err != nil || len(body) > maxError || json.Unmarshal(body, &object) != nil {
		s.complain("the model's provider answers with an error in a form of its own", zap.Int("status", resp.StatusCode), zap.ByteString("body", body[:min(len(body), 1000)]))
		body = refuse(resp.StatusCode, fmt.Sprintf("The model's provider answers with status %d and no reason.", resp.StatusCode)).json()
		resp.Header.Set("Content-Type", "application/json")
	}
	body = s.route.mask(body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// failed answers a call when the provider could not be reached. The CLI tries again.
func (s *Session) failed(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // the caller has gone, or the session has ended
	}
	if t := tapOf(r); t != nil {
		t.end()
	}
	s.complain("the model's provider cannot be reached", zap.String("host", r.URL.Host), zap.Error(err))
	refuse(http.StatusBadGateway, "The model's provider cannot be reached. An admin finds the reason in the bot's log.").write(w)
}
