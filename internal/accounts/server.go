package accounts

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/oauth2"

	"deckhand/internal/store/forges"
	"deckhand/internal/store/pg"
)

// Server is an MCP server at which people act as themselves. Without DeviceURL and TokenPage the bot
// asks it for its OAuth; where there is none, and with TokenPage, people enter a token that they have made there.
type Server struct {
	// DeviceURL, TokenURL and UserURL are its OAuth server's addresses: where a code comes from,
	// where it becomes a token, and what says whose the token is. RevokeURL, which may be empty, is
	// where a token ends.
	DeviceURL, TokenURL, UserURL, RevokeURL string
	Scopes                                  []string
	// TokenPage is where people make a token.
	TokenPage string
}

// IsServer reports whether the host of a connection is an MCP server: a forge's has no path.
func IsServer(host string) bool { return strings.Contains(host, "/") }

// bindServer connects somebody to an MCP server. A code could have been entered by somebody else,
// so whose the token is has to be shown; who enters a token has it.
func (s *Service) bindServer(ctx context.Context, site Site, team, user string, t *oauth2.Token) (login string, err error) {
	host, whose := site.Host(), t.AccessToken
	login = "yourself"
	if !site.EntersToken() {
		who, err := site.whose(ctx, t)
		if err != nil {
			return "", fmt.Errorf("%s did not say whose token this is", host)
		}
		mine := s.EmailOf(ctx, user)
		if who.Subject == "" || !who.Verified || mine == "" || !strings.EqualFold(who.Email, mine) {
			return "", fmt.Errorf("nothing shows that the account at %s is yours: its verified address is not the one of your Slack profile", host)
		}
		login, whose = who.Email, who.Subject
	}
	sum := sha256.Sum256([]byte(whose))
	c := forges.Connection{TeamID: team, UserID: user, Host: host, Account: int64(binary.BigEndian.Uint64(sum[:8]) >> 1), Login: login} //nolint:gosec // shifted, it fits
	return login, s.keep(ctx, c, t, site.found)
}

// person is what an OAuth server says of the person of a token.
type person struct {
	Subject  string `json:"sub"`
	Email    string `json:"email"`
	Verified bool   `json:"email_verified"`
}

func (s Site) whose(ctx context.Context, t *oauth2.Token) (p person, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Server.UserURL, nil)
	if err != nil {
		return p, err
	}
	r.Header.Set("Authorization", "Bearer "+t.AccessToken)
	resp, err := s.caller().Do(r)
	if err != nil {
		return p, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	if resp.StatusCode != http.StatusOK {
		return p, errors.New(resp.Status)
	}
	return p, json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&p)
}

// Connected is nil if a person is connected to a host, or a sentence. It asks nobody outside.
func (s *Service) Connected(ctx context.Context, team, user, host string) error {
	if _, ok := s.Site(host); !ok {
		return fmt.Errorf("nobody can connect to %s here: that takes DECKHAND_TOKEN_KEY in the bot's environment, which an admin can set", host)
	}
	c, err := s.Store.Connection(ctx, team, user, host)
	if errors.Is(err, pg.ErrNotFound) {
		return fmt.Errorf("you are not connected to %s", host)
	}
	if err == nil {
		_, _, err = s.usable(c)
	}
	return err
}
