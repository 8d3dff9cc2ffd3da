package gitway

import (
	"context"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"
)

// SigningKey is the bot's own key for commits. Sessions never see it.
type SigningKey struct{ ssh.Signer }

// ReadSigningKey reads a private key of OpenSSH's. Its error is a sentence, and names no path.
func ReadSigningKey(file string) (SigningKey, error) {
	text, err := os.ReadFile(file)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return SigningKey{}, fmt.Errorf("it cannot be read: %w", path.Err)
	}
	if err != nil {
		return SigningKey{}, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return SigningKey{}, errors.New("it has a passphrase, which the bot does not know; make one without: ssh-keygen -t ed25519 -N ''")
	}
	if err != nil {
		return SigningKey{}, errors.New("it is no private key of OpenSSH's; make one: ssh-keygen -t ed25519 -N ''")
	}
	return SigningKey{signer}, nil
}

// public is the public key as git has it written.
func (k SigningKey) public() string {
	return "key::" + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.PublicKey())))
}

// namespace is what git's signatures are for.
const namespace = "git"

// sign signs as `ssh-keygen -Y sign -n git` does (OpenSSH's PROTOCOL.sshsig).
func (k SigningKey) sign(message []byte) ([]byte, error) {
	const magic, hash = "SSHSIG", "sha512"
	sum := sha512.Sum512(message)
	data := append([]byte(magic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{namespace, "", hash, string(sum[:])})...)
	signature, err := k.Sign(rand.Reader, data)
	if rsa, ok := k.Signer.(ssh.AlgorithmSigner); ok && k.PublicKey().Type() == ssh.KeyAlgoRSA { // not by SHA-1
		signature, err = rsa.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSASHA512)
	}
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: append([]byte(magic), ssh.Marshal(struct {
		Version                                   uint32
		Key, Namespace, Reserved, Hash, Signature string
	}{1, string(k.PublicKey().Marshal()), namespace, "", hash, string(ssh.Marshal(signature))})...)}), nil
}

// Made is what the bot's signature of a commit is for: whom it is by, and what it may say of itself.
type Made struct {
	// Author and Committer are names and addresses, as git writes them.
	Author, Committer string
	// Trailers are lines of its message: none of the same name may say something else.
	Trailers []string
}

// commitFormat is a commit as git has it signed: without headers that only some readers know.
var commitFormat = regexp.MustCompile(`^tree [0-9a-f]{40,64}\n(?:parent [0-9a-f]{40,64}\n)*author ([^\n]*) [0-9]+ [+-][0-9]{4}\ncommitter ([^\n]*) [0-9]+ [+-][0-9]{4}\n\n`)

// trailersOfOurs are those that readers believe, in small letters.
var trailersOfOurs = []string{"requested-by", "approved-by", "deckhand-thread"}

// is reports whether a text is a commit that was made so.
func (m Made) is(text []byte) bool {
	found := commitFormat.FindSubmatch(text)
	if found == nil || m.Author == "" || string(found[1]) != m.Author || string(found[2]) != m.Committer {
		return false
	}
	message := otherEnds.Replace(string(text[len(found[0]):]))
	if strings.ContainsFunc(message, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return false // by which a terminal shows other words
	}
	ours := false
	for line := range strings.Lines(message) {
		if ours && strings.TrimLeft(line, " \t") != line { // it goes on with the trailer above
			return false
		}
		name, _, _ := strings.Cut(line, ":")
		ours = slices.Contains(trailersOfOurs, strings.ToLower(visible(name)))
		if ours && !slices.Contains(m.Trailers, strings.TrimSpace(line)) {
			return false
		}
	}
	return true
}

// otherEnds has what ends a line for some readers end one.
var otherEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// visible is a text without what people do not see.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, s)
}

// SignBy has the session's git sign commits, those that were made as made says then. It is called before
// [Session.Settings]. Its error is a sentence.
func (s *Session) SignBy(key SigningKey, made func() Made) error {
	if err := s.gate.provide(s.signer()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.made = &key, made
	return nil
}

const (
	// signService is what the helper asks the socket for.
	signService = "deckhand-sign"
	// maxSigned bounds a commit that is signed, in bytes.
	maxSigned = 1 << 20
	// unsigned is the answer to what is not to be signed.
	unsigned = "-"
)

// sign answers a commit with its signature.
func (s *Session) sign(ctx context.Context, conn net.Conn) {
	s.mu.Lock()
	key, made := s.key, s.made
	s.mu.Unlock()
	if key == nil || s.signing.Wait(ctx) != nil {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(greetingTimeout))
	text, err := io.ReadAll(io.LimitReader(conn, maxSigned+1))
	switch {
	case err != nil:
	case len(text) > maxSigned || !made().is(text):
		_, _ = io.WriteString(conn, unsigned)
	default:
		signature, err := key.sign(text)
		if err != nil {
			s.log.Error("sign a commit", zap.Error(err))
		}
		_, _ = conn.Write(signature) // without one git says that it failed
	}
}
