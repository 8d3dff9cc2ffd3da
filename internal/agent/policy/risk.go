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

// riskyCommands are a program and words that follow it in this order, with or without options between them. Dangers
// are risks too, and not repeated here.
var riskyCommands = compileCommands(map[Risk][]string{
	RiskRoot: strings.Fields("sudo su doas pkexec run0 sudoedit"),
	RiskDeletes: append(strings.Fields("rm rmdir unlink shred srm wipe truncate mkfs wipefs fdisk dropdb"),
		"git clean", "git branch -D", "git branch -d", "git tag -d", "git rm", "git reset --hard", "git checkout --force", "git stash drop", "git stash clear", "git worktree remove",
		"find -delete", "docker rm", "docker rmi", "rsync --delete", "dd",
	),
	RiskHistory:   append(strings.Fields("git-filter-repo bfg"), "git rebase", "git commit --amend", "git reset --hard", "git update-ref", "git replace"),
	RiskPublishes: {"git push", "gh pr create", "gh pr comment", "gh issue create", "gh issue comment", "gh gist create", "glab mr create", "vercel", "heroku"},
	RiskNetwork: append(strings.Fields("curl wget ssh scp sftp rsync nc ncat netcat socat telnet ftp tftp ping dig nslookup host whois nmap http https xh aria2c axel mosh sshpass gh glab aws gcloud az kubectl helm doctl fly heroku vercel netlify psql mysql mongosh redis-cli npx bunx uvx pipx"),
		"git push", "git pull", "git fetch", "git clone", "git ls-remote", "git remote update", "git submodule", "npm install", "npm i", "npm ci", "npm add", "npm update", "npm publish", "pnpm install", "pnpm add", "yarn add", "yarn install",
		"bun add", "bun install", "pip install", "pip download", "pip3 install", "uv add", "uv sync", "poetry add", "poetry install", "cargo install", "cargo add", "cargo fetch", "cargo publish", "go get", "go install", "go mod download", "go mod tidy",
		"gem install", "bundle install", "composer install", "composer require", "apt install", "apt-get install", "brew install", "docker pull", "docker push", "docker run", "terraform", "tofu",
	),
	RiskSecrets: append(strings.Fields("printenv pass gpg vault op bw security secret-tool keyring"), "env", "set", "export -p", "git credential", "gh auth", "aws sts", "gcloud auth", "kubectl get secret", "kubectl get secrets", "docker login", "npm token", "npm login"),
})

// dangerRisks maps dangers to risks.
var dangerRisks = map[Danger]Risk{
	dangerForce: RiskHistory, dangerHistory: RiskHistory, dangerRemote: RiskDeletes, dangerDeletes: RiskDeletes,
	dangerTags: RiskPublishes, dangerPublish: RiskPublishes, dangerChanges: RiskPublishes,
}

// compileCommands reads lists of commands, each with any further words.
func compileCommands[K comparable](lists map[K][]string) map[K][]*command {
	out := map[K][]*command{}
	for k, list := range lists {
		for _, s := range list {
			c, bad := parseCommand(s + " *")
			if bad != nil {
				panic("policy: a table holds " + s + ", which is no command")
			}
			out[k] = append(out[k], c)
		}
	}
	return out
}

// Assess lists a call's risks, in a fixed order. It prefers to list too much; an empty list is no promise.
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
		for _, d := range req.dangers() {
			found[dangerRisks[d]] = true
		}
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
	case s.hard == doubtParse, s.hard != "" && len(s.units) == 0 && unreadable(s.src) == "":
		found[RiskHidden] = true
	case s.unsure, unreadable(s.src) != "":
		found[RiskUnclear] = true
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
		base := baseName(u.words[at].text)
		if !u.nested && (isOpaque(base) || isInterpreter(base)) {
			found[RiskCode] = true
		}
	}
	for r, list := range riskyCommands {
		for _, c := range list {
			if !found[r] && slices.ContainsFunc(u.inner, func(at int) bool { return c.loose(u.words[at:]) }) {
				found[r] = true
			}
		}
	}
	args := u.args()
	for i, w := range args {
		found[RiskHidden] = found[RiskHidden] || w.dynamic != ""
		if i == 0 {
			continue
		}
		for _, p := range pathsIn(w.text) {
			found[RiskSecrets] = found[RiskSecrets] || secretLooking(p) && !harmless[p]
			found[RiskNetwork] = found[RiskNetwork] || strings.Contains(p, "://")
		}
	}
	found[RiskOutside] = found[RiskOutside] || req.namesOutside(u, args[1:])
	if u.soft != "" && strings.HasPrefix(u.soft, "cd ") {
		found[RiskOutside] = true
	}
}
