// Package hostname recognises names of hosts that every program reads alike.
package hostname

import "strings"

// Plain reports whether a lower-case host is labels of ASCII letters, digits, hyphens and underscores, without a final
// dot.
func Plain(h string) bool {
	if h == "" || len(h) > 253 {
		return false
	}
	for label := range strings.SplitSeq(h, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// Numeric reports whether browsers and some programs read a host as a numeric address.
func Numeric(h string) bool {
	last := h[strings.LastIndexByte(h, '.')+1:]
	return last != "" && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"))
}
