package settings

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"deckhand/internal/sandbox"
)

// limitsYAML are a sandbox's limits as written: sizes and numbers; none or 0 disables one, and a missing one is the
// team's or the default.
type limitsYAML struct {
	Memory    string `yaml:"memory"`
	Disk      string `yaml:"disk"`
	Processes string `yaml:"processes"`
	Files     string `yaml:"files"`
	CPU       string `yaml:"cpu"`
}

func (l limitsYAML) over(team limitsYAML) limitsYAML {
	return limitsYAML{
		Memory: cmp.Or(l.Memory, team.Memory), Disk: cmp.Or(l.Disk, team.Disk), Processes: cmp.Or(l.Processes, team.Processes),
		Files: cmp.Or(l.Files, team.Files), CPU: cmp.Or(l.CPU, team.CPU),
	}
}

// limits are the effective ones for a kind, after validation.
func (l limitsYAML) limits(kind sandbox.Kind) sandbox.Limits {
	if kind == sandbox.Command {
		return sandbox.Limits{}
	}
	d := sandbox.DefaultLimits()
	// Mistakes were already reported.
	or := func(text string, otherwise int64) int64 {
		if text == "" {
			return otherwise
		}
		n, _ := size(text)
		return n
	}
	cpu, _ := cores(l.CPU)
	out := sandbox.Limits{
		Memory: or(l.Memory, d.Memory), Disk: or(l.Disk, d.Disk),
		Processes: int(or(l.Processes, int64(d.Processes))), Files: int(or(l.Files, int64(d.Files))), CPU: cpu,
	}
	if kind == sandbox.None {
		out.Files, out.CPU = 0, 0 // the team's, for sandboxes: none cannot enforce them
	}
	return out
}

const noLimit = "none"

var sizes = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?(|[KMGT]i?B?)$`)

// size reads a number of bytes: 4GiB, 512MiB; a unit means powers of 1024.
func size(text string) (int64, error) {
	if text == noLimit {
		return 0, nil
	}
	m := sizes.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size; write one such as 4GiB or 512MiB, or none", text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if m[2] != "" {
		n *= map[byte]float64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}[m[2][0]]
	}
	if err != nil || n > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is more than there is; write a size such as 4GiB, or none", text)
	}
	return int64(n), nil
}

// count parses a whole number.
func count(text string) (int64, error) {
	if text == noLimit {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a number; write one such as 2048, or none", text)
	}
	return n, nil
}

// cores parses a number of cores: 2, 0.5.
func cores(text string) (float64, error) {
	if text == "" || text == noLimit {
		return 0, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 || n > 1e6 || math.IsNaN(n) || (n > 0 && n < 0.1) {
		return 0, fmt.Errorf("%q is not a number of cores; write one such as 2 or 0.5, or none", text)
	}
	return n, nil
}

// limits checks the limits at a path for a kind of sandbox.
func (v *validation) limits(at string, l limitsYAML, kind sandbox.Kind) {
	if kind == sandbox.Command && l != (limitsYAML{}) {
		v.add(at, "what a launcher starts is limited by the launcher; leave limits out")
		return
	}
	for _, c := range []struct {
		key, text string
		read      func(string) (int64, error)
		least     int64
		written   string
	}{
		{"memory", l.Memory, size, sandbox.LeastMemory, sandbox.Size(sandbox.LeastMemory)},
		{"disk", l.Disk, size, sandbox.LeastDisk, sandbox.Size(sandbox.LeastDisk)},
		{"processes", l.Processes, count, sandbox.LeastProcesses, strconv.Itoa(sandbox.LeastProcesses)},
		{"files", l.Files, count, sandbox.LeastFiles, strconv.Itoa(sandbox.LeastFiles)},
	} {
		if c.text == "" {
			continue
		}
		n, err := c.read(c.text)
		switch {
		case err != nil:
			v.add(at+"."+c.key, "%v", err)
		case n > 0 && n < c.least:
			v.add(at+"."+c.key, "%s is less than Claude Code itself takes; write %s or more, or none", c.text, c.written)
		}
	}
	cpu, err := cores(l.CPU)
	if err != nil {
		v.add(at+".cpu", "%v", err)
	}
	if kind == sandbox.None && (cpu > 0 || l.Files != "" && l.Files != noLimit && l.Files != "0") {
		v.add(at, "cpu and files are limited by a sandbox, and kind: none is none; leave them out")
	}
}
