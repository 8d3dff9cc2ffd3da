package policy

import (
	"regexp"
	"slices"
	"strings"
)

// Danger is an irreversible effect of a call. It needs a second confirmation each time; no permission covers it.
// The list decides nothing else: a call that it does not know is decided by the rules.
type Danger struct {
	// Word is what people write to confirm it.
	Word string
	// Loses says what will be lost or changed, in a sentence or two.
	Loses string
}

// The known dangers, in the order in which Dangers lists them.
var (
	dangerForce   = Danger{"force-push", "A forced push throws away the commits of the remote branch that are not in what is pushed."}
	dangerRemote  = Danger{"delete", "It deletes branches or tags of the remote repository, for everybody."}
	dangerHistory = Danger{"rewrite", "It rewrites or drops history. Commits that only the old one has are lost."}
	dangerTags    = Danger{"publish", "It publishes tags. Releases may be built from them, and others may have them before they are taken back."}
	dangerPublish = Danger{"publish", "It publishes. What others have got by then cannot be taken back."}
	dangerChanges = Danger{"apply", "It changes or replaces what runs elsewhere. Deckhand cannot tell what."}
	dangerDeletes = Danger{"delete", "It deletes what is not in this thread's branch. Git cannot bring it back."}
)

var dangers = []Danger{dangerForce, dangerRemote, dangerHistory, dangerTags, dangerPublish, dangerChanges, dangerDeletes, dangerMerge}

// dangerousCommands are a program and words that follow it in this order, with or without options between them.
var dangerousCommands = compileCommands(map[Danger][]string{
	dangerHistory: {"git filter-branch", "git filter-repo", "git-filter-repo", "bfg", "git reflog expire", "git reflog delete", "git gc --prune=now", "git gc --prune=all", "git update-ref -d", "git stash clear"},
	dangerPublish: {
		"npm publish", "pnpm publish", "yarn publish", "yarn npm publish", "bun publish", "cargo publish", "twine upload", "poetry publish", "uv publish", "flit publish", "hatch publish",
		"gem push", "nuget push", "dotnet nuget push", "mix hex.publish", "mvn deploy", "gradle publish", "docker push", "docker buildx build --push", "podman push", "buildah push", "skopeo copy", "crane push", "helm push",
		"gh release create", "gh release edit", "gh release upload", "glab release create", "gh repo create", "gh pr merge", "glab mr merge", "goreleaser release",
		"vercel deploy", "netlify deploy", "fly deploy", "flyctl deploy", "wrangler deploy", "firebase deploy", "serverless deploy", "eas submit",
	},
	dangerChanges: {"terraform apply", "tofu apply", "pulumi up", "kubectl apply", "kubectl replace", "kubectl drain", "helm install", "helm upgrade", "ansible-playbook", "cdk deploy"},
	dangerDeletes: {
		"terraform destroy", "tofu destroy", "pulumi destroy", "cdk destroy", "kubectl delete", "helm uninstall", "helm delete", "docker volume rm", "docker volume prune", "docker system prune", "podman volume rm", "podman system prune",
		"aws s3 rm", "aws s3 rb", "gsutil rm", "gcloud storage rm", "gh repo delete", "gh release delete", "glab repo delete", "npm unpublish", "cargo yank", "gem yank", "fly apps destroy", "heroku apps:destroy",
		"dropdb", "redis-cli flushall", "redis-cli flushdb", "mkfs", "wipefs",
	},
})

var (
	// removers delete the files that they are given.
	removers = words("rm rmdir unlink shred srm truncate find")
	// databases run the statements that they are given.
	databases = words("psql mysql mariadb sqlite3 sqlcmd mongosh cockroach clickhouse-client duckdb bq")
	// dropping is a statement that deletes more than the rows it names.
	dropping = regexp.MustCompile(`(?i)\b(?:drop\s+(?:table|database|schema|view|index|column|user|role|owned)|alter\s+table\s+\S+\s+drop|truncate\b|delete\s+from|dropDatabase|\.drop\s*\()`)
)

// Dangers lists the irreversible effects that can be read from a call.
func Dangers(c Call) (result []Danger) {
	defer func() {
		if faultOf(recover()) != "" {
			result = nil // it is asked, as everything is that could not be read
		}
	}()
	return readCall(&c).dangers()
}

func (req *request) dangers() []Danger {
	if req.call.Tool == ownMerge {
		return []Danger{dangerMerge}
	}
	if req.kind != kindBash {
		return nil
	}
	found := map[Danger]bool{}
	for i := range req.script.units {
		u := &req.script.units[i]
		if u.target != nil {
			continue
		}
		for _, at := range u.inner {
			args := u.words[at:]
			for d, list := range dangerousCommands {
				if slices.ContainsFunc(list, func(c *command) bool { return c.loose(args) }) {
					found[d] = true
				}
			}
			if args[0].dynamic != "" {
				continue
			}
			switch base := baseName(args[0].text); {
			case base == "git":
				if push := slices.IndexFunc(args, func(w word) bool { return w.text == "push" }); push > 0 {
					for d := range pushDangers(args[push+1:]) {
						found[d] = true
					}
				}
			case databases[base]:
				if slices.ContainsFunc(args[1:], func(w word) bool { return dropping.MatchString(w.text) }) {
					found[dangerDeletes] = true
				}
			case removers[base] && (base != "find" || slices.ContainsFunc(args, func(w word) bool { return w.text == "-delete" })):
				if req.namesOutside(u, args[1:]) {
					found[dangerDeletes] = true
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(dangers), func(d Danger) bool { return !found[d] })
}

// pushDangers are those of a git push with these arguments. Git accepts an option's prefix, and short options
// together.
func pushDangers(args []word) map[Danger]bool {
	found := map[Danger]bool{}
	for _, w := range args {
		text, _, _ := strings.Cut(w.text, "=")
		long := func(options ...string) bool {
			return len(text) > 3 && slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, text) })
		}
		short := len(text) > 1 && text[0] == '-' && text[1] != '-'
		switch {
		case w.dynamic != "":
		case strings.HasPrefix(text, "+"), long("--force", "--force-with-lease"), short && strings.Contains(text, "f"):
			found[dangerForce] = true
		case long("--mirror"):
			found[dangerForce], found[dangerRemote] = true, true
		case long("--delete", "--prune"), short && strings.Contains(text, "d"), strings.HasPrefix(text, ":") && len(text) > 1:
			found[dangerRemote] = true
		case long("--tags", "--follow-tags"), text == "tag", strings.Contains(text, "refs/tags/"):
			found[dangerTags] = true
		}
	}
	return found
}

// namesOutside reports whether a word is a path outside the workspace.
func (req *request) namesOutside(u *unit, args []word) bool {
	for _, w := range args {
		for _, p := range pathsIn(w.text) {
			if strings.HasPrefix(p, "~") {
				return true
			}
			if !strings.HasPrefix(p, "/") && !strings.Contains(p, "..") || harmless[p] {
				continue
			}
			for _, t := range req.unitTargets(u, p) {
				if t.abs != "" && !t.inside {
					return true
				}
			}
		}
	}
	return false
}
