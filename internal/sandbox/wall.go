package sandbox

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// wallTrial prints a sandbox's properties as seen inside, as lines of name and value. An image may have only a
// shell.
const wallTrial = `read -r version </proc/version && echo "version $version"
while read -r name value; do case $name in CapEff:|CapBnd:|NoNewPrivs:|Seccomp:) echo "$name $value";; esac; done </proc/self/status
while read -r ids; do echo "ids $ids"; done </proc/self/uid_map
if command -v unshare >/dev/null; then if unshare --user true 2>/dev/null; then echo "more yes"; else echo "more no"; fi; fi
read -r word && echo "$word"`

// Wall describes for people what separates a session from this machine, as seen by a shell inside: "kernel Linux
// 6.12 (this machine's), a user namespace of its own, no capabilities, …". It is empty for [Command] and [None],
// which are unknown.
func (s Spec) Wall(ctx context.Context, run Run) (string, error) {
	if s.Kind == Command || s.Kind == None {
		return "", nil
	}
	sandbox, err := New(s)
	if err != nil {
		return "", err
	}
	out, err := trial(ctx, run, sandbox, false, false, wallTrial)
	if err != nil {
		return "", err
	}
	told := readWall(out, kernelRelease())
	switch {
	case s.Kind == Container:
		told = append(told, "limits kept by the engine")
	case ownGroups() != nil:
		told = append(told, "limits kept by the kernel (cgroup)")
	default:
		told = append(told, "limits kept by a watcher, since this process has no cgroup (version 2) of its own")
	}
	return strings.Join(told, ", "), nil
}

// readWall turns wallTrial's output into sentences. For a kernel in user space it says only that: the rest would be
// that kernel's own claims.
func readWall(printed, release string) (told []string) {
	seen := map[string]string{}
	for line := range strings.Lines(printed) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		seen[strings.TrimSuffix(name, ":")] += strings.Join(strings.Fields(value), " ") + " "
	}
	version := strings.Fields(seen["version"])
	switch {
	case len(version) < 3:
		told = append(told, "kernel not told")
	case version[2] == release:
		told = append(told, "kernel Linux "+release+" (this machine's)")
	default:
		return append(told, "kernel "+version[0]+" "+version[2]+" (the sandbox's own)")
	}
	value := func(name string) string { return strings.TrimSpace(seen[name]) }
	say := func(known, holds bool, yes, no string) {
		switch {
		case !known:
		case holds:
			told = append(told, yes)
		default:
			told = append(told, no)
		}
	}
	say(value("ids") != "", value("ids") != "0 0 4294967295", "a user namespace of its own", "the user ids of this machine")
	none := func(mask string) bool { n, err := strconv.ParseUint(mask, 16, 64); return err == nil && n == 0 }
	say(value("CapEff") != "", none(value("CapEff")) && none(value("CapBnd")), "no capabilities and none to gain", "capabilities (CapEff "+value("CapEff")+", CapBnd "+value("CapBnd")+")")
	say(value("NoNewPrivs") != "", value("NoNewPrivs") == "1", "no new privileges", "setuid programs gain privileges")
	say(value("Seccomp") != "", value("Seccomp") == "2", "system calls filtered (seccomp)", "no filter of system calls")
	say(slices.Contains([]string{"yes", "no"}, value("more")), value("more") == "no", "no further namespaces", "further namespaces can be made")
	return told
}
