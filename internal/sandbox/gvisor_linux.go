package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"deckhand/internal/sandbox/stage"
	"deckhand/internal/scratch"
)

// gvisor sandboxes sessions with runsc: a kernel in user space, which may make few of this machine's system calls,
// answers the session's. A second process that sees only the mounts opens files. Without root it works in a user
// namespace, whose only user is called root and is the bot's.
//
// A session is a bundle in a private folder: the empty folder and file that cover hidden paths, the root with the
// few generated files, and runsc's state. The outer stage writes the bundle's configuration, which includes the
// environment, when the process starts.
type gvisor struct {
	spec Spec
}

func newGVisor(spec Spec) (Sandbox, error) { return &gvisor{spec}, nil }

func (g *gvisor) String() string { return g.spec.String() }

// installGVisor cures most problems. Debian 12's package is of 2022: programs such as ls, which ask for a file's
// state without mounting, fail in it.
const installGVisor = "install a current one: https://gvisor.dev/docs/user_guide/install"

func (g *gvisor) Check(ctx context.Context, run Run) error {
	if err := g.spec.Limits.enforceable(); err != nil {
		return err
	}
	out, err := trial(ctx, run, g, g.spec.Network.Proxied(), true, "ls -d / >/dev/null && cat /proc/net/route && read -r word && echo \"$word\"")
	switch {
	case err == nil:
	case errors.Is(err, errTrial) && strings.Contains(err.Error(), "Invalid argument"):
		return fmt.Errorf("this runsc is too old for the programs of this machine; %s (%w)", installGVisor, err)
	case errors.Is(err, errTrial):
		return fmt.Errorf("gvisor does not work here: %w; see https://gvisor.dev/docs/user_guide/faq, or write sandbox: bwrap", err)
	default:
		return err
	}
	return g.spec.Network.seen(out)
}

func (g *gvisor) Prepare(_ context.Context, s Session) (*Box, error) {
	program, err := exec.LookPath("runsc")
	if err != nil {
		return nil, errors.New("runsc is not installed; " + installGVisor)
	}
	v := newView()
	if err := v.system(g.spec.Network); err != nil {
		return nil, err
	}
	command, err := v.session(g.spec, s)
	if err != nil {
		return nil, err
	}
	folder, err := scratch.Make(scratch.GVisor) // short, since runsc makes a socket below it
	if err != nil {
		return nil, err
	}
	box, err := g.bundle(folder, program, v, command, s)
	if err != nil {
		return nil, errors.Join(err, folder.Remove())
	}
	return box, nil
}

// bundle fills the folder.
func (g *gvisor) bundle(folder *scratch.Folder, program string, v *view, command []string, s Session) (*Box, error) {
	b := bundle{dir: folder.Path}
	rootless := os.Geteuid() != 0
	uid, gid := os.Getuid(), os.Getgid()
	if rootless {
		uid, gid = 0, 0
	}
	if err := b.make(v, identity(uid, gid, s.Home, g.spec.Network)); err != nil {
		return nil, fmt.Errorf("fill gvisor's folder: %w", err)
	}
	c := b.config(v, g.spec.Limits.Memory)
	c.Process.User = ociUser{uid, gid}
	c.Process.Cwd = s.dir()
	if n := g.spec.Limits.Files; n > 0 {
		c.Process.Rlimits = append(c.Process.Rlimits, ociRlimit{"RLIMIT_NOFILE", uint64(n), uint64(n)})
	}
	flags := []string{"--root=" + b.state(), "--ignore-cgroups", "--overlay2=none"}
	if rootless {
		flags = append(flags, "--rootless")
	}
	if g.spec.Network == Open {
		flags = append(flags, "--network=host")
	} else {
		flags = append(flags, "--network=none")
		c.namespace("network")
	}
	if s.Socket != "" || s.Web != "" {
		flags = append(flags, "--host-uds=open")
	}
	box := &Box{Env: environ(s.Env), close: folder.Remove, limits: g.spec.Limits, folders: s.folders(g.spec)}
	config, err := c.parts()
	if err != nil {
		return nil, err
	}
	filter, err := modeFilter()
	if err != nil {
		return nil, err
	}
	if box.group, err = ownGroups().make(s.Name, g.spec.Limits); err != nil {
		return nil, err
	}
	box.Command, err = staged(GVisor, stage.GVisor{
		Runsc: program, Flags: flags, Bundle: b.dir, Config: config, Filter: filter, Program: command, Name: s.Name, Group: box.group.procs(),
	})
	if err != nil {
		return nil, errors.Join(err, box.group.remove())
	}
	return box, nil
}

// bundle is a session's folder.
type bundle struct{ dir string }

func (b bundle) root() string        { return filepath.Join(b.dir, "root") }
func (b bundle) state() string       { return filepath.Join(b.dir, "state") }
func (b bundle) emptyFile() string   { return filepath.Join(b.dir, "empty-file") }
func (b bundle) emptyFolder() string { return filepath.Join(b.dir, "empty-folder") }

// make makes the root with its links and files, and the covers of hidden paths.
func (b bundle) make(v *view, files []stage.File) error {
	for _, d := range []string{b.root(), b.state(), b.emptyFolder()} {
		// Readable for others inside; outside nobody reaches it.
		if err := os.Mkdir(d, 0o755); err != nil { //nolint:gosec // see above
			return err
		}
	}
	if err := os.WriteFile(b.emptyFile(), nil, 0o444); err != nil { //nolint:gosec // empty
		return err
	}
	root, err := os.OpenRoot(b.root())
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only read
	for _, p := range v.paths() {
		if m := v.at[p]; m.kind == link {
			if err := inFolder(root, p, func(name string) error { return root.Symlink(m.source, name) }); err != nil {
				return err
			}
		}
	}
	for _, f := range files {
		if err := inFolder(root, f.Path, func(name string) error { return root.WriteFile(name, []byte(f.Content), 0o444) }); err != nil {
			return err
		}
	}
	return nil
}

// inFolder makes the folder of a path inside, and then calls put.
func inFolder(root *os.Root, path string, put func(name string) error) error {
	name := strings.TrimPrefix(path, "/")
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return put(name)
}

// config is the bundle's configuration without the process.
func (b bundle) config(v *view, memory int64) ociConfig {
	c := ociConfig{
		Version: "1.0.0", Hostname: hostname,
		Root: ociRoot{Path: b.root(), ReadOnly: true},
		Process: ociProcess{
			NoNewPrivileges: true,
			Rlimits:         []ociRlimit{{"RLIMIT_CORE", 0, 0}},
		},
		Mounts: []ociMount{{Destination: "/proc", Type: "proc", Source: "proc"}},
	}
	for _, name := range []string{"pid", "ipc", "uts", "mount"} {
		c.namespace(name)
	}
	bind := func(path, source, mode string) {
		c.Mounts = append(c.Mounts, ociMount{path, "bind", source, []string{"rbind", mode}})
	}
	for _, p := range v.paths() {
		switch m := v.at[p]; m.kind {
		case readOnly:
			bind(p, m.source, "ro")
		case writable:
			bind(p, m.source, "rw")
		case temporary:
			options := []string{"nosuid", "nodev", "mode=1777"}
			if memory > 0 {
				options = append(options, fmt.Sprintf("size=%d", shareOf(memory, p)))
			}
			c.Mounts = append(c.Mounts, ociMount{p, "tmpfs", "tmpfs", options})
		case emptyFolder:
			bind(p, b.emptyFolder(), "ro")
		case emptyFile:
			bind(p, b.emptyFile(), "ro")
		case link: // in the root already
		}
	}
	return c
}
