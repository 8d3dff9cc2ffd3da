//go:build !linux

package main

func firstProcess(string) int { return 1 }
