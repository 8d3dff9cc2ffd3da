package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind names a way to shut a session in.
type Kind string

// The kinds of sandboxes. The empty kind is [Bwrap].
const (
	// Bwrap: bubblewrap's namespaces on this machine. Linux.
	Bwrap Kind = "bwrap"
	// GVisor: runsc, a kernel of its own in user space. Linux.
	GVisor Kind = "gvisor"
	// Container: a container of docker or podman, from an image of the project's.
	Container Kind = "container"
	// Command: a launcher of the admin's that passes stdio on.
	Command Kind = "command"
	// None: no sandbox; what runs is the bot's own user. It must be written out.
	None Kind = "none"
)

// Kinds are all of them, in the order in which people read them.
func Kinds() []Kind { return []Kind{Bwrap, GVisor, Container, Command, None} }

// Network says what a session can reach.
type Network string

// The networks. The empty one is [Off].
const (
	// Off: a loopback of its own and the model's socket, and no other way out.
	Off Network = "off"
	// Domains: besides, by the session's forwarder, what [Spec.Domains] names.
	Domains Network = "domains"
	// Ask: the same, and what people allow when it is asked for.
	Ask Network = "ask"
	// Open: the network of this machine, with everything that listens on it.
	Open Network = "open"
)

// Proxied reports whether programs have the session's forwarder for their proxy.
func (n Network) Proxied() bool { return n == Domains || n == Ask }

// Spec is what is configured: the team's default, or a project's own.
type Spec struct {
	Kind    Kind
	Network Network
	// Domains are those of the network, for people: who keeps to them is at the other end
	// of [Session.Web].
	Domains []string
	// Engine (docker or podman) and Image are the container's.
	Engine, Image string
	// Command is the launcher of [Command] and its arguments; the program's follow.
	Command []string
	// See are further host files and folders that it sees, read-only, at their place.
	See []string
	// Caches are folders, relative to the home, that outlive it: they are the project's,
	// and all its threads write to them.
	Caches []string
	Limits Limits
}

// Session is what is shut in: one process and all that it starts. Paths are the
// host's, and absolute.
type Session struct {
	// Name is unique among what runs, and harmless in the names of files.
	Name string
	// Owner is the bot's name for itself, the same at its next start, and harmless in the
	// names of files: see [Sweeper].
	Owner string
	// Workspace and Home are writable, and the working directory is Workspace.
	Workspace, Home string
	// Hidden are the bot's own files and folders: not seen even where they lie in
	// something that is. Workspace and Home may lie in one.
	Hidden []string
	// ReadOnly are folders that it reads, such as the objects of the repository that the
	// workspace is a clone of. They may lie in a hidden one.
	ReadOnly []string
	// Program is the CLI and its first arguments; their files are read-only.
	Program []string
	// Socket is the unix socket of the way to the model, alone in its folder; empty for
	// none.
	Socket string
	// Web is the unix socket of the way to the web, in a folder that belongs to the session
	// alone; empty for none. Where there is one, the session gets a forwarder on its loopback:
	// see package forward.
	Web string
	// CacheDir is where the project's caches are kept.
	CacheDir string
	// Env is the whole environment, NAME=value.
	Env []string
}

// Box is a prepared sandbox of one process.
type Box struct {
	// Command is to be started in place of [Session.Program], with the same arguments
	// after it, with Env as its whole environment, in [Session.Workspace].
	Command []string
	Env     []string

	// limits are those that a [Watcher] has to look after, and folders what counts as disk.
	limits  Limits
	folders folders
	group   *group
	// why says afterwards which limit ended it, where only its engine knows.
	why   func() string
	close func() error
}

// Close removes what was made for the process. It is called once, after the process
// has ended, or instead of starting it.
func (b *Box) Close() error {
	var err error
	if b.close != nil {
		err = b.close()
	}
	return errors.Join(err, b.group.remove())
}

// Sandbox shuts sessions in. Its methods are safe for concurrent use.
type Sandbox interface {
	// Check has run run a program in the sandbox. Its error is a sentence for people: what does
	// not work and what to do, with the command where there is one.
	Check(ctx context.Context, run Run) error
	// Prepare makes what a process needs. Its error is a sentence for people. What the
	// box runs ends with the process that is started.
	Prepare(ctx context.Context, s Session) (*Box, error)
	// String tells people what is in force, as [Spec.String] does.
	String() string
}

// Sweeper is a [Sandbox] that leaves something behind if the bot is killed.
type Sweeper interface {
	// Sweep removes what is left of the owner's sessions, none of which may run any more.
	Sweep(ctx context.Context, owner string) error
}

// New returns the sandbox that is configured. It looks at nothing but spec; see
// [Sandbox.Check].
func New(spec Spec) (Sandbox, error) {
	switch spec.Kind {
	case Bwrap, "":
		return newBwrap(spec)
	case GVisor:
		return newGVisor(spec)
	case Container:
		return newContainer(spec)
	case Command:
		return newCommand(spec)
	case None:
		return none{spec}, nil
	}
	return nil, fmt.Errorf("there is no sandbox %q; write one of %s", spec.Kind, list(Kinds()))
}

// HasSocket reports whether a session reaches a unix socket of this machine: by a launcher
// only if its words take {socket} along. Where it does not, the model is reached by an
// address of the bot's, which [Session.Env] names.
func (s Spec) HasSocket() bool {
	return s.Kind != Command || slices.ContainsFunc(s.Command, func(word string) bool { return strings.Contains(word, "{socket}") })
}

// String tells people what is configured: "bwrap, no network, 8 GiB, 2048 processes,
// 20 GiB disk".
func (s Spec) String() string {
	var parts []string
	switch kind := cmp.Or(s.Kind, Bwrap); kind {
	case None:
		parts = append(parts, "none: what runs is the bot's own user")
	case Command:
		parts = append(parts, "command: what "+strings.Join(s.Command, " ")+" shuts in")
	default:
		network := "no network"
		switch s.Network {
		case Open:
			network = "this machine's network"
		case Domains:
			network += " but " + strings.Join(s.Domains, ", ")
		case Ask:
			network += " but " + strings.Join(append(slices.Clip(s.Domains), "what people allow when it is asked for"), ", ")
		}
		parts = append(parts, string(kind), network)
		if kind == Container && s.Image != "" {
			parts = append(parts, "image "+s.Image)
		}
	}
	return strings.Join(append(parts, s.Limits.told()...), ", ")
}

func list[T ~string](all []T) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}
