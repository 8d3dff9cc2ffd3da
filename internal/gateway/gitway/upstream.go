package gitway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"deckhand/internal/beginning"
)

// Upstream is a repository, and the bot's access to it.
type Upstream struct {
	// URL is its address: https://host/path, ssh://user@host/path or user@host:path; or a path of this machine,
	// which is cloned from, and which no session reaches.
	URL string
	Access
}

// Access is how the bot authenticates to a forge. The zero value uses the git configuration of its own user: keys,
// an agent, credential helpers.
type Access struct {
	// TokenEnv names a variable of the bot's environment with a token or password for https. User goes with it;
	// empty is x-access-token, which GitHub, GitLab and Gitea accept.
	TokenEnv, User string
	// KeyFile is a private key, such as a deploy key, for ssh. KnownHosts is the file of the hosts' keys; empty
	// means the user's own.
	KeyFile, KnownHosts string
	// App instead mints tokens, each for one repository.
	App App
}

// At is the access to the repository at an address. A token or an app is for the named host alone: elsewhere it is left
// out, and the git configuration of the bot's user is used.
func (a Access) At(address, host string) Access {
	if Host(address) != host {
		a.TokenEnv, a.User, a.App = "", "", App{}
	}
	return a
}

// Files are the credential files.
func (a Access) Files() []string {
	var out []string
	for _, f := range []string{a.KeyFile, a.App.KeyFile} {
		if f != "" {
			out = append(out, f)
		}
	}
	return out
}

// Secrets are the values of the credential variables.
func (a Access) Secrets() []string {
	var out []string
	for _, name := range []string{a.TokenEnv, a.App.KeyEnv} {
		if v := os.Getenv(name); name != "" && v != "" {
			out = append(out, v)
		}
	}
	return out
}

// place is a parsed address.
type place struct {
	scheme, user, host, path string // host with its port; path without slashes at its ends and without .git
}

var (
	scpAddress = regexp.MustCompile(`^(?:([\w.-]+)@)?([\w.-]+|\[[0-9a-fA-F:]+\]):([^:].*)$`)
	plainPath  = regexp.MustCompile(`^[\w.~+-]+(/[\w.~+-]+)*$`)
)

// IsForge reports whether an address is a forge's, and not a path of this machine.
func IsForge(address string) bool {
	_, err := parse(address)
	return !errors.Is(err, ErrNoForge)
}

// ErrNoForge means that the address is a path of this machine.
var ErrNoForge = errors.New("a path is no forge")

// parse parses an address. Its error is a sentence.
func parse(address string) (place, error) {
	var p place
	if u, err := url.Parse(address); err == nil && strings.Contains(address, "://") {
		_, secret := u.User.Password()
		switch {
		case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh":
			return p, fmt.Errorf("there is no way to a forge by %s; write https://…, ssh://… or user@host:path", u.Scheme)
		case secret, u.User != nil && u.Scheme != "ssh":
			return p, errors.New("an address holds no credentials, since it is shown and stored; name a variable that holds the token under git.token_env, and the user under git.user")
		case u.Host == "" || u.RawQuery != "" || u.Fragment != "":
			return p, errors.New("this is no address of a repository; write one such as https://host/team/web.git")
		}
		p = place{u.Scheme, u.User.Username(), strings.ToLower(u.Host), u.Path}
	} else if m := scpAddress.FindStringSubmatch(address); m != nil {
		p = place{"ssh", m[1], strings.ToLower(m[2]), m[3]}
	} else if strings.Contains(address, "::") {
		return p, errors.New("there is no way to a forge by a helper of git's; write https://…, ssh://… or user@host:path")
	} else {
		return p, ErrNoForge
	}
	p.path = strings.TrimSuffix(strings.Trim(p.path, "/"), ".git")
	if !plainPath.MatchString(p.path) || strings.Contains("/"+p.path+"/", "/../") || strings.Contains("/"+p.path+"/", "/./") {
		return p, errors.New("this is no address of a repository; write one such as https://host/team/web.git")
	}
	return p, nil
}

// Host is the forge's, with its port; empty for a path of this machine.
func Host(address string) string {
	p, _ := parse(address)
	return p.host
}

// Name is the same for all addresses of a repository: host and path at a forge, or a path of this machine.
func Name(address string) string {
	p, err := parse(address)
	if err != nil {
		return filepath.Clean(address)
	}
	return p.name()
}

// name is the repository's name inside.
func (p place) name() string { return p.host + "/" + p.path }

// spellings are the addresses of the same repository. Git replaces prefixes of addresses, so that a prefix without
// .git would match others, too.
func (p place) spellings(written string) []string {
	host, _, _ := net.SplitHostPort(p.host)
	host = cmp.Or(host, p.host)
	out := []string{
		"https://" + p.host + "/" + p.path + ".git", "ssh://git@" + p.host + "/" + p.path + ".git",
		"git@" + host + ":" + p.path + ".git",
	}
	if slices.Contains(out, written) {
		return out
	}
	return append(out, written)
}

// Check validates an address and its access; a path is valid. Its error is a sentence.
func (u Upstream) Check() error {
	p, err := parse(u.URL)
	switch app := u.App != (App{}); {
	case errors.Is(err, ErrNoForge):
		return nil
	case err != nil:
		return err
	case u.KeyFile != "" && p.scheme != "ssh":
		return errors.New("a key file is for ssh; write the address as user@host:path, or name a token (git.token_env)")
	case (u.TokenEnv != "" || app) && p.scheme == "ssh":
		return errors.New("a token is for https; write the address as https://host/path, or name a key file (git.key_file)")
	case (u.TokenEnv != "" || app) && p.scheme == "http" && !loopback(p.host):
		return errors.New("a token is not sent over http, where everybody on the way reads it; write https://")
	case app && strings.Count(p.path, "/") != 1:
		return errors.New("a GitHub App reaches https://host/owner/repository, and this is none")
	}
	return nil
}

func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Remote is an upstream for the bot's git.
type Remote struct {
	Upstream
	// Environ is the base environment of the bot's git.
	Environ []string
	// Token is a person's own, instead of the bot's access.
	Token string
}

// Clone clones the repository into a folder, with its working tree.
func (r Remote) Clone(ctx context.Context, dir string) error {
	_, err := r.run(ctx, "", "clone", "--quiet", "--template=", "--", r.address(), dir)
	return err
}

// Refs are the lines of git ls-remote for a pattern.
func (r Remote) Refs(ctx context.Context, pattern string) (string, error) {
	return r.run(ctx, "", "ls-remote", "--", r.address(), pattern)
}

// CheckPush tests whether the forge would accept a push. Nothing is pushed.
func (r Remote) CheckPush(ctx context.Context, scratch string) error {
	dir, err := os.MkdirTemp(scratch, "try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is empty
	if err := makeRepository(dir, 0); err != nil {
		return err
	}
	_, err = r.run(ctx, dir, "push", "--dry-run", "--quiet", "--", r.address(), "refs/heads/*:refs/heads/deckhand/none/*")
	if err != nil && strings.Contains(err.Error(), nothingToPush) {
		return nil
	}
	return err
}

// nothingToPush is git's message if the forge has answered and there is nothing to push.
const nothingToPush = "No refs in common"

// address is the URL; a path is made absolute.
func (r Remote) address() string {
	if abs, err := filepath.Abs(r.URL); err == nil {
		if info, err := os.Stat(abs); err == nil && info.IsDir() {
			return abs
		}
	}
	return r.URL
}

// run runs git on the repository's address, with the credential. dir is a git folder of ours, or empty. It returns
// git's output; its error is git's last line, without secrets.
func (r Remote) run(ctx context.Context, dir string, args ...string) (string, error) {
	out, said, err := r.execute(ctx, dir, args...)
	if err == nil {
		return out, nil
	}
	if strings.Contains(said, nothingToPush) {
		said = nothingToPush
	}
	if text := lastLine(said + out); text != "" && !errors.Is(err, errNotRun) && context.Cause(ctx) == nil {
		return "", fmt.Errorf("git %s: %s", args[0], text)
	}
	return "", err
}

// errNotRun means that git did not run, or did not end by itself.
var errNotRun = errors.New("git has not run")

// execute is run, and also returns git's standard error.
func (r Remote) execute(ctx context.Context, dir string, args ...string) (out, said string, err error) {
	env, secret, err := r.credential(ctx)
	if err != nil {
		return "", "", errors.Join(errNotRun, err)
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = string(filepath.Separator)
	cmd.Env = append(append([]string(nil), r.Environ...), env...)
	if dir != "" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+dir)
	}
	cmd.WaitDelay = 5 * time.Second // for what it has started
	stdout, stderr := beginning.Buffer{Most: maxSaid}, beginning.Buffer{Most: maxSaid}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	hide := func(s string) string {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, "…")
		}
		return s
	}
	switch {
	case err != nil && context.Cause(ctx) != nil:
		err = errors.Join(errNotRun, context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		err = errors.Join(errNotRun, errors.New("git is not installed"))
	}
	return hide(stdout.String()), hide(stderr.String()), err
}

// maxSaid bounds what is kept of git's output, in bytes.
const maxSaid = 32 << 20

// credential returns the variables that authenticate the bot to git. They are in no argument and no file of git's.
// With a token, the user's credential helpers are disabled: they would store it.
func (r Remote) credential(ctx context.Context) (env []string, secret string, err error) {
	settings := [][2]string{{"core.hooksPath", os.DevNull}, {"core.fsmonitor", "false"}, {"gc.autoDetach", "false"}, {"maintenance.autoDetach", "false"}, {"push.followTags", "false"}}
	env = []string{"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=https:http:ssh:file", "GIT_SSH_COMMAND=" + r.ssh(), "LC_ALL=C"}
	p, err := parse(r.URL)
	if errors.Is(err, ErrNoForge) {
		return append(env, Settings(settings)...), "", nil
	}
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return nil, "", err
	}
	user := r.User
	switch {
	case r.Token != "" && (p.scheme == "https" || loopback(p.host)):
		secret = r.Token
	case r.Token != "":
		return nil, "", errors.New("a person's token is sent over https alone")
	case r.App != (App{}):
		user = tokenUser
		if secret, err = r.App.token(ctx, p, gitRights); err != nil {
			return nil, "", err
		}
	case r.TokenEnv != "":
		if secret, err = r.token(); err != nil {
			return nil, "", err
		}
	}
	if secret != "" {
		user = cmp.Or(user, tokenUser)
		helper := "credential." + p.scheme + "://" + p.host + ".helper"
		settings = append(settings, [2]string{helper, ""}, [2]string{helper, `!f() { test "$1" != get || printf 'username=%s\npassword=%s\n' "$DECKHAND_FORGE_USER" "$DECKHAND_FORGE_TOKEN"; }; f`})
		env = append(env, "DECKHAND_FORGE_USER="+user, "DECKHAND_FORGE_TOKEN="+secret)
	}
	return append(env, Settings(settings)...), secret, nil
}

// token is what the variable holds. Its error is a sentence.
func (a Access) token() (string, error) {
	if t := os.Getenv(a.TokenEnv); t != "" {
		return t, nil
	}
	return "", fmt.Errorf("the variable %s, which git.token_env names, is not set; set it to the token of the forge", a.TokenEnv)
}

// APIToken is a credential for the API of a repository's forge: to open pull requests, to
// read what becomes of them and to merge them. Its error is a sentence.
func (a Access) APIToken(ctx context.Context, address string) (string, error) {
	p, err := parse(address)
	if err == nil {
		err = Upstream{URL: address, Access: a}.Check()
	}
	switch {
	case err != nil:
		return "", err
	case a.App != (App{}):
		return a.App.token(ctx, p, apiRights)
	case a.TokenEnv != "":
		return a.token()
	case a.KeyFile != "":
		return "", errors.New("a key file is for git alone, and pull requests go through the forge's API; name a token (git.token_env) or a GitHub App (git.github_app), with the address as https://host/path")
	}
	return "", errors.New("pull requests go through the forge's API; name a token for it (git.token_env) or a GitHub App (git.github_app)")
}

// tokenUser goes with a token where no user is named.
const tokenUser = "x-access-token"

// ssh is git's ssh command.
func (r Remote) ssh() string {
	if r.KeyFile == "" {
		return "ssh -oBatchMode=yes"
	}
	words := []string{"ssh", "-F", "/dev/null", "-oBatchMode=yes", "-oIdentitiesOnly=yes", "-oIdentityAgent=none", "-oStrictHostKeyChecking=yes", "-oForwardAgent=no"}
	if r.KnownHosts != "" {
		words = append(words, "-oGlobalKnownHostsFile=/dev/null", "-oUserKnownHostsFile="+r.KnownHosts)
	}
	words = append(words, "-i", r.KeyFile)
	for i, w := range words {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// Settings are variables that configure git.
func Settings(pairs [][2]string) []string {
	out := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(pairs))}
	for i, kv := range pairs {
		out = append(out, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, kv[1]))
	}
	return out
}

// lastLine is the last informative line of git's output.
func lastLine(s string) string {
	last := ""
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "hint:") && !isFollowUp(line) {
			last = line
		}
	}
	return last
}

// isFollowUp recognises what git adds to every connection error.
func isFollowUp(line string) bool {
	return line == "Please make sure you have the correct access rights" || line == "and the repository exists." ||
		strings.HasPrefix(line, "error: failed to push some refs to") || line == "fatal: Could not read from remote repository."
}
