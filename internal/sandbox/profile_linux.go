package sandbox

import (
	"encoding/json"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// profile is a filter of system calls in docker's and podman's format.
type profile struct {
	Default      string        `json:"defaultAction"`
	DefaultErrno uint          `json:"defaultErrnoRet"`
	Archs        []profileArch `json:"archMap"`
	Calls        []profileCall `json:"syscalls"`
}

type profileArch struct {
	Arch string   `json:"architecture"`
	Sub  []string `json:"subArchitectures"`
}

type profileCall struct {
	Names  []string          `json:"names"`
	Action string            `json:"action"`
	Errno  *uint             `json:"errnoRet,omitempty"`
	Args   []profileArgument `json:"args,omitempty"`
}

type profileArgument struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

// engineProfile is the list of syscallFilter for a container engine, whose own filter also allows io_uring, keys
// and sockets to the hypervisor.
func engineProfile() ([]byte, error) {
	const yes, no = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"
	machine := map[string]string{"amd64": "SCMP_ARCH_X86_64", "arm64": "SCMP_ARCH_AARCH64"}[runtime.GOARCH]
	if machine == "" {
		return nil, nil // keep the engine's own
	}
	missing := uint(unix.ENOSYS)
	p := profile{
		Default: no, DefaultErrno: uint(unix.EPERM), Archs: []profileArch{{Arch: machine}},
		Calls: []profileCall{{Names: allowedSyscalls(), Action: yes}, {Names: unseen, Action: no, Errno: &missing}},
	}
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		c := conditions[name]
		for _, b := range c.without {
			p.Calls = append(p.Calls, profileCall{Names: []string{name}, Action: yes, Args: []profileArgument{{Index: uint(b.argument), Value: uint64(b.mask), Op: "SCMP_CMP_MASKED_EQ"}}})
		}
		for _, v := range c.oneOf {
			p.Calls = append(p.Calls, profileCall{Names: []string{name}, Action: yes, Args: []profileArgument{{Value: uint64(v), Op: "SCMP_CMP_EQ"}}})
		}
	}
	return json.Marshal(p)
}
