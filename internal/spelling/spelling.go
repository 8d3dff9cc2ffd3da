// Package spelling finds what a misspelt word was meant to be: a command, a flag, a
// key of a file, a variable.
package spelling

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest is the known word that differs least from word, and no more than a slip
// does: by two letters, by a quarter of a long word, by one of a short one. Capitals
// do not count. Empty if there is none; of two that are as near, the first.
func Nearest(word string, known []string) string {
	best, letters := "", len([]rune(word))
	least := max(2, letters/4) + 1
	if letters < 4 {
		least = 2
	}
	for _, k := range known {
		if n := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k)); n < least {
			best, least = k, n
		}
	}
	return best
}
