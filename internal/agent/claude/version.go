package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"time"

	"golang.org/x/mod/semver"
)

// Version asks the program for its version, such as 2.1.329, and waits at most
// thirty seconds. It runs directly, in the caller's environment.
func Version(ctx context.Context, command []string) (string, error) {
	if len(command) == 0 {
		return "", fmt.Errorf("ask for the version: no command")
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], "--version")...)
	cmd.WaitDelay = time.Second
	cmd.Env = Environ(nil, nil)
	out := &brief{full: cancel}
	cmd.Stdout = out
	err := cmd.Run()
	switch {
	case out.over:
		return "", fmt.Errorf("ask %s for its version: it does not stop talking: %.80q…", command[0], out.text)
	case ctx.Err() != nil:
		return "", fmt.Errorf("ask %s for its version: no answer in 30s", command[0])
	case err != nil:
		return "", fmt.Errorf("ask %s for its version: %w", command[0], err)
	}
	v := versionPattern.FindString(string(out.text))
	if v == "" {
		return "", fmt.Errorf("ask %s for its version: %.80q names none", command[0], out.text)
	}
	return v, nil
}

// brief keeps what a program says that should say little, and calls full when it says more.
type brief struct {
	text []byte
	over bool
	full func()
}

// briefly is how much that is, in bytes.
const briefly = 4096

var errTalks = errors.New("it says too much")

func (b *brief) Write(p []byte) (int, error) {
	n := min(len(p), briefly-len(b.text))
	b.text = append(b.text, p[:n]...)
	if n < len(p) {
		b.over = true
		b.full()
		return n, errTalks
	}
	return n, nil
}

var versionPattern = regexp.MustCompile(`\d+\.\d+\.\d+`)

// since says from which version on a request was seen to work, among
// the versions that were tried: the true one may lie between it and the
// version tried before it. What is not named works in all of them.
var since = map[string]string{
	"apply_flag_settings": "2.1.329",
	"get_usage":           "2.1.250",
}

// supports reports whether the CLI has a request, as far as is known: an
// unknown version has all.
func supports(version, request string) bool {
	first, ok := since[request]
	return !ok || version == "" || !Older(version, first)
}

// oldVersion stands for every version that does not say which it is and does
// not answer unknown requests either; the last of these that was tried.
const oldVersion = "2.1.37"

// learned takes from the answer of initialize what it tells about the version.
func (p *Process) learned(answer json.RawMessage) {
	var said struct {
		Version string `json:"claude_code_version"`
		PID     int    // 0 up to 2.1.37
	}
	fill(answer, &said)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.version != "":
	case said.Version != "":
		p.version = said.Version
	case said.PID == 0:
		p.version = oldVersion
	}
}

// knownVersion returns the version as far as it is known by now, or "".
func (p *Process) knownVersion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// Older reports whether version a, as [Version] returns it, came before b. What
// is no version came before all.
func Older(a, b string) bool { return semver.Compare("v"+a, "v"+b) < 0 }
