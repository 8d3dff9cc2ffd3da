package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Emails returns the addresses of the credential's account that the forge itself has verified.
func Emails(ctx context.Context, c Config) ([]string, error) {
	at, err := locate(c)
	if err != nil {
		return nil, err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, at.api.JoinPath("user/emails").String(), nil)
	if err != nil {
		return nil, fmt.Errorf("read an account's addresses: %w", err)
	}
	var said []struct {
		Email       string
		Verified    bool
		ConfirmedAt string `json:"confirmed_at"` // GitLab's word
	}
	response, err := newClient(c, at.api).Do(call)
	if err == nil {
		defer response.Body.Close() //nolint:errcheck // it is in memory
		err = json.NewDecoder(response.Body).Decode(&said)
	}
	if err != nil {
		return nil, failed("read an account's addresses", at.api.Host, err)
	}
	var out []string
	for _, e := range said {
		if e.Verified || e.ConfirmedAt != "" {
			out = append(out, e.Email)
		}
	}
	return out, nil
}
