package sandbox

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What is the session's can be written, what is the system's can be read, and what was
// written is there afterwards.
func TestWhatASessionSees(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tool := h.write("tools/tool", "#!/bin/sh\necho tool\n")
	h.write("objects/o", "borrowed")
	h.spec = Spec{See: []string{filepath.Dir(tool)}, Caches: []string{"go/pkg/mod", ".npm"}}
	h.session.ReadOnly = []string{h.folder("objects")}
	h.session.Env = append(h.session.Env, "NODE_EXTRA_CA_CERTS="+h.write("ca.pem", "authorities"), "TMPDIR=/nowhere", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c")
	h.does(`set -e
		test "$PWD" = ` + h.work + `
		echo made > made; echo home > ~/made; echo cached > ~/go/pkg/mod/made
		test "$(cat $NODE_EXTRA_CA_CERTS)" = authorities; test "$(git config a.b)" = c; test "$(git config branch.autoSetupMerge)" = false
		sh ` + tool + `; cat ` + h.root + `/objects/o
		echo t > /tmp/x; echo t > /var/tmp/x; test "$TMPDIR" = /tmp
		id -un; getent passwd $(id -u); date; ls /usr/bin > /dev/null; test -r /etc/ssl/certs
		test "$(cat /etc/hosts | head -1 | cut -d' ' -f2)" = localhost
		echo x > /dev/null; head -c 4 /dev/urandom > /dev/null; test -d /dev/shm; echo s > /dev/shm/s
		test -d /proc/self`)
	if h.read("data/workspaces/web/1/made") != "made\n" || h.read("data/home/1/made") != "home\n" || h.read("data/caches/web/go/pkg/mod/made") != "cached\n" {
		t.Error("what was written is somewhere else")
	}
	for _, path := range []string{tool, h.root + "/objects/o", "/usr/bin/new", "/etc/new", "/new", "/etc/passwd", "/etc/services", h.root + "/new", filepath.Dir(h.work) + "/new"} {
		h.cannot("echo x >> " + path)
	}
}

// What is handed over as a copy is the host's, and cannot be changed.
func TestCopiesOfSystemFiles(t *testing.T) {
	t.Parallel()
	v := newView()
	must(t, v.system(Off))
	copies := v.copies()
	if len(copies) < 2 {
		t.Fatalf("%d copies", len(copies))
	}
	sums, change := "", "echo > /tmp/x\n"
	for _, c := range copies {
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(readAt(t, c.Source))), c.Path)
		for _, by := range []string{"rm -f", "chmod u+w", "mv -f /tmp/x", "ln -f /tmp/x", "cp /tmp/x"} {
			change += fmt.Sprintf("%s %s 2>/dev/null && echo '%[1]s %[2]s'\n", by, c.Path)
		}
	}
	h := newHouse(t)
	h.does("sha256sum --check --quiet <<'END'\n" + sums + "END")
	if out := h.does(change + "true"); out != "" {
		t.Errorf("inside, this worked:\n%s", out)
	}
	// What the project shows covers them.
	h.spec = Spec{See: []string{"/etc/os-release"}}
	h.does("test -s /etc/os-release")
}

// The list of the issue: what no session sees.
func TestWhatASessionDoesNotSee(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.spec = Spec{See: []string{h.folder("tools")}}
	for _, path := range []string{
		h.config, h.other, filepath.Join(h.data, "home/2"), filepath.Join(h.data, "replica.lock"), filepath.Join(h.data, "workspaces/web/2/theirs"),
		"/etc/shadow", "/etc/sudoers", "/etc/ssh", "/etc/machine-id", "/etc/resolv.conf", "/root/.bashrc", "/home", "/var/lib/dpkg", "/var/log",
		"/run/docker.sock", "/var/run/docker.sock", "/run", "/sys/kernel", "/var/run/postgresql", "/tmp/.s.PGSQL.5432", "/proc/kcore", "/boot", "/mnt", "/opt",
		"/dev/sda", "/dev/vda", "/dev/kmsg", "/dev/mem", "/dev/fuse", "/dev/kvm",
	} {
		h.cannot(`cat ` + path + ` > /dev/null || ls -A ` + path + ` | grep .`)
	}
	// The files of /etc are those that are named.
	known := append([]string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/ssl", "/etc/pki"}, systemFiles...)
	for name := range strings.FieldsSeq(h.does("ls /etc")) {
		ok := false
		for _, k := range known {
			if match, _ := filepath.Match(k, "/etc/"+name); match || strings.HasPrefix(k, "/etc/"+name+"/") {
				ok = true
			}
		}
		if !ok {
			t.Errorf("/etc/%s is seen", name)
		}
	}
	if out := h.does(`grep -c . /etc/passwd`); out != "2" && out != "3" {
		t.Errorf("%s people are known inside", out)
	}
}

// A session is alone: no process but its own, no terminal, no variable but those that
// it was given, no right and no way to a new one.
func TestASessionIsAlone(t *testing.T) {
	t.Setenv("SLACK_BOT_TOKEN", "xoxb-canary")
	h := newHouse(t)
	// A file that whoever started the bot has left open.
	left, err := unix.Dup(1)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(left) //nolint:errcheck // a test's file
	// The last one is the folder that is being listed.
	if out := h.does(`ls /proc/self/fd`); strings.Join(strings.Fields(out), " ") != "0 1 2 3" {
		t.Errorf("open files: %s", out)
	}
	if out := h.does(`cat /proc/1/cmdline`); strings.Contains(out, h.config) || !strings.HasPrefix(out, "bwrap") {
		t.Errorf("the arguments of the init: %s", out)
	}
	for pid := range strings.FieldsSeq(h.does(`cd /proc && ls -d [0-9]*`)) {
		if n, err := strconv.Atoi(pid); err != nil || n > 20 {
			t.Errorf("process %s is seen", pid)
		}
	}
	if out := h.does(`cat /proc/[0-9]*/environ | tr '\0' '\n'; env`); strings.Contains(out, "canary") {
		t.Errorf("the bot's environment is seen:\n%s", out)
	}
	h.cannot(`: < /dev/tty`)
	for _, path := range []string{"sys/kernel/hostname", "sys/net/ipv4/ip_forward", "sys/vm/overcommit_memory", "self/oom_score_adj", "self/mem"} {
		h.cannot(`test -e /proc/` + path + ` || exit 1; cat /proc/` + path + ` 2> /dev/null | head -c 100 > /proc/` + path)
	}
	h.cannot(`mount -t tmpfs x /tmp || unshare -U true || unshare -n true || chroot / true`)
	h.does(`set -e
		grep -q '^NoNewPrivs:.1' /proc/self/status; grep -q '^Seccomp:.2' /proc/self/status; grep -q '^CapEff:.0*$' /proc/self/status; grep -q '^CapBnd:.0*$' /proc/self/status
		grep -q '^Seccomp:.2' /proc/1/status; grep -q '^CapEff:.0*$' /proc/1/status
		test "$(ulimit -Hc)" = 0; test "$(uname -n)" = ` + hostname)
	if os.Getuid() == 0 {
		h.cannot(`su nobody -s /bin/sh -c true`)
	}
}

// What is the bot's is not seen even where it lies in something that is.
func TestTheBotsOwnIsHiddenWhereverItLies(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	// The demo's way: everything in one folder, and that folder shown by somebody.
	h.spec = Spec{See: []string{h.root}}
	h.write("notes", "for all to see")
	h.does(`cat ` + h.root + `/notes`)
	for _, path := range []string{h.config, h.other + "/theirs", h.data + "/replica.lock"} {
		h.cannot(`grep . ` + path)
	}
	h.does(`echo mine > mine; echo mine > ~/mine`)
	// The workspace holds the bot's data.
	h.spec, h.session.Workspace = Spec{}, h.root
	for _, path := range []string{h.config, h.other + "/theirs", h.data + "/replica.lock"} {
		h.cannot(`grep . ` + path)
		h.runs(`rm -rf ` + path)
	}
	if h.read("data/workspaces/web/2/theirs") == "" || h.read("deckhand.yaml") == "" {
		t.Error("it could be emptied")
	}
	h.cannot(`mv data data2`)
	// Nor is what it lies in exchanged for something else, which the bot would obey.
	h.session.Hidden = append(h.session.Hidden, h.write("ops/bot/deckhand.yaml", "the bot's"))
	for _, script := range []string{`mv ops o2`, `mv ops/bot o2`, `mv ops/bot/deckhand.yaml o2`, `echo evil > ops/bot/deckhand.yaml`, `rm -rf ops; test ! -e ops`} {
		h.cannot(script)
	}
	h.does(`echo mine > mine; echo mine > ~/mine`)

	for name, session := range map[string]func(h *house){
		"the data folder, shown":       func(h *house) { h.spec.See = []string{h.data} },
		"a part of it, shown":          func(h *house) { h.spec.See = []string{h.other} },
		"it, by a link":                func(h *house) { h.spec.See = []string{h.root + "/link"}; _ = os.Symlink(h.data, h.root+"/link") },
		"it, as the workspace":         func(h *house) { h.session.Workspace = h.data },
		"everything, as the workspace": func(h *house) { h.session.Workspace = "/" },
		"everybody's folder":           func(h *house) { h.session.Workspace = "/tmp" },
		"the system":                   func(h *house) { h.session.Workspace = "/usr" },
	} {
		h := newHouse(t)
		session(h)
		if _, err := h.box(); err == nil {
			t.Errorf("%s: the session was prepared", name)
		}
	}
}

// A cache is what sessions write: nothing that lies in one is followed.
func TestACacheLeadsNowhere(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(h *house) error{
		"a link in its place":    func(h *house) error { return os.Symlink(h.other, h.folder("data/caches/web")+"/.npm") },
		"a link on the way":      func(h *house) error { return os.Symlink(h.other, h.folder("data/caches/web")+"/go") },
		"a cache in a cache":     func(h *house) error { h.spec.Caches = []string{"go", "go/pkg"}; return nil },
		"a cache out of its way": func(h *house) error { h.spec.Caches = []string{"../../home/2"}; return nil },
	} {
		h := newHouse(t)
		h.spec.Caches = []string{".npm", "go/pkg/mod"}
		if err := spoil(h); err != nil {
			t.Fatal(err)
		}
		if _, err := h.box(); err == nil {
			t.Errorf("%s: the session was prepared", name)
		}
	}
}
