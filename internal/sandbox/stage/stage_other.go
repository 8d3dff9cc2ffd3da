//go:build !linux

package stage

import "os"

// outside are the stages that begin where the bot runs, by kind.
var outside = map[string]Stage{"command": For(becomeLauncher)}

// Self is this program.
func Self() (string, error) { return os.Executable() }
