package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/beginning"
	"deckhand/internal/scratch"
)

// The container engines. They take the same arguments.
const (
	docker = "docker"
	podman = "podman"
)

// containerLabel is on all our containers; its value is [Session.Owner].
const containerLabel = "deckhand"

// container sandboxes sessions with docker or podman: one read-only container of the project's image per process,
// removed by [Box.Close] when the process has ended. From this machine the session sees its folders and the CLI's
// files, at the same paths; the system, with PATH and its other environment, is the image's.
//
// The engine's client gets only the variables that it reads itself, not the session's: the session could write
// client plugins into its home.
//
// The container outlives the client. [Box.Close] removes it; if the bot is killed, the CLI ends with its standard
// input, and with it the container (measured: 0.2 s, also in the middle of a command), and Sweep removes leftovers
// at the bot's next start.
type container struct {
	spec   Spec
	engine string

	mu sync.Mutex
	// rootless is set once the engine has answered.
	rootless *bool
}

func newContainer(spec Spec) (Sandbox, error) {
	engine := cmp.Or(spec.Engine, docker)
	if engine != docker && engine != podman {
		return nil, fmt.Errorf("there is no engine %q; write docker or podman", engine)
	}
	if spec.Image == "" {
		return nil, errors.New("a container needs an image; write image: with its name")
	}
	return &container{spec: spec, engine: engine}, nil
}

func (c *container) String() string { return c.spec.String() }

func (c *container) Check(ctx context.Context, run Run) error {
	if _, err := c.client(); err != nil {
		return err
	}
	if _, err := c.run(ctx, "version"); err != nil {
		return fmt.Errorf("%s does not answer: %w; start it, and let the bot's user use it", c.engine, err)
	}
	if _, err := c.run(ctx, "image", "inspect", "--format", "{{.Id}}", c.spec.Image); err != nil {
		return fmt.Errorf("there is no image %s here, and none is fetched in the middle of work: %s pull %[1]s (%[3]w)", c.spec.Image, c.engine, err)
	}
	ours, err := engineProfile()
	if err != nil {
		return err
	}
	out, err := trial(ctx, run, c, c.spec.Network.Proxied(), ours != nil, containerTrial)
	if err != nil {
		return fmt.Errorf("a container of %s does not work: %w; the image needs sh, bash and git and has to be made for this machine, and %s has to run here, for it is given folders of this machine", c.spec.Image, err, c.engine)
	}
	filter, table, _ := strings.Cut(out, "\n")
	if strings.TrimSpace(strings.TrimPrefix(filter, "Seccomp:")) != "2" {
		return fmt.Errorf("%s starts containers without a filter of system calls (its status says %q); switch seccomp on: %[1]s info, security options", c.engine, filter)
	}
	return c.spec.Network.seen(table)
}

// containerTrial prints whether there is a filter of system calls, and the routing table. The CLI needs bash and
// git.
const containerTrial = `command -v bash git >&2 || { echo 'the image has no bash or no git' >&2; exit 1; }
while read -r name value; do test "$name" != Seccomp: || echo "$name $value"; done </proc/self/status
cat /proc/net/route && read -r word && echo "$word"`

func (c *container) Prepare(ctx context.Context, s Session) (*Box, error) {
	program, err := c.client()
	if err != nil {
		return nil, err
	}
	v := newView()
	v.native = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin"}
	command, err := v.session(c.spec, s)
	if err != nil {
		return nil, err
	}
	mounts, err := v.containerMounts()
	if err != nil {
		return nil, err
	}
	identity, err := c.identity(ctx)
	if err != nil {
		return nil, err
	}
	words := []string{
		program, "run", "--interactive", "--init", "--pull=never", "--name=" + s.Name, "--label=" + containerLabel + "=" + s.Owner,
		"--read-only", "--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777", "--tmpfs=/var/tmp:rw,exec,nosuid,nodev,mode=1777",
		"--cap-drop=ALL", "--security-opt=no-new-privileges", "--ipc=private", "--no-healthcheck",
		// The output belongs to the thread, not to the engine's log.
		"--log-driver=none",
		"--workdir=" + s.dir(),
	}
	filter, forget, err := c.filter()
	if err != nil {
		return nil, err
	}
	if filter == nil && !closed(s.Workspace) {
		return nil, fmt.Errorf("other accounts come to %s, and on this machine %s does not keep sessions from making setuid files there: chmod go-x '%[1]s'", s.Workspace, c.engine)
	}
	words = slices.Concat(words, identity, mounts, c.limits(), filter)
	if c.spec.Network == Open {
		words = append(words, "--network=host")
	} else {
		words = append(words, "--network=none", "--hostname="+hostname)
	}
	passed, env := handOn(environ(s.Env))
	words = append(append(words, passed...), "--entrypoint="+command[0], c.spec.Image)
	return &Box{
		Command: append(words, command[1:]...), Env: env,
		// The engine enforces the rest.
		limits: Limits{Disk: c.spec.Limits.Disk}, folders: s.folders(c.spec),
		why:   func() string { return c.why(s.Name) },
		close: func() error { return errors.Join(c.remove(s.Name), forget()) },
	}, nil
}

// filter is the option for our filter of system calls, since the engine's is weaker. The engine's client reads it
// from a file; forget removes that.
func (c *container) filter() (words []string, forget func() error, err error) {
	text, err := engineProfile()
	if err != nil || text == nil {
		return nil, func() error { return nil }, err
	}
	folder, err := scratch.Make(scratch.Seccomp)
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(folder.Path, "filter.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("write the filter of system calls for %s: %w", c.engine, err), folder.Remove())
	}
	return []string{"--security-opt=seccomp=" + file}, folder.Remove, nil
}

// client is the engine's client program.
func (c *container) client() (string, error) {
	program, err := exec.LookPath(c.engine)
	if err != nil {
		install := map[string]string{docker: "https://docs.docker.com/engine/install", podman: "https://podman.io/docs/installation"}
		return "", fmt.Errorf("%s is not installed; install it: %s", c.engine, install[c.engine])
	}
	return program, nil
}

// identity are the options that make the user inside the bot's user, so that the bot owns the files that it makes.
func (c *container) identity(ctx context.Context) ([]string, error) {
	rootless, err := c.isRootless(ctx)
	if err != nil {
		return nil, err
	}
	user := fmt.Sprintf("--user=%d:%d", os.Getuid(), os.Getgid())
	switch {
	case !rootless:
		return []string{user}, nil
	case c.engine == podman:
		return []string{"--userns=keep-id", user}, nil
	default: // the engine's user is called root inside
		return []string{"--user=0:0"}, nil
	}
}

func (c *container) isRootless(ctx context.Context) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rootless != nil {
		return *c.rootless, nil
	}
	format := "{{.SecurityOptions}}"
	if c.engine == podman {
		format = "{{.Host.Security.Rootless}}"
	}
	out, err := c.run(ctx, "info", "--format", format)
	if err != nil {
		return false, fmt.Errorf("%s does not answer: %w", c.engine, err)
	}
	rootless := strings.Contains(out, "name=rootless") || strings.TrimSpace(out) == "true"
	c.rootless = &rootless
	return rootless, nil
}

// containerMounts are the options for the view's mounts.
func (v *view) containerMounts() ([]string, error) {
	var out []string
	for _, p := range v.paths() {
		m := v.at[p]
		// The value is a comma-separated list.
		if strings.ContainsAny(p+m.source, ",\"\n") {
			return nil, fmt.Errorf("%s cannot be shown in a container: its name has a comma, a quotation mark or a line break", p)
		}
		bind := fmt.Sprintf("--mount=type=bind,source=%s,target=%s", m.source, p)
		switch m.kind {
		case readOnly:
			out = append(out, bind+",readonly")
		case writable:
			out = append(out, bind)
		case emptyFile:
			out = append(out, "--mount=type=bind,source="+os.DevNull+",target="+p+",readonly")
		case emptyFolder:
			out = append(out, "--tmpfs="+p+":ro,size=4k,mode=0555")
		case link, temporary: // the image's system has these
		}
	}
	return out, nil
}

// limits are the options for the container's limits.
func (c *container) limits() []string {
	limits := c.spec.Limits
	out := []string{"--ulimit=core=0"}
	if n := limits.Memory; n > 0 {
		out = append(out, fmt.Sprintf("--memory=%d", n), fmt.Sprintf("--memory-swap=%d", n))
	}
	if n := limits.Processes; n > 0 {
		out = append(out, fmt.Sprintf("--pids-limit=%d", n))
	}
	if n := limits.CPU; n > 0 {
		out = append(out, "--cpus="+strconv.FormatFloat(n, 'f', -1, 64))
	}
	switch n := limits.Files; {
	case c.engine == podman:
		out = append(out, asHere("nofile", unix.RLIMIT_NOFILE, uint64(cmp.Or(n, 1<<20)))...) //nolint:gosec // a limit is positive
	case n > 0:
		out = append(out, fmt.Sprintf("--ulimit=nofile=%d:%d", n, n))
	}
	if c.engine == podman { // podman lowers its own to this (measured with 4.3)
		out = append(out, asHere("nproc", unix.RLIMIT_NPROC, 1<<15)...)
	}
	return out
}

// asHere is the option for the bot's own limit, or most if that is higher. Podman's default is the kernel's
// maximum, which root may not set on every machine.
func asHere(name string, resource int, most uint64) []string {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil {
		return nil
	}
	n := min(limit.Max, most)
	return []string{fmt.Sprintf("--ulimit=%s=%d:%d", name, n, n)}
}

// handOn are the options that pass the session's environment on, and the client's environment. Values travel in the
// client's environment, since other users can read a command line; only variables that the client itself would obey
// are on the command line.
func handOn(session []string) (options, env []string) {
	env = launcherEnviron()
	for _, entry := range session {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case name == "PATH": // the image knows where its programs are
		case isLaunchers(name):
			options = append(options, "--env="+entry)
		default:
			options = append(options, "--env="+name)
			env = append(env, entry)
		}
	}
	return options, env
}

// run returns the output of the engine's client.
func (c *container) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.engine, args...)
	cmd.Env, cmd.WaitDelay = launcherEnviron(), time.Second
	out, errOut := beginning.Buffer{Most: mostSaid}, beginning.Buffer{Most: mostSaid}
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("no answer within %v", trialTime)
	case err != nil:
		return "", fmt.Errorf("it says: %s (%w)", lastLine(errOut.String()), err)
	}
	return out.String(), nil
}

// why reports whether the session's container was killed for its memory.
func (c *container) why(name string) string {
	out, err := c.run(context.Background(), "inspect", "--type=container", "--format={{.State.OOMKilled}} {{.State.ExitCode}}", name)
	if err != nil || strings.TrimSpace(out) != "true 137" {
		return ""
	}
	return overMemory(c.spec.Limits.Memory, "more than "+Size(c.spec.Limits.Memory))
}

// remove removes the session's container, and returns when it is gone.
func (c *container) remove(name string) error {
	return c.removeAll(context.Background(), "name=^/?"+name+"$")
}

// Sweep removes the owner's leftover containers. No session of the owner may run.
func (c *container) Sweep(ctx context.Context, owner string) error {
	return c.removeAll(ctx, "label="+containerLabel+"="+owner)
}

func (c *container) removeAll(ctx context.Context, filter string) error {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		out, err := c.run(ctx, "ps", "--all", "--quiet", "--filter", filter)
		if err != nil {
			return fmt.Errorf("look for containers that are left: %w", err)
		}
		ids := strings.Fields(out)
		if len(ids) == 0 {
			return nil
		}
		// One that the engine is already removing gives an error.
		_, removal := c.run(ctx, slices.Concat([]string{"rm", "--force", "--volumes"}, ids)...)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("containers are left (%s), remove them: %s rm --force %[1]s (%[3]w)", strings.Join(ids, " "), c.engine, errors.Join(removal, ctx.Err()))
		}
	}
}
