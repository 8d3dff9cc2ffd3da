package policy

import (
	"slices"
	"testing"
)

// TestDangersTakeTwoSteps: what cannot be taken back is dangerous whatever rule asks, and
// no permission is offered or taken for it.
func TestDangersTakeTwoSteps(t *testing.T) {
	t.Parallel()
	p := &Policy{Rules: []Rule{{Verdict: Ask, Patterns: []Pattern{mustParse("Bash(git push *)")}}}}
	ws := t.TempDir()
	for command, want := range map[string][]Danger{
		"git push --force":                                 {dangerForce},
		"git push -f origin main":                          {dangerForce},
		"git push -uf origin main":                         {dangerForce},
		"git push origin +main":                            {dangerForce},
		"git push origin +HEAD:main":                       {dangerForce},
		"git push --force-with-lease=main:abc origin main": {dangerForce},
		"git push --force-w origin main":                   {dangerForce},
		"git -C sub -c a.b=c push origin main --forc":      {dangerForce},
		"git push --mirr":                                  {dangerForce, dangerRemote},
		"git push origin :old":                             {dangerRemote},
		"git push --delete origin old":                     {dangerRemote},
		"git push --tags":                                  {dangerTags},
		"git push origin tag v1":                           {dangerTags},
		"git push origin refs/tags/v1":                     {dangerTags},
		"cd sub && timeout 5 git push -f":                  {dangerForce},
		"sh -c 'git push --force'":                         {dangerForce},
		"git filter-branch --all":                          {dangerHistory},
		"git reflog expire --all":                          {dangerHistory},
		"npm publish":                                      {dangerPublish},
		"docker push a/b":                                  {dangerPublish},
		"gh release create v1":                             {dangerPublish},
		"terraform apply -auto-approve":                    {dangerChanges},
		"terraform -chdir=x destroy":                       {dangerDeletes},
		"kubectl -n x delete pod y":                        {dangerDeletes},
		"psql -c 'DROP  TABLE users'":                      {dangerDeletes},
		"sqlite3 a.db 'delete from x'":                     {dangerDeletes},
		"rm -rf ../other":                                  {dangerDeletes},
		"rm -rf ~/x":                                       {dangerDeletes},
		"rm /etc/hosts":                                    {dangerDeletes},
		"find /srv -delete":                                {dangerDeletes},
		"npm publish && git push -f":                       {dangerForce, dangerPublish},

		"git push":                                 nil,
		"git push -u origin HEAD":                  nil,
		"git push origin HEAD:deckhand/fix":        nil,
		"git push --no-verify":                     nil,
		"git commit -m 'push --force it'":          nil,
		"git rebase main":                          nil,
		"rm -rf build":                             nil,
		"find . -delete":                           nil,
		"npm test":                                 nil,
		"echo git push --force":                    nil,
		"psql -c 'SELECT * FROM dropped'":          nil,
		"gh pr create --title x":                   nil,
		"some-unknown-program --delete everything": nil,
	} {
		c := call(t, ws, "Bash", in{"command": command})
		if got := Dangers(c); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
		d := p.Decide(c)
		if d.Verdict == Ask && (d.Terms.Dangerous != (len(want) > 0) || len(want) > 0 && d.Grantable) {
			t.Errorf("%s: dangerous %v, grantable %v", command, d.Terms.Dangerous, d.Grantable)
		}
	}
}
