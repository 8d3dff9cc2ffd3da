//go:build !linux

package main

func (c *chaos) ownDisk(*chaosReplica) {}

func (r *chaosReplica) fillDisk() (free func()) { return func() {} }
