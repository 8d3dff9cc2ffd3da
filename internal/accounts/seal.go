package accounts

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/oauth2"

	"deckhand/internal/store/forges"
)

// Key encrypts people's tokens. The zero value is none.
type Key struct {
	aead cipher.AEAD
	name string
}

// ParseKey reads a key: 32 bytes in base64. Its error does not quote it.
func ParseKey(text string) (Key, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != 32 {
		return Key{}, errors.New("this is no key of 32 bytes in base64; make one by: openssl rand -base64 32")
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return Key{}, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return Key{}, err
	}
	sum := sha256.Sum256(append([]byte("deckhand token key "), raw...))
	return Key{aead: aead, name: hex.EncodeToString(sum[:6])}, nil
}

// token is what is encrypted.
type token struct {
	Access  string `json:"access"`
	Refresh string `json:"refresh,omitempty"`
	Found   *found `json:"found,omitempty"`
}

// sealed encrypts a value for an owner: another one's does not open.
func (k Key) sealed(v any, owner ...string) []byte {
	raw, _ := json.Marshal(v)       // strings, numbers and a time alone
	bound, _ := json.Marshal(owner) // strings alone
	nonce := make([]byte, k.aead.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	return k.aead.Seal(nonce, nonce, raw, bound)
}

// opened decrypts it.
func (k Key) opened(sealed []byte, v any, owner ...string) error {
	n := k.aead.NonceSize()
	if len(sealed) < n {
		return errors.New("it is too short")
	}
	bound, _ := json.Marshal(owner) // strings alone
	raw, err := k.aead.Open(nil, sealed[:n], sealed[n:], bound)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// seal puts a token into a connection, with the OAuth that gave it if the bot found that itself.
func (k Key) seal(c *forges.Connection, t *oauth2.Token, by *found) {
	c.Key, c.Sealed, c.ExpiresAt = k.name, k.sealed(token{t.AccessToken, t.RefreshToken, by}, c.TeamID, c.UserID, c.Host), nil
	if !t.Expiry.IsZero() {
		c.ExpiresAt = &t.Expiry
	}
}

// open takes it out again. Its error is a sentence.
func (k Key) open(c forges.Connection) (*oauth2.Token, *found, error) {
	if c.Key != k.name {
		return nil, nil, fmt.Errorf("the connection to %s was encrypted with another DECKHAND_TOKEN_KEY (%s) than the one that is set (%s). An admin sets the former one, or you connect again", c.Host, c.Key, k.name)
	}
	var t token
	if k.opened(c.Sealed, &t, c.TeamID, c.UserID, c.Host) != nil {
		return nil, nil, fmt.Errorf("the connection to %s cannot be read: connect again", c.Host)
	}
	out := &oauth2.Token{AccessToken: t.Access, RefreshToken: t.Refresh}
	if c.ExpiresAt != nil {
		out.Expiry = *c.ExpiresAt
	}
	return out, t.Found, nil
}
