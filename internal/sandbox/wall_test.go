package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a wall lacks is said, and what was not seen is not.
func TestReadWall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ printed, want string }{
		"bwrap": {
			"version Linux version 6.12.1 (x)\nCapEff: 0000000000000000\nCapBnd: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\nids 1000 1000 1\nmore no\n",
			"kernel Linux 6.12.1 (this machine's), a user namespace of its own, no capabilities and none to gain, no new privileges, system calls filtered (seccomp), no further namespaces",
		},
		"a weak one": {
			"version Linux version 6.12.1 (x)\nCapEff: 00000000a80425fb\nCapBnd: 00000000a80425fb\nNoNewPrivs: 0\nSeccomp: 0\nids          0          0 4294967295\nmore yes\n",
			"kernel Linux 6.12.1 (this machine's), the user ids of this machine, capabilities (CapEff 00000000a80425fb, CapBnd 00000000a80425fb), setuid programs gain privileges, no filter of system calls, further namespaces can be made",
		},
		"some capabilities to gain": {"version Linux version 6.12.1 (x)\nCapEff: 0\nCapBnd: 1\n", "kernel Linux 6.12.1 (this machine's), capabilities (CapEff 0, CapBnd 1)"},
		"another kernel":            {"version Linux version 4.4.0 #1\nSeccomp: 0\n", "kernel Linux 4.4.0 (the sandbox's own)"},
		"nothing":                   {"", "kernel not told"},
	} {
		if diff := cmp.Diff(tt.want, strings.Join(readWall(tt.printed, "6.12.1"), ", ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
