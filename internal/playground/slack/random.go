package slack

import "crypto/rand"

// The alphabets of Slack's ids and secrets.
const (
	digits     = "0123456789"
	lowerHex   = "0123456789abcdef"
	lowerAlnum = "abcdefghijklmnopqrstuvwxyz0123456789"
	upperAlnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// randomString returns n unpredictable characters of an alphabet.
func randomString(n int, alphabet string) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	for i, v := range b {
		b[i] = alphabet[int(v)%len(alphabet)]
	}
	return string(b)
}

// newID makes an id of Slack's shape: the prefix names the kind of thing.
func newID(prefix string) string { return prefix + "0" + randomString(9, upperAlnum) }

// newBlockID makes the id of a block or an element that came without one.
func newBlockID() string { return randomString(5, upperAlnum+lowerAlnum) }
