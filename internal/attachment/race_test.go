//go:build race

package attachment

func init() { raced = true }
