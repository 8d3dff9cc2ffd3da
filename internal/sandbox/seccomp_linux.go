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

// The filter's answers.
const (
	allow  = unix.SECCOMP_RET_ALLOW
	denied = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// Offsets in the kernel's struct seccomp_data.
const (
	numberAt   = 0
	archAt     = 4
	argumentAt = 16 // the first of six, each of 64 bits
)

// newNamespaces are clone's flags that make a namespace.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// privileged are the mode bits with which others run a file as its owner, who outside is the bot, or as its group.
const privileged = unix.S_ISUID | unix.S_ISGID

// creating are the flags of open that create a file; otherwise its mode is ignored.
const creating = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// bits are bits of an argument.
type bits struct {
	argument, mask uint32
}

// conditions are calls allowed by their arguments' lower 32 bits: the first argument is one of some values, or one
// of these groups of bits is clear.
var conditions = map[string]struct {
	oneOf   []uint32
	without []bits
}{
	"clone":  {without: []bits{{0, newNamespaces}}},
	"socket": {oneOf: []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}},
	// Like Docker: Linux, its older 32-bit memory layouts, and the query.
	"personality": {oneOf: []uint32{0, 0x0008, 0x20000, 0x20008, 0xffffffff}},
	// Everything that sets a file's mode. (mkdir ignores these bits.)
	"chmod":     {without: []bits{{1, privileged}}},
	"fchmod":    {without: []bits{{1, privileged}}},
	"fchmodat":  {without: []bits{{2, privileged}}},
	"fchmodat2": {without: []bits{{2, privileged}}},
	"creat":     {without: []bits{{1, privileged}}},
	"mknod":     {without: []bits{{1, privileged}}},
	"mknodat":   {without: []bits{{2, privileged}}},
	"open":      {without: []bits{{1, creating}, {2, privileged}}},
	"openat":    {without: []bits{{2, creating}, {3, privileged}}},
}

// unseen are calls whose arguments are in memory, invisible to filters. A libc falls back to the older call when it
// gets ENOSYS.
var unseen = []string{"clone3", "openat2"}

// syscallFilter is the filter for bwrap's --seccomp: classic BPF instructions. Calls that are not on the list fail
// with EPERM; those unknown to this program, and of other architectures, with ENOSYS, so that a libc falls back.
func syscallFilter() ([]byte, error) {
	listed := allowedSyscalls()
	program, err := filter(slices.Sorted(maps.Keys(conditions)), func(name string) uint32 {
		switch {
		case slices.Contains(unseen, name):
			return absent
		case slices.Contains(listed, name):
			return allow
		}
		return denied
	})
	var out []byte
	for _, i := range program {
		out = binary.NativeEndian.AppendUint16(out, i.Code)
		out = append(out, i.Jt, i.Jf)
		out = binary.NativeEndian.AppendUint32(out, i.K)
	}
	return out, err
}

// modeFilter only prevents programs from making privileged files. It denies io_uring, whose calls bypass filters.
func modeFilter() ([]unix.SockFilter, error) {
	setMode := slices.DeleteFunc(slices.Sorted(maps.Keys(conditions)), func(name string) bool {
		return !slices.ContainsFunc(conditions[name].without, func(b bits) bool { return b.mask == privileged })
	})
	return filter(setMode, func(name string) uint32 {
		if name == "openat2" || name == "io_uring_setup" {
			return absent
		}
		return allow
	})
}

// filter is a sorted table of the calls' numbers, behind the few whose arguments count. (The library's own compiler
// is wrong: after an unmet condition it compares the argument as if it were the call's number.)
func filter(conditional []string, answer func(name string) uint32) ([]unix.SockFilter, error) {
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
	for _, name := range conditional {
		number, ok := machine.SyscallNames[name]
		if !ok {
			continue
		}
		block := condition(name)
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: uint8(len(block))})
		program = append(program, block...)
	}
	program = append(program, table(machine.SyscallNames, answer)...)
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("the list of system calls: %w", err)
	}
	out := make([]unix.SockFilter, len(raw))
	for n, i := range raw {
		out[n] = unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K}
	}
	return out, nil
}

// condition decides a call by its arguments. Every path ends in an answer.
func condition(name string) (out []bpf.Instruction) {
	argument := func(n uint32) bpf.Instruction {
		lower := argumentAt + 8*n
		if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // big-endian
			lower += 4
		}
		return bpf.LoadAbsolute{Off: lower, Size: 4}
	}
	c := conditions[name]
	if c.oneOf != nil {
		out = append(out, argument(0))
	}
	for _, v := range c.oneOf {
		out = append(out, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, bpf.RetConstant{Val: allow})
	}
	for _, b := range c.without {
		out = append(out, argument(b.argument), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: b.mask, SkipTrue: 1}, bpf.RetConstant{Val: allow})
	}
	return append(out, bpf.RetConstant{Val: denied})
}

// table decides by the call's number: each run of numbers with one answer is "up to here, this". Higher numbers,
// such as the calls of x32, are absent.
func table(numbers map[string]int, answerTo func(name string) uint32) []bpf.Instruction {
	answers := map[int]uint32{}
	last := 0
	for name, n := range numbers {
		answers[n] = answerTo(name)
		last = max(last, n)
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
