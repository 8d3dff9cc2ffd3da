package policy

import (
	"encoding/json"
	"fmt"
	"testing"
)

// Only what can be read as a push, and so was decided as one, opens the way to the forge.
func TestPushes(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][2]bool{
		"git push":                                           {true, false},
		"git push origin HEAD:deckhand/x":                    {true, false},
		"/usr/bin/git --no-pager push -u origin x":           {true, false},
		"cd sub && go test ./... && git push origin x":       {true, false},
		"timeout 60 git push origin x":                       {true, false},
		"for i in 1 2; do git push origin x; done":           {true, false},
		"git push --force origin x":                          {true, true},
		"git push -f origin x":                               {true, true},
		"git push -uf origin x":                              {true, true},
		"git push --force-with-lease origin x":               {true, true},
		"git push --force-with-lease=x:abc origin x":         {true, true},
		"git push origin +x":                                 {true, true},
		"git push origin x; git push --force origin y":       {true, true},
		"git push --follow-tags origin x":                    {true, false},
		"git push -oforce origin x":                          {true, true},
		"git pull origin x":                                  {false, false},
		"git stash push":                                     {false, false},
		"git -c alias.push=x push":                           {false, false},
		"git -C /elsewhere push":                             {false, false},
		"git $SUB":                                           {false, false},
		"echo git push":                                      {false, false},
		"echo 'git push' > p.sh":                             {false, false},
		"sh p.sh # git push":                                 {false, false},
		"npm test":                                           {false, false},
		"cat <<EOF\ngit push\nEOF":                           {false, false},
		"git push origin x \\":                               {false, false},
		"pushd x; git status; popd":                          {false, false},
		"GIT_DIR=/x git log && git add push && git status .": {false, false},
	} {
		input, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		push, force := Pushes(Call{Tool: "Bash", Input: input, Workspace: t.TempDir()})
		if got := [2]bool{push, force}; got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
	if push, _ := Pushes(Call{Tool: "Read", Input: json.RawMessage(`{"file_path":"git push"}`)}); push {
		t.Error("a file is read")
	}
}

// A push is looked at before it is asked only where its words say all that it does.
func TestPlainPush(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"git push":                           "{[] false}",
		"git push origin":                    "{[] false}",
		"git push -u origin HEAD:deckhand/x": "{[{HEAD deckhand/x}] false}",
		"git push origin deckhand/7 HEAD:refs/heads/d/y": "{[{deckhand/7 } {HEAD refs/heads/d/y}] false}",
		"git push -f origin x":                           "{[{x }] true}",
		"git push --force-with-lease=x:ab origin +x:y":   "{[{x y}] true}",
		"git push 2>&1":                                  "{[] false}",
		"git commit -m x && git push":                    "",
		"git push | tail":                                "",
		"git push & git commit -m x":                     "",
		"cd sub && git push":                             "",
		"timeout 9 git push":                             "",
		"GIT_DIR=/x git push":                            "",
		"git push origin $X":                             "",
		"git push origin `id`":                           "",
		"git push upstream x":                            "",
		"git push https://forge.example/x y":             "",
		"git push --all":                                 "",
		"git push --mirror origin":                       "",
		"git push --tags":                                "",
		"git push --follow-tags":                         "",
		"git push --repo=x":                              "",
		"git push -o ci.skip origin x":                   "",
		"git push --receive-pack=x origin x":             "",
		"git push --delete origin x":                     "",
		"git push origin :x":                             "",
		"git push origin x:":                             "",
		"git push origin HEAD~1:deckhand/x":              "",
		"git push origin 'refs/heads/*:refs/heads/d/*'":  "",
		"git push origin x@{1}:y":                        "",
		"git push origin ^x":                             "",
		"git push origin -- x":                           "",
		"git push origin tag v1":                         "{[{tag } {v1 }] false}", // no branches: nothing is found
	} {
		input, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if p, ok := PlainPush(Call{Tool: "Bash", Input: input, Workspace: t.TempDir()}); ok {
			got = fmt.Sprint(p)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
