// Package sandbox shuts in what runs for a session: a command in, a wrapped command out.
package sandbox
