//go:build !linux

package sandbox

// engineProfile is none: the engine's own filter applies.
func engineProfile() ([]byte, error) { return nil, nil }
