package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestBwrapWorks(t *testing.T) {
	t.Parallel()
	newHouse(t) // has bwrap
	for _, spec := range []Spec{{}, {Kind: Bwrap, Network: Open}} {
		b, err := New(spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Check(t.Context(), tryRun); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
}

// What bwrap says where it does not work, each with its cure. The words are bwrap's own,
// of the versions 0.8 to 0.11, on the systems that the cures name.
func TestWhyBwrapDoesNotWorkIsToldWithTheCure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		said   string
		root   bool
		inside bool
		sysctl map[string]string
		want   string
	}{
		"an old one":                {said: "bwrap: Unknown option --disable-userns", want: "bubblewrap 0.8 or newer is needed"},
		"no namespaces at all":      {said: "bwrap: Creating new namespace failed: No space left on device", root: true, sysctl: map[string]string{"user/max_user_namespaces": "0"}, want: "sudo sysctl -w user.max_user_namespaces=15000"},
		"none but root's":           {said: "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.", sysctl: map[string]string{"kernel/unprivileged_userns_clone": "0"}, want: "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		"Ubuntu 24.04":              {said: "bwrap: setting up uid map: Permission denied", sysctl: map[string]string{"kernel/apparmor_restrict_unprivileged_userns": "1"}, want: "deploy/apparmor/deckhand-bwrap"},
		"Ubuntu 24.04, as root":     {said: "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", sysctl: map[string]string{"kernel/apparmor_restrict_unprivileged_userns": "1"}, want: "apparmor_parser -r"},
		"a container, /proc":        {said: "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", inside: true, want: "systempaths=unconfined"},
		"a container, seccomp":      {said: "bwrap: Creating new namespace failed: Operation not permitted", inside: true, want: "seccomp=deploy/seccomp.json"},
		"a container, AppArmor":     {said: "bwrap: Failed to make / slave: Permission denied", inside: true, want: "apparmor=unconfined"},
		"a container, Ubuntu 24.04": {said: "bwrap: setting up uid map: Permission denied", inside: true, sysctl: map[string]string{"kernel/apparmor_restrict_unprivileged_userns": "1"}, want: "on the machine, sudo install"},
		"a container, the old root": {said: "bwrap: unmount old root: Operation not permitted", inside: true, want: "seccomp=deploy/seccomp.json"},
		"something else, as it is":  {said: "bwrap: something else", want: "bwrap does not work here: bwrap: something else"},
	} {
		err := explain(tt.said, surroundings{root: tt.root, container: tt.inside, sysctl: func(path string) string { return tt.sysctl[path] }})
		if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), strings.TrimPrefix(tt.said, "bwrap: ")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a container is told to be started with is what ours is started with.
func TestTheCureInAContainerIsWhatComposeHas(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			SecurityOpt []string `yaml:"security_opt"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	options := slices.DeleteFunc(file.Services["bot"].SecurityOpt, func(o string) bool { return o == "no-new-privileges:true" })
	if want := strings.Join(options, ", "); want == "" || !strings.Contains(inContainer, ": "+want+" (") {
		t.Errorf("compose has %q, and what is told is: %s", want, inContainer)
	}
}

// A bwrap that is missing, fails, or does nothing at all is never passed over.
func TestABwrapThatDoesNotShutInIsRefused(t *testing.T) {
	newHouse(t)
	for name, tt := range map[string]struct{ script, want string }{
		"missing":             {"", "sudo apt-get install bubblewrap"},
		"fails":               {"#!/bin/sh\necho 'bwrap: Unknown option --disable-userns' >&2\nexit 1\n", "0.8 or newer"},
		"runs it outside":     {"#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n", "does not work here"},
		"does nothing at all": {"#!/bin/sh\n", "does not work here"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.script != "" {
				if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(tt.script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", dir)
			b, err := New(Spec{})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Check(t.Context(), tryRun); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, not %q", err, tt.want)
			}
		})
	}
}

// No kind is a word that means less than it says.
func TestNoneHasToBeWrittenOut(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{"", Bwrap} {
		if s, err := New(Spec{Kind: kind}); err != nil || s.String() != "bwrap, no network" {
			t.Errorf("%q: %v, %v", kind, s, err)
		}
	}
	limits := Limits{Memory: 3 * gib / 2, Processes: 64, CPU: 1.5, Disk: 64 * mib, Files: 256}
	for want, spec := range map[string]Spec{
		"gvisor, this machine's network, 1.5 GiB, 64 processes, 1.5 cores, 64 MiB disk": {Kind: GVisor, Network: Open, Limits: limits},
		"container, no network, image go:1, 8 GiB, 2048 processes, 20 GiB disk":         {Kind: Container, Image: "go:1", Limits: DefaultLimits()},
		"none: what runs is the bot's own user, 8 GiB, 2048 processes, 20 GiB disk":     {Kind: None, Limits: DefaultLimits()},
		"command: what ssh far shuts in":                                                {Kind: Command, Command: []string{"ssh", "far"}},
	} {
		if got := spec.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, kind := range []Kind{"off", "NONE", "no", "false"} {
		if s, err := New(Spec{Kind: kind}); err == nil {
			t.Errorf("%q is %v", kind, s)
		}
	}
}
