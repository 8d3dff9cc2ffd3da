package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/trust"
	"deckhand/internal/forge"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/price"
	"deckhand/internal/sandbox"
	"deckhand/internal/scratch"
	"deckhand/internal/store/threads"
	"deckhand/internal/workspace"
	"deckhand/internal/workspace/gitdata"
)

// Project is what threads work on.
type Project struct {
	Name string
	// Dir is the project's folder; Repo, instead, a git URL that is cloned into
	// the data folder at the first use. A scratch project has neither.
	Dir, Repo string
	Workspace workspace.Kind
	// Subdir is the folder of the repository that sessions work in; empty for all of it.
	Subdir string
	// Further are its other repositories, and Of the name of the one that this value is about, where [Project.In] has
	// put one in the place of the project's own.
	Further []Repository
	Of      string
	// Forge are the addresses that sessions fetch from, and push branches below deckhand/
	// to: the project's own first. None where its repository is a path of this machine.
	Forge []string
	// Access is what the bot is known by there.
	Access       gitway.Access
	PullRequests PullRequests
	// SignKey is the file of the key that signs its commits, and Committer the address that they are committed by; empty
	// where they are not signed.
	SignKey, Committer string
	// Base is the branch, tag or commit that new threads' working trees start from, as
	// Repo has it now; empty means HEAD.
	Base  string
	Model string // empty means the CLI's default
	// Models are those that people may choose, Model first.
	Models []string
	// MaxTurns bounds the model's calls in a turn; 0 does not.
	MaxTurns int
	// AllowedTools are the built-in tools that the model is offered, all if there is none, and
	// DisallowedTools those that it is not.
	AllowedTools, DisallowedTools []string
	// PermissionMode is default or plan.
	PermissionMode string
	// Env names the variables of the bot's own environment that the agent may see.
	Env []string
	// AppendSystemPrompt is added to the CLI's system prompt, after the
	// workspace's CLAUDE.md.
	AppendSystemPrompt string
	// Provider is where its calls of the model go, and on whose account.
	Provider gateway.Provider
	// MCPServers are those that its agents use, by their names.
	MCPServers map[string]MCPServer
	// Sandbox is what its sessions are shut in.
	Sandbox sandbox.Spec
	// Setup runs in its threads' folders before they work there.
	Setup workspace.Setup
	// Preview is how its page is looked at.
	Preview Preview
	// Trust are the kinds of what its repository brings that may be used, once an admin agrees.
	Trust []string
	// Agents and Skills are those of them that its next process is given.
	Agents map[string]claude.Agent
	Skills []trust.Entry
	// Prices are what this project's tokens cost by contract, before those of the replica.
	Prices price.Contract
}

// Check says why threads of the project could not work, and what they will lack; see [workspace.Project.Check].
func (p Project) Check(ctx context.Context, dataDir string) error {
	var errs []error
	for _, q := range p.All() {
		errs = append(errs, q.space(threads.Thread{}).Check(ctx, dataDir))
	}
	return errors.Join(errs...)
}

// plainBranch is a branch's name as people write it into a message.
var plainBranch = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)*$`)

// branchTimeout bounds the question for one.
const branchTimeout = 15 * time.Second

// CheckBranch says to people, in sentences, why a new thread cannot start from a branch; empty if it can. err is
// for the log: what git, a path or a forge says is not for everybody.
func (p Project) CheckBranch(ctx context.Context, branch string) (refused string, err error) {
	switch {
	case p.Workspace != workspace.Worktree:
		return fmt.Sprintf("The threads of project %s have no branches of their own, so none can be chosen.", p.Name), nil
	case len(branch) > 200, !plainBranch.MatchString(branch), strings.Contains(branch, ".."), strings.HasPrefix(branch, "deckhand/"):
		return fmt.Sprintf("Work can start from a branch with a plain name that is not below deckhand/, and not from “%s”.", branch), nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, branchTimeout, fmt.Errorf("no answer in %s", branchTimeout))
	defer cancel()
	var found string
	if p.Repo == "" {
		var r gitdata.Repository
		if r, err = gitdata.Open(p.Dir); err == nil {
			found, err = r.Ref("refs/heads/" + branch)
		}
	} else {
		found, err = p.remote(p.Repo).Refs(ctx, "refs/heads/"+branch)
	}
	switch {
	case err != nil:
		return fmt.Sprintf("Whether project %s has a branch “%s” cannot be looked up now. If that stays so, an admin finds the reason by bot doctor.", p.Name, branch), err
	case strings.TrimSpace(found) == "":
		return fmt.Sprintf("Project %s has no branch “%s”.", p.Name, branch), nil
	}
	return "", nil
}

// Folder is the folder of a thread's workspace that its session works in. Where the subfolder is none any more, or
// a link, that is all of the workspace.
func (p Project) Folder(workspace string) string {
	at := workspace
	for name := range strings.SplitSeq(p.Subdir, "/") {
		at = filepath.Join(at, name)
		if info, err := os.Lstat(at); err != nil || !info.IsDir() {
			return workspace
		}
	}
	return at
}

// space is what a thread's workspace is made of.
func (p Project) space(t threads.Thread) workspace.Project {
	setup := p.Setup
	setup.Files = slices.Clone(setup.Files)
	for i, name := range setup.Files {
		setup.Files[i] = path.Join(p.Subdir, name)
	}
	base := p.Base
	if p.Of == "" {
		base = cmp.Or(t.Base, base)
	}
	return workspace.Project{Name: p.Name, Further: p.Of, Kind: p.Workspace, Dir: p.Dir, Repo: p.Repo, Base: base, Subdir: p.Subdir, Access: p.Access, Environ: claude.Environ(nil, nil), Setup: setup}
}

// remote is one of the project's repositories, as the bot's git reaches it.
func (p Project) remote(address string) gitway.Remote {
	return gitway.Remote{Upstream: gitway.Upstream{URL: address, Access: p.Access.At(address, p.ForgeHost())}, Environ: claude.Environ(nil, nil)}
}

// remotes are those that sessions reach.
func (p Project) remotes() []gitway.Remote {
	out := make([]gitway.Remote, len(p.Forge))
	for i, address := range p.Forge {
		out[i] = p.remote(address)
	}
	return out
}

// ReachesForge reports whether sessions of the project reach a forge. A launcher's words
// take one socket along, which is the model's.
func (p Project) ReachesForge() bool { return len(p.Forge) > 0 && p.Sandbox.Kind != sandbox.Command }

// CheckForge says why sessions could not fetch from the project's repositories at its
// forge, or not push to them. It changes nothing.
func (p Project) CheckForge(ctx context.Context) error {
	var errs []error
	for _, r := range p.remotes() {
		refs, err := r.Refs(ctx, "HEAD")
		if at := slices.IndexFunc(p.All(), func(q Project) bool { return q.OpensPulls() && q.Forge[0] == r.URL }); err == nil && at >= 0 {
			errs = append(errs, p.All()[at].checkPulls(ctx, strings.Fields(refs)))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s cannot be read (%w), so that git fetch does not work; give the bot the right to it (git: token_env, key_file or github_app; at another host than the project's own repository, by a key or helper of the bot's user)", r.URL, err))
		} else if err := checkPush(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("%s can be read and not be written to (%w), so that git push does not work; give the token, the key or the app the right to write its contents, or leave it so", r.URL, err))
		}
	}
	return errors.Join(errs...)
}

// checkPulls says why the bot could not read pull requests, or the checks of the commit that git tells of HEAD. Whether it
// may open and merge them no forge tells beforehand.
func (p Project) checkPulls(ctx context.Context, head []string) error {
	r, err := p.Repository()
	if err == nil {
		_, err = r.DefaultBranch(ctx)
	}
	if err == nil {
		_, err = r.Find(ctx, "deckhand/0")
		if forge.ReasonOf(err) == forge.NotFound {
			err = nil
		}
	}
	if err == nil && len(head) > 0 {
		_, err = r.Checks(ctx, head[0])
	}
	if err != nil {
		return fmt.Errorf("the API of %s does not tell of pull requests and their checks (%w), so that Deckhand cannot open and follow them; give the credential the rights that docs/forge.md lists, or leave pull_requests out", p.Forge[0], err)
	}
	return nil
}

// CheckSigning says why its commits cannot be signed.
func (p Project) CheckSigning() error {
	if p.SignKey == "" {
		return nil
	}
	_, err := p.signingKey()
	return err
}

func (p Project) signingKey() (gitway.SigningKey, error) {
	key, err := gitway.ReadSigningKey(p.SignKey)
	if err != nil {
		err = fmt.Errorf("the key that signs its commits (git.sign_key_file) cannot be used: %w", err)
	}
	return key, err
}

func checkPush(ctx context.Context, r gitway.Remote) error {
	folder, err := scratch.Make(scratch.Look)
	if err != nil {
		return err
	}
	defer folder.Remove() //nolint:errcheck // what is left is swept
	return r.CheckPush(ctx, folder.Path)
}
