package accounts

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/oauth2"

	"deckhand/internal/store/forges"
	"deckhand/internal/store/pg"
)

// Server is an MCP server at which people act as themselves. The bot asks it for its OAuth; where there is none, and
// with TokenPage, people enter a token that they have made there.
type Server struct {
	// Scopes replace those that the server asks for.
	Scopes []string
	// TokenPage is where people make a token.
	TokenPage string
}

// IsServer reports whether the host of a connection is an MCP server: a forge's has no path.
func IsServer(host string) bool { return strings.Contains(host, "/") }

// bindServer connects somebody to an MCP server: who has a token may act by it.
func (s *Service) bindServer(ctx context.Context, site Site, team, user string, t *oauth2.Token) (login string, err error) {
	sum := sha256.Sum256([]byte(t.AccessToken))
	c := forges.Connection{TeamID: team, UserID: user, Host: site.Host(), Account: int64(binary.BigEndian.Uint64(sum[:8]) >> 1), Login: "yourself"} //nolint:gosec // shifted, it fits
	return c.Login, s.keep(ctx, c, t, site.found)
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
