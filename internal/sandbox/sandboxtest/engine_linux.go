// Package sandboxtest has docker and podman run for tests, each with a state of its own and
// an image of this machine's programs: nothing is fetched, and nobody else's engine is used.
package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/waittest"
)

// Image is what the engines have: what a session needs, and what an attacker uses, of this
// machine.
const Image = "deckhand-test:latest"

// engines are those of this test run, each started when it is first needed.
var engines struct {
	sync.Mutex
	dir     string
	started map[string]error
	stop    []func() // in this order
}

// Stop ends the engines that were started, and removes what they have left. The test's
// binary calls it once.
func Stop() {
	engines.Lock()
	defer engines.Unlock()
	for _, stop := range engines.stop {
		stop()
	}
	engines.stop, engines.started, engines.dir = nil, nil, ""
}

// errNoEngine is in the error of an engine that this machine does not have.
var errNoEngine = errors.New("no engine")

// Engine has docker or podman run with a state of its own, with the image, or skips the
// test: an engine is started by root, and is not installed for tests alone unless
// DECKHAND_TEST_DOCKER=1 asks for it.
func Engine(t testing.TB, engine string) {
	t.Helper()
	engines.Lock()
	defer engines.Unlock()
	err, known := engines.started[engine]
	if !known {
		if engines.started == nil {
			engines.started = map[string]error{}
		}
		err = startEngine(context.WithoutCancel(t.Context()), engine) // it is there for other tests, too
		engines.started[engine] = err
	}
	switch {
	case err == nil:
	case errors.Is(err, errNoEngine) && os.Getenv("DECKHAND_TEST_DOCKER") != "1":
		t.Skipf("%v; DECKHAND_TEST_DOCKER=1 make test, as root, installs and requires it", err)
	default:
		t.Fatal(err)
	}
}

func startEngine(ctx context.Context, engine string) error {
	program := map[string]string{"docker": "dockerd", "podman": "podman"}[engine]
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%w: %s is not installed", errNoEngine, program)
	}
	if os.Getuid() != 0 {
		return fmt.Errorf("%w: %s of our own is started by root only", errNoEngine, program)
	}
	if engines.dir == "" {
		dir, err := os.MkdirTemp("", "deckhand-engines-")
		if err != nil {
			return err
		}
		engines.dir = dir
		engines.stop = append(engines.stop, func() {
			if err := os.RemoveAll(dir); err != nil {
				fmt.Fprintln(os.Stderr, "remove the engines' folder:", err)
			}
		})
	}
	dir := filepath.Join(engines.dir, engine)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	start := map[string]func(context.Context, string) error{"docker": startDocker, "podman": startPodman}[engine]
	if err := start(ctx, dir); err != nil {
		return err
	}
	return importImage(ctx, engine, dir)
}

// startDocker starts the daemon, which says that it is there by answering.
func startDocker(ctx context.Context, dir string) error {
	socket := "unix://" + dir + "/docker.sock"
	var log bytes.Buffer
	daemon := exec.CommandContext(ctx, "dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none",
		"--data-root", dir+"/data", "--exec-root", dir+"/exec", "--pidfile", dir+"/pid", "--host", socket)
	daemon.Stdout, daemon.Stderr, daemon.WaitDelay = &log, &log, time.Second
	if err := daemon.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = daemon.Wait() // how is in its log
		close(ended)
	}()
	engines.stop = slices.Insert(engines.stop, 0, func() {
		_ = daemon.Process.Signal(os.Interrupt) // gone already is as good
		<-ended
		_ = unix.Unmount(dir+"/exec/netns/default", unix.MNT_DETACH) // left if a container had this machine's network
	})
	if err := os.Setenv("DOCKER_HOST", socket); err != nil {
		return err
	}
	for limit := time.Now().Add(waittest.Limit); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if exec.CommandContext(ctx, "docker", "version").Run() == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("dockerd ended: %s", log.Bytes())
		default:
		}
	}
	return errors.New("dockerd does not answer")
}

// startPodman has nothing to start. Its state is in dir, and what needs systemd is off.
func startPodman(_ context.Context, dir string) error {
	conf := "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n"
	if _, err := exec.LookPath("crun"); err != nil {
		conf = strings.Replace(conf, "[engine]\n", "[engine]\nruntime = \"runc\"\n", 1)
	}
	storage := fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n", dir+"/graph", dir+"/run")
	for name, content := range map[string]string{"CONTAINERS_CONF": conf, "CONTAINERS_STORAGE_CONF": storage} {
		path := filepath.Join(dir, strings.ToLower(name))
		if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Setenv(name, path)); err != nil {
			return err
		}
	}
	engines.stop = slices.Insert(engines.stop, 0, func() {
		_ = unix.Unmount(dir+"/graph/overlay", unix.MNT_DETACH) // podman leaves it mounted, if it has come that far
	})
	return nil
}

// programs are those in the image: what the tests of sessions run, and the attacks of
// cmd/bot. Those that this machine does not have are not in it.
var programs = strings.Fields("bash sh git env cat ls touch id mkdir rm uname sed grep ps " +
	"chmod chown cp dd dmesg find head kill ln mkfifo mknod mount mv nohup nsenter printf rmdir seq setsid sleep sort stat tail tar test timeout tr umount unshare wc")

// importImage makes the image of this machine's own programs and their libraries.
func importImage(ctx context.Context, engine, dir string) error {
	files := []string{"bin", "sbin", "lib", "lib64", "etc/ssl/certs", "etc/passwd", "etc/group"}
	gitCore, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return err
	}
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		libraries, _ := exec.CommandContext(ctx, "ldd", path).Output() // none, of a script
		for word := range strings.FieldsSeq(path + " " + string(libraries)) {
			if filepath.IsAbs(word) {
				files = append(files, links(word)...)
			}
		}
	}
	for _, name := range []string{"libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0"} { // the CLI's
		found, _ := filepath.Glob("/lib/*/" + name)
		for _, path := range found {
			files = append(files, links(path)...)
		}
	}
	slices.Sort(files)
	tarball := filepath.Join(dir, "image.tar")
	args := []string{"--create", "--file", tarball, "--directory", "/", "--ignore-failed-read", "--no-recursion"}
	args = append(args, slices.Compact(slices.DeleteFunc(files, isNotHere))...)
	args = append(args, "--recursion", strings.TrimSpace(string(gitCore))[1:])
	if out, err := exec.CommandContext(ctx, "tar", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w\n%s", err, out)
	}
	if out, err := exec.CommandContext(ctx, engine, "import", tarball, Image).CombinedOutput(); err != nil {
		return fmt.Errorf("%s import: %w\n%s", engine, err, out)
	}
	return os.Remove(tarball)
}

// links are a path without its leading slash, with the links in its folders resolved, and
// what it leads to.
func links(path string) []string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil
	}
	out := []string{filepath.Join(dir, filepath.Base(path))[1:]}
	if target, err := os.Readlink("/" + out[0]); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		out = append(out, links(target)...)
	}
	return out
}

func isNotHere(name string) bool {
	_, err := os.Lstat("/" + name)
	return errors.Is(err, fs.ErrNotExist)
}
