//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// prey holds its environment's PREY in memory and in a file without a name, says where,
// and then every signal that it gets, until its standard input ends.
func prey([]string) error {
	secret := []byte(os.Getenv("PREY"))
	f, err := os.CreateTemp("", "prey-")
	if err != nil {
		return err
	}
	if err := errors.Join(os.Remove(f.Name())); err != nil {
		return err
	}
	if _, err := f.Write(secret); err != nil {
		return err
	}
	got := make(chan os.Signal, 16)
	signal.Notify(got)
	signal.Reset(unix.SIGURG) // Go's own
	go func() {
		for s := range got {
			if s != unix.SIGURG && s != unix.SIGCHLD {
				fmt.Println("signal", s)
			}
		}
	}()
	fmt.Println(uintptr(unsafe.Pointer(&secret[0])), len(secret), f.Fd())
	_, err = io.Copy(io.Discard, os.Stdin)
	_ = secret[0]
	return err
}

// numbers are arguments as numbers: the prey's process, and where its secret is.
func numbers(args []string, n int) ([]int, error) {
	if len(args) != n {
		return nil, fmt.Errorf("%d arguments are needed", n)
	}
	out := make([]int, n)
	for i, a := range args {
		v, err := strconv.Atoi(a)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// vmRead PID ADDRESS LENGTH reads another process's memory.
func vmRead(args []string) error {
	n, err := numbers(args, 3)
	if err != nil {
		return err
	}
	text := make([]byte, n[2])
	local := []unix.Iovec{{Base: &text[0], Len: uint64(len(text))}}
	if _, err := unix.ProcessVMReadv(n[0], local, []unix.RemoteIovec{{Base: uintptr(n[1]), Len: len(text)}}, 0); err != nil {
		return err
	}
	fmt.Printf("%s\n", text)
	return nil
}

// ptrace PID ADDRESS LENGTH attaches to a process and reads its memory.
func ptrace(args []string) error {
	n, err := numbers(args, 3)
	if err != nil {
		return err
	}
	if err := unix.PtraceAttach(n[0]); err != nil {
		return err
	}
	fmt.Println("BREACH: attached")
	text := make([]byte, n[2])
	if _, err := unix.Wait4(n[0], nil, 0, nil); err != nil {
		return err
	}
	_, err = unix.PtracePeekData(n[0], uintptr(n[1]), text)
	fmt.Printf("%s\n", text)
	return errors.Join(err, unix.PtraceDetach(n[0]))
}

// pidfd PID FD takes a file out of another process.
func pidfd(args []string) error {
	n, err := numbers(args, 2)
	if err != nil {
		return err
	}
	p, err := unix.PidfdOpen(n[0], 0)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdGetfd(p, n[1], 0)
	if err != nil {
		return err
	}
	text := make([]byte, 200)
	got, err := unix.Pread(fd, text, 0)
	fmt.Printf("BREACH: %s\n", text[:max(got, 0)])
	return err
}
