//go:build !linux

package main

// runAsInit is for containers, which are Linux.
func runAsInit(string, []string) (int, error) { return 1, errUsage }
