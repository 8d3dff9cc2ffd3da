package pagetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"deckhand/internal/needtest"
)

// axePath is where the page's packages have axe-core, from the module's root.
const axePath = "internal/playground/page/node_modules/axe-core/axe.min.js"

// axe is the source of axe-core, as the page's lock file has it; "" where the page's packages
// are not installed.
var axe = sync.OnceValues(func() (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return "", errors.New("no go.mod above the test's folder")
		}
		root = filepath.Dir(root)
	}
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(axePath)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(source), err
})

// withAxe loads axe-core into the page; it skips the test where there is none, or fails it
// where tools are required.
func (w *Tab) withAxe() bool {
	w.t.Helper()
	if Value[bool](w, `typeof axe === 'object'`) {
		return true
	}
	source, err := axe()
	if err != nil {
		w.t.Fatalf("read axe-core: %v", err)
	}
	if source == "" {
		const reason = "no axe-core in internal/playground/page/node_modules: run .ci/page packages"
		if needtest.Required() {
			w.t.Fatal(reason)
		}
		w.t.Log(reason)
		return false
	}
	return Value[bool](w, source+"\n;typeof axe === 'object'")
}

// Accessible holds that axe-core finds nothing serious or critical in what the page shows now,
// and that its colours have enough contrast in light and in dark. The tab is left in the
// colours that it was in. Where the page's packages are not installed it says so and holds
// nothing.
func (w *Tab) Accessible(what string) {
	w.t.Helper()
	if !w.withAxe() {
		return
	}
	before := "light"
	if Value[bool](w, `document.documentElement.dataset.theme === 'dark'`) {
		before = "dark"
	}
	other := map[string]string{"light": "dark", "dark": "light"}[before]
	w.violations(what+" in "+before, `{resultTypes: ['violations']}`)
	w.Prefer(other)
	w.See(`document.documentElement.dataset.theme === '` + other + `'`)
	w.violations(what+" in "+other, `{resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block']}`)
	w.Prefer(before)
	w.See(`document.documentElement.dataset.theme === '` + before + `'`)
}

// violations fails the test with what axe-core finds by these options.
func (w *Tab) violations(what, options string) {
	w.t.Helper()
	const found = `window.axeFound`
	w.See(`(delete ` + found + `, axe.run(document, ` + options + `).then(
		(all) => { ` + found + ` = all.violations
			.filter((rule) => rule.impact === 'serious' || rule.impact === 'critical')
			.flatMap((rule) => rule.nodes.map((node) => rule.id + ': ' + node.html.slice(0, 160) + ' — ' + [...node.any, ...node.all, ...node.none].map((check) => check.message).join('; '))) },
		(error) => { ` + found + ` = ['axe-core failed: ' + error] }), true)`)
	w.See(found + ` !== undefined`)
	if list := Value[[]string](w, found); len(list) > 0 {
		w.t.Errorf("%s: %s", what, fmt.Sprintf("%d things that some people cannot use:\n%s", len(list), strings.Join(list, "\n")))
	}
}
