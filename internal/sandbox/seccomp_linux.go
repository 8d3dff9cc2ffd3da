package sandbox

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The system calls that a session may make, one to a line.
//
//go:embed syscalls.txt
var syscallsText string

// newNamespaces are the flags of clone that make a namespace.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// conditional are the calls that are allowed with some arguments only.
func conditional() []seccomp.NameWithConditions {
	when := func(name string, op seccomp.Operation, value uint64) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{{Operation: op, Value: value}}}
	}
	out := []seccomp.NameWithConditions{when("clone", seccomp.BitsNotSet, newNamespaces)}
	for _, family := range []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
		out = append(out, when("socket", seccomp.Equal, family))
	}
	// As Docker: Linux, 32-bit addresses' layout, and asking which it is.
	for _, persona := range []uint64{0, 0x0008, 0x20000, 0x20008, 0xffffffff} {
		out = append(out, when("personality", seccomp.Equal, persona))
	}
	return out
}

// syscallFilter is the filter as bwrap's --seccomp takes it: instructions of classic BPF.
// What is not on the list fails with EPERM; what this program has never heard of, and
// the calls of other architectures, with ENOSYS, so that a libc takes its older way.
func syscallFilter() ([]byte, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	known := func(name string) bool { _, ok := machine.SyscallNames[name]; return ok }
	allowed := slices.DeleteFunc(allowedSyscalls(), func(name string) bool { return !known(name) })
	conditions := conditional()
	var refused []string
	for name := range machine.SyscallNames {
		// The flags of clone3 are in memory, where no filter sees them: libc takes clone.
		if !slices.Contains(allowed, name) && name != "clone3" {
			refused = append(refused, name)
		}
	}
	slices.Sort(refused)
	policy := seccomp.Policy{DefaultAction: seccomp.ActionErrno, Syscalls: []seccomp.SyscallGroup{
		{Names: allowed, NamesWithCondtions: conditions, Action: seccomp.ActionAllow},
		{Names: refused, Action: seccomp.ActionErrno},
	}}
	program, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("the list of system calls: %w", err)
	}
	program[len(program)-1] = bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.ENOSYS)}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("the list of system calls: %w", err)
	}
	var out []byte
	for _, i := range raw {
		out = binary.NativeEndian.AppendUint16(out, i.Op)
		out = append(out, i.Jt, i.Jf)
		out = binary.NativeEndian.AppendUint32(out, i.K)
	}
	return out, nil
}

func allowedSyscalls() []string {
	var out []string
	for line := range strings.Lines(syscallsText) {
		line, _, _ = strings.Cut(line, "#")
		out = append(out, strings.Fields(line)...)
	}
	return out
}
