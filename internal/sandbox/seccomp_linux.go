package sandbox

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The system calls that a session may make.
//
//go:embed syscalls.txt
var syscallsText string

// What the filter answers.
const (
	allow  = unix.SECCOMP_RET_ALLOW
	denied = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// Where the kernel's struct seccomp_data has what a filter looks at.
const (
	numberAt   = 0
	archAt     = 4
	argumentAt = 16 // the first of six, of 64 bits each
)

// newNamespaces are the flags of clone that make a namespace.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// conditions are the calls that are allowed by their first argument, of which the kernel
// takes the lower 32 bits of each: either none of some bits is set, or it is one of some
// values.
var conditions = map[string]struct {
	without uint32
	oneOf   []uint32
}{
	"clone":  {without: newNamespaces},
	"socket": {oneOf: []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}},
	// As Docker: Linux, its older layouts of memory for 32 bits, and the question which.
	"personality": {oneOf: []uint32{0, 0x0008, 0x20000, 0x20008, 0xffffffff}},
}

// syscallFilter is the filter as bwrap's --seccomp takes it: instructions of classic BPF.
// What is not on the list fails with EPERM; what this program has never heard of, and
// the calls of other architectures, with ENOSYS, so that a libc takes its older way.
//
// It is a table of the numbers, in ascending order, behind the few calls whose argument
// counts. (The library's own compiler is not used: after a condition that does not hold
// it goes on to compare the argument as if it were the call's number.)
func syscallFilter() ([]byte, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("no list of system calls is known for this machine: %w", err)
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(machine.ID), SkipTrue: 1},
		bpf.RetConstant{Val: absent},
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
	}
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		block := condition(name)
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(machine.SyscallNames[name]), SkipTrue: uint8(len(block))})
		program = append(program, block...)
	}
	program = append(program, table(machine.SyscallNames)...)
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

// condition answers a call by its first argument. All its ways end in an answer.
func condition(name string) []bpf.Instruction {
	lower := uint32(argumentAt)
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // big-endian
		lower += 4
	}
	out := []bpf.Instruction{bpf.LoadAbsolute{Off: lower, Size: 4}}
	c := conditions[name]
	if c.oneOf == nil {
		return append(out, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: c.without, SkipTrue: 1}, bpf.RetConstant{Val: allow}, bpf.RetConstant{Val: denied})
	}
	for _, v := range c.oneOf {
		out = append(out, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, bpf.RetConstant{Val: allow})
	}
	return append(out, bpf.RetConstant{Val: denied})
}

// table answers by the call's number: for each run of numbers with one answer, "up to
// here, this". What is higher than all of them, such as the calls of x32, is absent.
func table(numbers map[string]int) []bpf.Instruction {
	answers := map[int]uint32{}
	last := 0
	for name, n := range numbers {
		answers[n] = denied
		last = max(last, n)
		// The flags of clone3 are in memory, where no filter sees them: libc takes clone.
		if name == "clone3" {
			answers[n] = absent
		}
	}
	for _, name := range allowedSyscalls() {
		if n, ok := numbers[name]; ok {
			answers[n] = allow
		}
	}
	answer := func(n int) uint32 {
		if a, ok := answers[n]; ok {
			return a
		}
		return absent
	}
	var out []bpf.Instruction
	for n := 0; n <= last; n++ {
		if n == last || answer(n) != answer(n+1) {
			out = append(out, bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: uint32(n), SkipTrue: 1}, bpf.RetConstant{Val: answer(n)})
		}
	}
	return append(out, bpf.RetConstant{Val: absent})
}

func allowedSyscalls() []string {
	var out []string
	for line := range strings.Lines(syscallsText) {
		line, _, _ = strings.Cut(line, "#")
		out = append(out, strings.Fields(line)...)
	}
	return out
}
