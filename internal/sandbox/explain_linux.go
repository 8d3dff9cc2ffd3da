package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// surroundings determine whether this user may make namespaces.
type surroundings struct {
	root      bool
	container bool
	// sysctl is a kernel parameter by its path below /proc/sys; empty if there is none.
	sysctl func(path string) string
}

func here() surroundings {
	return surroundings{
		root:      os.Geteuid() == 0,
		container: exists("/.dockerenv") || exists("/run/.containerenv") || os.Getenv("container") != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "",
		sysctl: func(path string) string {
			b, err := os.ReadFile("/proc/sys/" + path)
			if err != nil {
				return ""
			}
			return strings.TrimSpace(string(b))
		},
	}
}

// inContainer is how to start a container so that bwrap works in it: the lines of docker-compose.yml.
const inContainer = "start this container with all of these security options, as docker-compose.yml does: seccomp=deploy/seccomp.json, apparmor=unconfined, systempaths=unconfined (docker run: --security-opt before each; Kubernetes: that file as a Localhost seccompProfile, appArmorProfile Unconfined, procMount Unmasked with hostUsers: false). " +
	"Without them there is only sandbox: none, where threads are not kept from each other and from the bot"

// loadProfile allows bwrap to make namespaces where AppArmor denies them to programs without a profile.
const loadProfile = "sudo install -m 644 deploy/apparmor/deckhand-bwrap /etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/deckhand-bwrap"

// explain says why bwrap does not work, by its message and the surroundings, with the command that cures it. An
// unknown message is passed on.
func explain(said string, s surroundings) error {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	namespaces := has("namespace", "uid map", "setting up", "clone", "loopback", "RTM_NEWADDR")
	restricted := s.sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1"
	switch {
	case has("Unknown option"):
		return fmt.Errorf("bwrap is too old (%s): bubblewrap 0.8 or newer is needed, which Debian 12 and Ubuntu 24.04 have", said)
	case namespaces && s.sysctl("user/max_user_namespaces") == "0":
		return fmt.Errorf("this machine allows no user namespaces (user.max_user_namespaces is 0): sudo sysctl -w user.max_user_namespaces=15000, and write that line to /etc/sysctl.d/60-deckhand.conf for the next start (%s)", said)
	case namespaces && !s.root && s.sysctl("kernel/unprivileged_userns_clone") == "0":
		return fmt.Errorf("this machine allows user namespaces to root alone: sudo sysctl -w kernel.unprivileged_userns_clone=1, and write that line to /etc/sysctl.d/60-deckhand.conf for the next start (%s)", said)
	case namespaces && s.container && restricted:
		return fmt.Errorf("this container may make no namespaces, by its own profiles or by its machine's AppArmor, as on Ubuntu 24.04: on the machine, %s; and %s (%s)", loadProfile, inContainer, said)
	case namespaces && restricted:
		return fmt.Errorf("AppArmor keeps programs without a profile from user namespaces, as on Ubuntu 24.04: %s (%s)", loadProfile, said)
	case s.container && has("proc on"):
		return fmt.Errorf("this container's /proc is masked, so that no new one can be mounted: %s (%s)", inContainer, said)
	case s.container && (namespaces || has("Operation not permitted", "Permission denied")):
		return fmt.Errorf("this container may make no namespaces or mounts, by its seccomp or AppArmor profile: %s (%s)", inContainer, said)
	}
	return fmt.Errorf("bwrap does not work here: %s", said)
}
