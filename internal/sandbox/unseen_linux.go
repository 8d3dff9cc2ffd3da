package sandbox

import (
	"os"
	"path/filepath"
	"slices"
)

// Unseen are the folders of a PATH with programs that are not visible in the sandbox.
func Unseen(spec Spec, path string) []string {
	if spec.Kind == Container || spec.Kind == Command || spec.Kind == None {
		return nil
	}
	v := newView()
	if err := v.system(spec.Network); err != nil {
		return nil // Check says so
	}
	for _, p := range spec.See {
		v.show(readOnly, p)
	}
	var out []string
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // it names a folder of wherever a program is started
		}
		target, err := filepath.EvalSymlinks(dir)
		if err != nil || v.shows(target) || slices.Contains(out, dir) {
			continue
		}
		if programs, err := os.ReadDir(target); err == nil && len(programs) > 0 {
			out = append(out, dir)
		}
	}
	return out
}
