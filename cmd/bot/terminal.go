package main

import (
	"io"
	"os"
)

// isTerminal reports whether somebody would see the bytes.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

// marks are the line prefixes of a check.
type marks struct{ ok, warning, failed, skipped string }

// marksFor are coloured on a terminal, unless NO_COLOR is set (no-color.org).
func marksFor(out io.Writer) marks {
	m := marks{ok: "✓", warning: "!", failed: "✗", skipped: "–"}
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(out) {
		return m
	}
	paint := func(colour, mark string) string { return "\x1b[" + colour + "m" + mark + "\x1b[0m" }
	return marks{ok: paint("32", m.ok), warning: paint("33;1", m.warning), failed: paint("31;1", m.failed), skipped: paint("2", m.skipped)}
}
