package forges

import (
	"encoding/json"
	"testing"
)

// TestWhatRanIsTold: git's own work is not, and what git starts is.
func TestWhatRanIsTold(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"git status": false, "git add . && git commit -m 'fix(api): a typo'": false, "git push": false, "git push origin HEAD; git log -3": false,
		"npm test": true, "git add . && npm test": true, "git bisect run make": true, "git rebase --exec make main": true, "git -c alias.x=!make x": true,
		"git log $(make)": true, "git diff <(make)": true, "git submodule foreach make": true, "gitk": true,
	} {
		input, _ := json.Marshal(map[string]string{"command": command}) // strings alone
		if ran, told := RanOf(input, false); told != want || ran.Command != command {
			t.Errorf("%s: %v, %+v", command, told, ran)
		}
	}
}
