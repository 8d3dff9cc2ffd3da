package gitway

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"deckhand/internal/gateway/gitway/forgetest"
	"deckhand/internal/needtest"
)

// keyFile writes a private key as OpenSSH does.
func keyFile(t *testing.T, key crypto.PrivateKey, passphrase string) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Commits by whoever asks are signed, by every kind of key, and git takes the signatures for good. What somebody else
// has made, and what says of itself what is not so, has none, and git goes on all the same.
func TestCommitsAreSigned(t *testing.T) {
	t.Parallel()
	_, edwards, err1 := ed25519.GenerateKey(rand.Reader)
	curve, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	old, err3 := rsa.GenerateKey(rand.Reader, 2048)
	for name, key := range map[string]crypto.PrivateKey{"ed25519": edwards, "ecdsa": curve, "rsa": old} {
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := forgetest.New(t)
			v := newVisit(t, f, Remote{Upstream: Upstream{URL: f.URL("web"), Access: Access{TokenEnv: forgetest.TokenEnv}}, Environ: forgetest.Environ()})
			v.clone()
			file := keyFile(t, key, "")
			signing, err := ReadSigningKey(file)
			if err != nil {
				t.Fatal(err)
			}
			var made atomic.Pointer[Made]
			made.Store(&Made{Author: "Ada <ada@example.com>", Committer: "Deckhand <d@example.com>", Trailers: []string{"Requested-by: Ada <ada@example.com>", "Deckhand-Thread: https://slack.example.com/1"}})
			if err := v.SignBy(signing, func() Made { return *made.Load() }); err != nil {
				t.Fatal(err)
			}
			v.env = append(append(forgetest.Environ(), v.Env()...), Settings(v.Settings())...)
			ours := []string{"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Deckhand", "GIT_COMMITTER_EMAIL=d@example.com"}
			v.env = append(v.env, ours...)
			commit := func(args ...string) {
				t.Helper()
				v.must(append([]string{"commit", "--quiet", "--allow-empty"}, args...)...)
			}
			signed := func(what string, want bool) {
				t.Helper()
				if got := strings.Contains(v.must("cat-file", "commit", "HEAD"), "\ngpgsig -----BEGIN SSH SIGNATURE-----\n"); got != want {
					t.Errorf("%s: signed: %v", what, got)
				}
			}
			commit("-m", "Fix\n\nRequested-by: Ada <ada@example.com>\nDeckhand-Thread: https://slack.example.com/1")
			signed("a commit", true)
			allowed := filepath.Join(t.TempDir(), "allowed")
			if err := os.WriteFile(allowed, append([]byte("d@example.com "), ssh.MarshalAuthorizedKey(signing.PublicKey())...), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := exec.LookPath("ssh-keygen"); err != nil && !needtest.Required() {
				t.Log("git does not judge the signature, as there is no ssh-keygen")
			} else if out, err := v.run("-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", "HEAD"); err != nil || !strings.Contains(out, `Good "git" signature for d@example.com`) {
				t.Errorf("git says %v: %s", err, out)
			}
			commit("--amend", "-m", "A merge or a revert says nothing of us")
			signed("without trailers", true)
			v.must("checkout", "-q", "-b", "side", "HEAD~1")
			commit("-m", "side")
			v.must("merge", "--quiet", "--no-edit", "-")
			signed("a merge", true)

			for _, message := range []string{
				"Fix\n\nApproved-by: Grace <grace@example.com>",
				"requested-by : Linus <l@example.com>",
				"Fix\n\nDeckhand-Thread:\n https://slack.example.com/2",
				"x\n\n DECKHAND-THREAD: https://slack.example.com/2",
				"Fix\n\nRequested-by: Ada <ada@example.com>\n , Grace <grace@example.com>",
				"Fix\n\nRequested-by: Ada <ada@example.com>\r\n\tand Grace",
				"Fix\n\nSee below\rApproved-by: Grace <g@example.com>",
				"Fix\n\nSee below\u2028Approved-by: Grace <g@example.com>",
				"Fix\n\nSee below\vApproved-by: Grace",
				"Fix\n\nxx\b\bApproved-by: Grace",
				"Fix\n\n\x1b[mApproved-by: Grace",
				"Fix\n\nApproved\u200b-by: Grace <g@example.com>",
			} {
				commit("--cleanup=verbatim", "-m", message)
				signed(message, false)
			}
			for _, other := range []string{"GIT_AUTHOR_NAME=Grace", "GIT_AUTHOR_EMAIL=x@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=x@example.com"} {
				v.env = append(v.env, other)
				commit("-m", "by "+other)
				signed(other, false)
				v.env = append(v.env, ours...)
			}
			v.must("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "--quiet", "--allow-empty", "--amend", "-m", "\xe9")
			signed("a commit of another encoding", false)
			if out, err := v.run("tag", "-s", "-m", "v1", "v1"); err == nil && strings.Contains(v.must("cat-file", "tag", "v1"), "SSH SIGNATURE") {
				t.Errorf("a tag is signed: %s", out)
			}
			commit("-m", "again")
			signed("in between", true)
			// The next turn is somebody else's; a rebase leaves what was signed as it was made, without a signature.
			made.Store(&Made{Author: "Grace <grace@example.com>", Committer: "Deckhand <d@example.com>"})
			v.must("rebase", "--quiet", "--no-ff", "HEAD~1")
			signed("another's commit that is rebased", false)
			if (Made{}).is([]byte("tree " + strings.Repeat("0", 40) + "\nauthor  1 +0000\ncommitter  1 +0000\n\n")) {
				t.Error("nobody's commit is signed")
			}
			// Nothing of the key is inside, and without the bot no commit is made.
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			secret := strings.Split(string(text), "\n")[2]
			if strings.Contains(strings.Join(v.env, "\n"), secret) || strings.Contains(strings.Join(v.env, "\n"), file) {
				t.Error("the environment has the key")
			}
			v.Close()
			if out, err := v.run("commit", "--quiet", "--allow-empty", "-m", "late"); err == nil || !strings.Contains(out, "there is no way to the bot") {
				t.Errorf("when the bot has gone: %v, %s", err, out)
			}
		})
	}
}

// What is wrong with a key is said without its path, or what is in it.
func TestKeysThatSignNothing(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("CANARY"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		keyFile(t, key, "secret"): "it has a passphrase", text: "it is no private key of OpenSSH's", filepath.Dir(text): "it cannot be read: is a directory", "/nowhere/key": "it cannot be read: no such file or directory",
	} {
		if _, err := ReadSigningKey(file); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "CANARY") || strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
