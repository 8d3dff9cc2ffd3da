// Package spelling finds what a misspelt word was meant to be: a command, a flag, a
// key of a file, a variable.
package spelling

import (
	"slices"
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

// Slip is the known word that word is with one slip of a finger: a letter too many or
// missing, two that changed places, or in words of five letters and more another letter
// than the first. Empty if there is none, or if word is known.
func Slip(word string, known []string) string {
	word = strings.ToLower(word)
	if slices.Contains(known, word) {
		return ""
	}
	for _, k := range known {
		w, l := []rune(word), []rune(k)
		if len(l) < 3 || len(w) == 0 || w[0] != l[0] {
			continue
		}
		switch n := levenshtein.ComputeDistance(word, k); {
		case n == 1 && (len(w) != len(l) || len(l) > 4), n == 2 && swapped(w, l):
			return k
		}
	}
	return ""
}

// swapped reports whether two letters beside each other changed places.
func swapped(a, b []rune) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && string(a[i+2:]) == string(b[i+2:])
}
