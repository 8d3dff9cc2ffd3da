//go:build !linux

package sandbox

import "os"

func thisProgram() (string, error) { return os.Executable() }

// stageOf is how the kind's outer stage begins, or nil.
func stageOf(kind Kind) stage {
	if kind == Command {
		return stageFor(becomeLauncher)
	}
	return nil
}
