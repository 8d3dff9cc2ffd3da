//go:build linux

package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

// deaf ignores every signal that can be ignored.
func deaf() { signal.Ignore() }

func hogMemory() error {
	var held [][]byte
	for range 1 << 10 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		held = append(held, b)
	}
	fmt.Println(len(held), "MiB")
	return nil
}

func hogFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range 20_000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

func hogDisk(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	b := make([]byte, 1<<20)
	for range 256 {
		if _, err := f.Write(b); err != nil {
			_ = os.Remove(file)
			return err
		}
	}
	return os.Remove(file)
}

func hogDescriptors() error {
	var held []*os.File
	for range 200_000 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return fmt.Errorf("%d open files: %w", len(held), err)
		}
		held = append(held, f)
	}
	return nil
}
