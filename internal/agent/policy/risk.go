package policy

import (
	"slices"
	"strings"
)

// Risk is what makes a call worth a second look, in a word or two for people.
type Risk string

// The risks, in the order in which Assess lists them.
const (
	RiskRoot      Risk = "runs as root"
	RiskDeletes   Risk = "deletes"
	RiskHistory   Risk = "rewrites history"
	RiskPublishes Risk = "publishes"
	RiskOutside   Risk = "outside the workspace"
	RiskSecrets   Risk = "secrets"
	RiskSettings  Risk = "changes what programs run later"
	RiskNetwork   Risk = "network"
	RiskCode      Risk = "runs other code"
	RiskHidden    Risk = "known only when it runs"
	RiskUnclear   Risk = "not what it seems"
)

var risks = []Risk{RiskRoot, RiskDeletes, RiskHistory, RiskPublishes, RiskOutside, RiskSecrets, RiskSettings, RiskNetwork, RiskCode, RiskHidden, RiskUnclear}

// riskyPrograms are programs whose name says enough.
var riskyPrograms = map[Risk]map[string]bool{
	RiskRoot:    words("sudo su doas pkexec run0 sudoedit"),
	RiskDeletes: words("rm rmdir unlink shred srm wipe truncate mkfs wipefs fdisk dropdb"),
	RiskNetwork: words("curl wget ssh scp sftp rsync nc ncat netcat socat telnet ftp tftp ping dig nslookup host whois nmap http https xh aria2c axel mosh sshpass gh glab aws gcloud az kubectl helm doctl fly heroku vercel netlify psql mysql mongosh redis-cli npx bunx uvx pipx"),
	RiskSecrets: words("printenv pass gpg vault op bw security secret-tool keyring"),
	RiskHistory: words("git-filter-repo bfg"),
}

// riskyWords are a program and words that follow it, in this order, options
// between them or not.
var riskyWords = map[Risk][]string{
	RiskDeletes: {
		"git clean", "git branch -D", "git branch -d", "git tag -d", "git rm", "git reset --hard", "git checkout --force", "git stash drop", "git stash clear", "git worktree remove", "git push --delete", "git push -d",
		"find -delete", "docker rm", "docker rmi", "docker system prune", "docker volume rm", "kubectl delete", "helm uninstall", "terraform destroy", "tofu destroy", "rsync --delete", "gh repo delete", "gh release delete", "aws s3 rm", "npm unpublish", "dd",
	},
	RiskHistory:   {"git push --force", "git push -f", "git push --force-with-lease", "git push --mirror", "git rebase", "git commit --amend", "git filter-branch", "git filter-repo", "git reset --hard", "git reflog expire", "git reflog delete", "git update-ref", "git replace", "git gc --prune=now"},
	RiskPublishes: {"git push", "npm publish", "pnpm publish", "yarn publish", "yarn npm publish", "cargo publish", "twine upload", "poetry publish", "uv publish", "gem push", "docker push", "podman push", "helm push", "gh release create", "gh pr create", "gh pr merge", "gh pr comment", "gh issue create", "gh issue comment", "gh gist create", "gh repo create", "glab mr create", "mvn deploy", "gradle publish", "terraform apply", "tofu apply", "kubectl apply", "vercel", "netlify deploy", "fly deploy", "heroku"},
	RiskNetwork:   {"git push", "git pull", "git fetch", "git clone", "git ls-remote", "git remote update", "git submodule", "npm install", "npm i", "npm ci", "npm add", "npm update", "npm publish", "pnpm install", "pnpm add", "yarn add", "yarn install", "bun add", "bun install", "pip install", "pip download", "pip3 install", "uv add", "uv sync", "poetry add", "poetry install", "cargo install", "cargo add", "cargo fetch", "cargo publish", "go get", "go install", "go mod download", "go mod tidy", "gem install", "bundle install", "composer install", "composer require", "apt install", "apt-get install", "brew install", "docker pull", "docker push", "docker run", "terraform", "tofu"},
	RiskSecrets:   {"env", "set", "export -p", "git credential", "gh auth", "aws sts", "gcloud auth", "kubectl get secret", "kubectl get secrets", "docker login", "npm token", "npm login"},
}

var riskyPatterns = compileRisks()

func compileRisks() map[Risk][]*command {
	m := map[Risk][]*command{}
	for r, list := range riskyWords {
		for _, s := range list {
			c, bad := parseCommand(s + " *")
			if bad != nil {
				panic("policy: the table of risks holds " + s + ", which is no command")
			}
			m[r] = append(m[r], c)
		}
	}
	return m
}

// Assess lists what makes a call risky, in a fixed order. It errs on the side of
// listing; an empty list is no promise.
func Assess(c Call) (result []Risk) {
	defer func() {
		if faultOf(recover()) != "" {
			result = []Risk{RiskUnclear}
		}
	}()
	req := readCall(&c)
	found := map[Risk]bool{}
	if req.bad != "" {
		found[RiskUnclear] = true
	}
	switch req.kind {
	case kindBash:
		req.assessScript(found)
	case kindRead, kindEdit:
		assessTarget(&req.target[0], req.kind == kindEdit, found)
	case kindWeb:
		found[RiskNetwork] = true
		if req.link.why != "" {
			found[RiskUnclear] = true
		}
	case kindNet:
		found[RiskNetwork] = true
	default:
		if c.Tool == "WebSearch" {
			found[RiskNetwork] = true
		}
	}
	for _, other := range req.also {
		for _, r := range Assess(*other.call) {
			found[r] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(risks), func(r Risk) bool { return !found[r] })
}

func assessTarget(t *target, write bool, found map[Risk]bool) {
	if !t.inside {
		found[RiskOutside] = true
	}
	for _, p := range []string{t.rel, t.abs, t.resolved, t.written} {
		if p != "" && secretLooking(p) {
			found[RiskSecrets] = true
		}
	}
	if write && (protected(t.rel) != "" || !t.inside && protected(strings.TrimPrefix(t.abs, "/")) != "") {
		found[RiskSettings] = true
	}
}

func (req *request) assessScript(found map[Risk]bool) {
	s := req.script
	switch {
	case s.src == "":
	case unreadable(s.src) != "":
		found[RiskUnclear] = true
	case s.hard != "" && len(s.units) == 0:
		found[RiskHidden] = true
	}
	for i := range s.units {
		u := &s.units[i]
		if u.target != nil {
			if !harmless[u.target.written] && u.target.abs != "" && !req.isEffect(i) {
				assessTarget(u.target, u.write, found)
			}
			continue
		}
		req.assessCommand(u, found)
	}
}

func (req *request) assessCommand(u *unit, found map[Risk]bool) {
	for _, at := range u.inner {
		args := u.words[at:]
		base := baseName(args[0].text)
		for r, set := range riskyPrograms {
			if set[base] && args[0].known() {
				found[r] = true
			}
		}
		if !u.nested && (isOpaque(base) || isInterpreter(base)) {
			found[RiskCode] = true
		}
	}
	for r, list := range riskyPatterns {
		for _, c := range list {
			if !found[r] && slices.ContainsFunc(u.inner, func(at int) bool { return c.loose(u.words[at:]) }) {
				found[r] = true
			}
		}
	}
	args := u.args()
	if baseName(args[0].text) == "git" && len(args) > 2 { // git push origin +main
		for _, w := range args[2:] {
			if strings.HasPrefix(w.text, "+") {
				found[RiskHistory] = true
			}
		}
	}
	for i, w := range args {
		if w.dynamic != "" {
			found[RiskHidden] = true
		}
		if i == 0 {
			continue
		}
		for _, p := range pathsIn(w.text) {
			if harmless[p] {
				continue
			}
			if secretLooking(p) {
				found[RiskSecrets] = true
			}
			if strings.Contains(p, "://") {
				found[RiskNetwork] = true
				continue
			}
			if strings.HasPrefix(p, "~") {
				found[RiskOutside] = true
			}
			if strings.HasPrefix(p, "/") || strings.Contains(p, "..") {
				for _, t := range req.unitTargets(u, p) {
					if t.abs != "" && !t.inside && !strings.HasPrefix(p, "//") {
						found[RiskOutside] = true
					}
				}
			}
		}
	}
	if u.soft != "" && strings.HasPrefix(u.soft, "cd ") {
		found[RiskOutside] = true
	}
}
