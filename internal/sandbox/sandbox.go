package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind names a kind of sandbox.
type Kind string

// The kinds of sandboxes. The empty kind is [Bwrap].
const (
	// Bwrap: bubblewrap's namespaces on this machine. Linux.
	Bwrap Kind = "bwrap"
	// GVisor: runsc, a kernel of its own in user space. Linux.
	GVisor Kind = "gvisor"
	// Container: docker or podman, with the project's image.
	Container Kind = "container"
	// Command: an admin's launcher that passes stdio on.
	Command Kind = "command"
	// None: no sandbox; programs run as the bot's user. It must be written explicitly.
	None Kind = "none"
)

// Kinds are all of them, in the order for display.
func Kinds() []Kind { return []Kind{Bwrap, GVisor, Container, Command, None} }

// Network says what a session can reach.
type Network string

// The networks. The empty one is [Off].
const (
	// Off: only its own loopback and the model's socket.
	Off Network = "off"
	// Domains: also what [Spec.Domains] names, through the session's forwarder.
	Domains Network = "domains"
	// Ask: also what people allow when asked.
	Ask Network = "ask"
	// Open: the network of this machine, with everything that listens on it.
	Open Network = "open"
)

// Proxied reports whether programs use the session's forwarder as their proxy.
func (n Network) Proxied() bool { return n == Domains || n == Ask }

// Spec is the configuration: the team's default, or a project's own.
type Spec struct {
	Kind    Kind
	Network Network
	// Domains are for display; the other end of [Session.Web] enforces them.
	Domains []string
	// Engine (docker or podman) and Image are the container's.
	Engine, Image string
	// Command is the launcher of [Command] and its arguments; the program's follow.
	Command []string
	// See are further host paths that it sees read-only.
	See []string
	// Caches are folders relative to the home that outlive it and are shared by all threads of the project.
	Caches []string
	Limits Limits
}

// Session is one process and all that it starts. Paths are the host's, and absolute.
type Session struct {
	// Name is unique among running sessions, and safe in file names.
	Name string
	// Owner is the bot's stable name, safe in file names: see [Sweeper].
	Owner string
	// Workspace and Home are writable.
	Workspace, Home string
	// Repositories are the folders in Workspace with further repositories, which are protected as the one there.
	Repositories []string
	// Dir is the working directory, a folder of Workspace; empty for Workspace itself.
	Dir string
	// Hidden are the bot's own files and folders, hidden even inside something visible. They may contain Workspace
	// and Home.
	Hidden []string
	// ReadOnly are readable folders, such as the objects of the repository from which the workspace was cloned.
	// They may lie in a hidden one.
	ReadOnly []string
	// Program is the CLI and its first arguments; their files are visible read-only.
	Program []string
	// Socket is the unix socket of the way to the model, alone in its folder; empty for none.
	Socket string
	// Web is the unix socket of the way to the web, in a folder of the session's own; empty for none. With one, the
	// session gets a forwarder on its loopback: see package forward.
	Web string
	// CacheDir holds the project's caches.
	CacheDir string
	// Env is the whole environment, NAME=value.
	Env []string
}

func (s Session) dir() string { return cmp.Or(s.Dir, s.Workspace) }

// Box is a prepared sandbox of one process.
type Box struct {
	// Command replaces [Session.Program], with the same arguments after it, with Env as its whole environment, in
	// the session's working directory.
	Command []string
	Env     []string

	// limits are those that a [Watcher] enforces, and folders what counts as disk.
	limits  Limits
	folders folders
	group   *group
	// why says which limit ended it, if only the engine knows.
	why   func() string
	close func() error
}

// Close removes what was made for the process. Call it once, after the process has ended or instead of starting it.
func (b *Box) Close() error {
	var err error
	if b.close != nil {
		err = b.close()
	}
	return errors.Join(err, b.group.remove())
}

// Sandbox sandboxes sessions. Its methods are safe for concurrent use.
type Sandbox interface {
	// Check uses run to run a program in the sandbox. Its error is a sentence for people with the cure and, if
	// possible, the command.
	Check(ctx context.Context, run Run) error
	// Prepare makes what a process needs. Its error is a sentence for people. Everything in the box ends with the
	// started process.
	Prepare(ctx context.Context, s Session) (*Box, error)
	// String says for people what is in force, like [Spec.String].
	String() string
}

// Sweeper is a [Sandbox] that leaves something behind if the bot is killed.
type Sweeper interface {
	// Sweep removes what is left of the owner's sessions, none of which may still run.
	Sweep(ctx context.Context, owner string) error
}

// New returns the configured sandbox. It only reads spec; see [Sandbox.Check].
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

// HasSocket reports whether a session reaches a unix socket of this machine. A launcher does only if its arguments
// contain {socket}; otherwise the model is reached at an address of the bot's, which [Session.Env] names.
func (s Spec) HasSocket() bool {
	return s.Kind != Command || slices.ContainsFunc(s.Command, func(word string) bool { return strings.Contains(word, "{socket}") })
}

// String describes the configuration for people: "bwrap, no network, 8 GiB, 2048 processes, 20 GiB disk".
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
	return strings.Join(append(parts, s.Limits.describe()...), ", ")
}

func list[T ~string](all []T) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}
