// Package anthropicadmin asks Anthropic what it charges an organization: the cost
// report of the Admin API, by day and model, to set against a ledger.
//
// It knows nothing of the ledger, keeps no state and starts no goroutine. What it
// relies on is documented by Anthropic:
//
//   - The endpoint, its parameters and its fields, among them that an amount is a
//     decimal string "in lowest currency units (e.g. cents)", so that "123.45" in USD is
//     $1.23: https://platform.claude.com/docs/en/api/admin/cost_report
//   - Days in UTC, at most 31 of them in a page, pages by has_more and next_page, a
//     null workspace_id for the default workspace, and that Priority Tier is not in it:
//     https://platform.claude.com/docs/en/build-with-claude/usage-cost-api
//   - Errors, and retry-after on a 429: https://platform.claude.com/docs/en/api/errors
package anthropicadmin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// DefaultURL is where the Admin API is.
	DefaultURL = "https://api.anthropic.com"
	apiVersion = "2023-06-01"

	maxBuckets     = 31   // of a page; the API's own limit
	maxPages       = 1000 // of a report; a server that never ends is not one of Anthropic's
	maxPageBytes   = 32 << 20
	maxTries       = 5
	maxWait        = time.Minute // for one more try
	attemptTimeout = time.Minute
)

// Client asks the Admin API. It is safe for concurrent use; its fields must not be
// changed after the first call.
type Client struct {
	// Key is an Admin API key, sk-ant-admin…; other keys are refused. It is sent
	// nowhere but to URL and stands in no error.
	Key string
	// URL is the API's address; empty means [DefaultURL].
	URL string
	// HTTP makes the requests; nil means http.DefaultTransport.
	HTTP http.RoundTripper

	// pause waits before another try; nil is time.
	pause func(context.Context, time.Duration) error
}

// Error is an answer that is no report.
type Error struct {
	Status    int    // of HTTP
	Message   string // the API's own words
	RequestID string // for Anthropic's support
}

// Error says it for people, with what to do about it where that is known.
func (e *Error) Error() string {
	said := cmp.Or(strings.Join(strings.Fields(e.Message), " "), http.StatusText(e.Status))
	if len(said) > 300 {
		said = strings.ToValidUTF8(said[:300], "") + "…"
	}
	advice := ""
	switch e.Status {
	case http.StatusUnauthorized:
		advice = "; the key must be an Admin API key (sk-ant-admin…), which an admin of the organization makes in the Console"
	case http.StatusForbidden:
		advice = "; the key may not read the organization's costs"
	case http.StatusTooManyRequests:
		advice = "; try again in some minutes"
	}
	if e.RequestID != "" {
		advice += " (request " + e.RequestID + ")"
	}
	return fmt.Sprintf("the Admin API answered %d: %s%s", e.Status, said, advice)
}

// page is the answer of GET /v1/organizations/cost_report.
type page struct {
	Data []struct {
		StartingAt time.Time `json:"starting_at"`
		Results    []result  `json:"results"`
	} `json:"data"`
	HasMore  bool    `json:"has_more"`
	NextPage *string `json:"next_page"`
}

// result is a cost item; what is null is empty.
type result struct {
	Currency    string `json:"currency"`
	Amount      string `json:"amount"`
	WorkspaceID string `json:"workspace_id"`
	Description string `json:"description"`
	CostType    string `json:"cost_type"`
	Model       string `json:"model"`
}

// pages asks for all that the API has of the days in [from, to) and calls each for
// every page.
func (c *Client) pages(ctx context.Context, from, to time.Time, each func(page) error) error {
	query := url.Values{
		"starting_at": {from.UTC().Format(time.RFC3339)}, "ending_at": {to.UTC().Format(time.RFC3339)},
		"bucket_width": {"1d"}, "group_by[]": {"workspace_id", "description"}, "limit": {strconv.Itoa(maxBuckets)},
	}
	seen := map[string]bool{}
	for range maxPages {
		p, err := c.page(ctx, query)
		if err != nil {
			return err
		}
		if err := each(p); err != nil {
			return err
		}
		if !p.HasMore {
			return nil
		}
		if p.NextPage == nil || *p.NextPage == "" || seen[*p.NextPage] {
			return errors.New("the Admin API's answer has more pages and does not say where")
		}
		seen[*p.NextPage] = true
		query.Set("page", *p.NextPage)
	}
	return fmt.Errorf("the Admin API's report does not end after %d pages", maxPages)
}

// page asks for one page. It asks again, a few times, when it is told to wait and when
// the API has trouble of its own.
func (c *Client) page(ctx context.Context, query url.Values) (page, error) {
	for try := 1; ; try++ {
		p, wait, err := c.ask(ctx, query)
		if err == nil || wait < 0 || try == maxTries {
			return p, err
		}
		wait = cmp.Or(wait, time.Second<<(try-1))
		if wait > maxWait {
			return p, err
		}
		if pauseErr := c.rest(ctx, wait); pauseErr != nil {
			return p, errors.Join(err, pauseErr)
		}
	}
}

func (c *Client) rest(ctx context.Context, d time.Duration) error {
	if c.pause != nil {
		return c.pause(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask makes one request. With an error, wait says after how long another try makes
// sense: 0 if that is not known, and less if it makes none.
func (c *Client) ask(ctx context.Context, query url.Values) (p page, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, attemptTimeout, fmt.Errorf("ask the Admin API: no answer in %s", attemptTimeout))
	defer cancel()
	base := cmp.Or(c.URL, DefaultURL)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/v1/organizations/cost_report?"+query.Encode(), nil)
	if err != nil {
		return p, -1, errors.New("ask the Admin API: its address is not one")
	}
	req.Header.Set("X-Api-Key", c.Key)
	req.Header.Set("Anthropic-Version", apiVersion)
	req.Header.Set("User-Agent", "deckhand")
	client := http.Client{
		Transport: c.HTTP,
		// A redirect would take the key along.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return p, -1, fmt.Errorf("ask the Admin API: %w", context.Cause(ctx))
		}
		return p, 0, fmt.Errorf("ask the Admin API: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // the body is read whole
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPageBytes+1))
	switch {
	case err != nil:
		return p, 0, fmt.Errorf("read the Admin API's answer: %w", err)
	case resp.StatusCode != http.StatusOK:
		wait, err := refusal(resp, body)
		return p, wait, err
	case len(body) > maxPageBytes:
		return p, -1, fmt.Errorf("the Admin API's answer is longer than %d MB", maxPageBytes>>20)
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, -1, fmt.Errorf("read the Admin API's answer: %w", err)
	}
	return p, 0, nil
}

// refusal is the error of an answer that is no report, and whether to try again.
func refusal(resp *http.Response, body []byte) (wait time.Duration, err error) {
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &said) // a proxy's page: the status will do
	err = &Error{Status: resp.StatusCode, Message: said.Error.Message, RequestID: resp.Header.Get("Request-Id")}
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500 {
		return -1, err
	}
	return retryAfter(resp.Header.Get("Retry-After")), err
}

// retryAfter reads seconds or a date; 0 is neither.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 && seconds < 1_000_000 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
