package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Emails returns the addresses of the credential's account that the forge itself has verified.
func Emails(ctx context.Context, c Config) ([]string, error) {
	segments := 2
	if c.Kind == GitLab {
		segments = 0
	}
	site, _, err := place(c.URL, segments)
	if err != nil {
		return nil, err
	}
	usual := map[Kind]string{GitHub: "api/v3", GitLab: "api/v4", Gitea: "api/v1"}[c.Kind]
	if host := strings.ToLower(site.Host); c.Kind == GitHub && (host == "github.com" || strings.HasSuffix(host, ".ghe.com")) {
		site, usual = &url.URL{Scheme: "https", Host: "api." + host}, ""
	} else if c.Kind == GitLab {
		site.Path = ""
	}
	api, err := apiOf(c, site.JoinPath(usual).String())
	if err != nil {
		return nil, err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, api.JoinPath("user/emails").String(), nil)
	if err != nil {
		return nil, fmt.Errorf("read an account's addresses: %w", err)
	}
	var said []struct {
		Email       string
		Verified    bool
		ConfirmedAt string `json:"confirmed_at"` // GitLab's word
	}
	response, err := newClient(c, api).Do(call)
	if err == nil {
		defer response.Body.Close() //nolint:errcheck // it is in memory
		err = json.NewDecoder(response.Body).Decode(&said)
	}
	if err != nil {
		return nil, failed("read an account's addresses", api.Host, err)
	}
	var out []string
	for _, e := range said {
		if e.Verified || e.ConfirmedAt != "" {
			out = append(out, e.Email)
		}
	}
	return out, nil
}
