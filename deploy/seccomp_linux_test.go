package deploy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write seccomp.json anew")

// bwrapCalls are what bubblewrap calls to make a sandbox and Docker's default profile
// keeps from containers without the capability SYS_ADMIN. No process of the bot's
// container has any: the kernel lets them do all of this in a user namespace of their own
// alone. None can be left out.
func bwrapCalls() []*seccomp.Syscall {
	allow := func(comment string, args []specs.LinuxSeccompArg, names ...string) *seccomp.Syscall {
		return &seccomp.Syscall{
			LinuxSyscall: specs.LinuxSyscall{Names: names, Action: specs.ActAllow, Args: args},
			Comment:      "bubblewrap: " + comment,
		}
	}
	return []*seccomp.Syscall{
		allow("namespaces, and none without a user namespace of their own", []specs.LinuxSeccompArg{
			{Index: 0, Value: unix.CLONE_NEWUSER, ValueTwo: unix.CLONE_NEWUSER, Op: specs.OpMaskedEqual},
		}, "clone"),
		allow("a last user namespace, after which there are no more", []specs.LinuxSeccompArg{
			{Index: 0, Value: unix.CLONE_NEWUSER, Op: specs.OpEqualTo},
		}, "unshare"),
		allow("the old root is let go of", []specs.LinuxSeccompArg{
			{Index: 1, Value: unix.MNT_DETACH, Op: specs.OpEqualTo},
		}, "umount2"),
		allow("what a session sees", nil, "mount", "pivot_root"),
		allow("the name of its machine", nil, "sethostname"),
	}
}

// The profile of the bot's container is Docker's default and what bubblewrap needs, and
// nothing else. `go test ./deploy -update` writes it after a new version of the default.
func TestSeccompProfileIsDockersAndBubblewraps(t *testing.T) {
	t.Parallel()
	profile := seccomp.DefaultProfile()
	profile.Syscalls = append(profile.Syscalls, bwrapCalls()...)
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(profile); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("seccomp.json", want.Bytes(), 0o644); err != nil { //nolint:gosec // Docker's client reads it, as whoever starts it
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want.String(), string(read(t, "seccomp.json"))); diff != "" {
		t.Errorf("seccomp.json (-want +got):\n%s", diff)
	}
}
