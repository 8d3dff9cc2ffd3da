package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"deckhand/internal/gateway/gitway"
	"deckhand/internal/sandbox"
	"deckhand/internal/store/threads"
)

// Commits are by whoever asked for the turn, and committed by Deckhand; their messages say so, and
// where. What git reads for that lies in a folder of the thread's that sessions can read alone. It
// changes with each turn, which a process's environment could not. It binds nobody: a command
// names another author if it says so.

// botAddress is whose commits are that have no address. Nobody can have it.
const botAddress = "deckhand@deckhand.invalid"

const committerName = "Deckhand"

func (p Project) committerAddress() string { return cmp.Or(p.Committer, botAddress) }

// People tells commits whose they are.
type People interface {
	// AuthorOf is the name and the address of somebody, as their profile has them.
	AuthorOf(ctx context.Context, user string) (name, email string)
	// LinkTo leads to a thread; empty if nobody knows.
	LinkTo(k threads.ThreadKey) string
}

// commitHook adds the trailers that are not there yet. Git runs it from outside of every
// repository: the settings of one may name commands for trailers.
const commitHook = `#!/bin/sh
case $1 in /*) message=$1 ;; *) message=$PWD/$1 ;; esac
trailers=${0%/*}/trailers
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR
set --
while IFS= read -r line; do set -- "$@" --trailer "$line"; done <"$trailers"
cd / && exec git interpret-trailers --in-place --if-exists addIfDifferent "$@" "$message"
`

func (h *Host) commitsOf(threadID int64) string {
	return filepath.Join(h.DataDir, "commits", strconv.FormatInt(threadID, 10))
}

// namesAuthors reports whether the project's commits say whose they are. A launcher of an admin's own takes no folder
// along.
func (h *Host) namesAuthors(p Project) bool {
	return h.People != nil && p.Sandbox.Kind != sandbox.Command
}

// AskedBy implements [Machine].
func (h *Host) AskedBy(ctx context.Context, t threads.Thread, p Project, user string) error {
	if !h.namesAuthors(p) {
		return nil
	}
	name, email := h.People.AuthorOf(ctx, user)
	if name, email = plainIdent(name), plainIdent(email); name == "" {
		name = user
	}
	if email == "" || strings.ContainsAny(email, " ") {
		name, email = name+" (via Deckhand)", botAddress
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	author := fmt.Sprintf("[author]\n\tname = \"%s\"\n\temail = \"%s\"\n", quote.Replace(name), quote.Replace(email))
	trailers := fmt.Sprintf("Requested-by: %s <%s>\n", name, email)
	if link := plainIdent(h.People.LinkTo(t.Key())); link != "" {
		trailers += "Deckhand-Thread: " + link + "\n"
	}
	h.made.Store(t.ID, gitway.Made{Author: name + " <" + email + ">", Committer: committerName + " <" + p.committerAddress() + ">", Trailers: strings.Split(strings.TrimSpace(trailers), "\n")})
	dir := h.commitsOf(t.ID)
	err := os.MkdirAll(dir, 0o755) //nolint:gosec // a container's user reads it; the folder above is the bot's own
	for name, text := range map[string]string{"author": author, "trailers": trailers, "commit-msg": commitHook} {
		err = errors.Join(err, replaceFile(filepath.Join(dir, name), text))
	}
	if err != nil {
		return fmt.Errorf("say whose commits are: %w", err)
	}
	return nil
}

// replaceFile writes a program or a text that a session may be reading.
func replaceFile(path, text string) error {
	if was, err := os.ReadFile(path); err == nil && string(was) == text {
		return nil
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o755); err != nil { //nolint:gosec // git runs one of them
		return err
	}
	return os.Rename(path+".new", path)
}

// commits shows the session whose its commits are: until its first turn, those of whoever opened
// the thread.
func (h *Host) commits(ctx context.Context, t threads.Thread, p Project, s *sandbox.Session, settings [][2]string) ([][2]string, error) {
	dir := h.commitsOf(t.ID)
	if !h.namesAuthors(p) {
		return settings, nil
	}
	if err := h.AskedBy(ctx, t, p, t.OwnerID); err != nil {
		return nil, err
	}
	s.ReadOnly = append(s.ReadOnly, dir)
	s.Env = append(s.Env, "GIT_COMMITTER_NAME="+committerName, "GIT_COMMITTER_EMAIL="+p.committerAddress())
	return append(settings, [2]string{"core.hooksPath", dir}, [2]string{"include.path", filepath.Join(dir, "author")}), nil
}

// sign has a session's commits signed by the bot, outside of its sandbox: those that are by whoever asked last.
func (h *Host) sign(t threads.Thread, p Project, way *gitway.Session) error {
	if p.SignKey == "" || way == nil || !h.namesAuthors(p) {
		return nil
	}
	key, err := p.signingKey()
	if err == nil {
		err = way.SignBy(key, func() gitway.Made {
			all, _ := h.made.Load(t.ID)
			made, _ := all.(gitway.Made)
			return made
		})
	}
	if err != nil {
		return &needError{needSignature, p.Name, err}
	}
	return nil
}

// plainIdent is a text as a line about a commit can have it.
func plainIdent(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '<' || r == '>' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "")), " .,:;\"\\'") // at its ends git drops these
}
