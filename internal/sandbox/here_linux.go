package sandbox

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Here describes this machine for people: kernel, user namespaces, filters of system calls, who runs bwrap.
func Here() string {
	h := here()
	told := []string{"Linux " + cmp.Or(kernelRelease(), "of an unknown version")}
	if h.container {
		told[0] += ", in a container"
	}
	switch most := h.sysctl("user/max_user_namespaces"); most {
	case "":
	case "0":
		told = append(told, "no user namespaces")
	default:
		told = append(told, "user namespaces: "+most+" at most")
	}
	switch {
	case h.sysctl("kernel/unprivileged_userns_clone") == "0":
		told = append(told, "for root alone")
	case h.sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		told = append(told, "for root and programs with an AppArmor profile")
	}
	if strings.Contains(h.sysctl("kernel/seccomp/actions_avail"), "errno") {
		told = append(told, "filters of system calls (seccomp)")
	} else {
		told = append(told, "no filters of system calls")
	}
	path, err := exec.LookPath("bwrap")
	switch info, statErr := os.Stat(path); {
	case err != nil || statErr != nil:
		told = append(told, "no bwrap")
	case info.Mode()&fs.ModeSetuid != 0:
		told = append(told, "bwrap is a setuid program")
	case h.root:
		told = append(told, "bwrap is run as root")
	default:
		told = append(told, "bwrap is run as an ordinary user")
	}
	if findGroup("/proc/self") == "" {
		told = append(told, "no cgroups of version 2")
	}
	return strings.Join(told, ", ")
}
