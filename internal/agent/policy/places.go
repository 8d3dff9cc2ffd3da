package policy

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// A protected place is a file or folder from which programs outside the agent, or the agent's next session, take
// orders later: hooks, settings of editors, shells and tools, pipelines, what a build runs by name, instructions to
// agents. Writing one is asked whatever a wide rule allows; a rule that names the place allows it.
//
// Every name with a leading dot is one, at any depth, except known harmless ones. Other protected names are those
// that programs look up and run, or that say what is fetched and run. Source files are not protected: whoever runs
// the tests runs them, see [Policy.Sums].

// harmlessDots are names with a leading dot from which nobody takes orders.
var harmlessDots = words(`.gitignore .gitkeep .keep .dockerignore .prettierignore .eslintignore .stylelintignore
	.editorconfig .clang-format .mailmap .nojekyll .env.example .env.sample .env.template .env.dist`)

// harmlessBelow are harmless paths below such a name, as lower-case globs that begin with it.
var harmlessBelow = []string{".well-known/**", ".changeset/*.md", ".github/issue_template/**", ".github/pull_request_template*", ".github/pull_request_template/*", ".deckhand/repos/*/**"}

// protectedFolders are places within a place: naming the outer one is not enough.
var protectedFolders = []string{".github/workflows", ".github/actions"}

// protectedNames are names of files, in lower case, with * for any characters.
var protectedNames = strings.Fields(`
	claude.md claude.local.md agents.md agents.*.md agent.md gemini.md qwen.md codex.md copilot-instructions.md skill.md
	mcp.json opencode.json opencode.jsonc
	jenkinsfile jenkinsfile.* azure-pipelines*.yml azure-pipelines*.yaml bitbucket-pipelines.yml appveyor.yml buildspec*.yml
	cloudbuild*.yaml cloudbuild*.yml cloudbuild*.json codemagic.yaml bitrise.yml netlify.toml vercel.json now.json render.yaml
	fly.toml fly.*.toml railway.json railway.toml procfile procfile.* heroku.yml app.json skaffold.yaml tiltfile earthfile
	renovate.json renovate.json5 serverless.yml serverless.yaml serverless.ts ansible.cfg
	lefthook.yml lefthook.yaml lefthook.toml lefthook.json lefthook-local.yml
	makefile makefile.* gnumakefile *.mk *.mak justfile *.just taskfile.* taskfile*.yml taskfile*.yaml
	cmakelists.txt *.cmake cmakepresets.json cmakeuserpresets.json meson.build meson_options.txt meson.options build.ninja
	sconstruct sconscript wscript configure configure.ac configure.in makefile.pl build.pl autogen.sh
	workspace.bazel module.bazel build.bazel *.bzl pants.toml
	dockerfile dockerfile.* *.dockerfile containerfile docker-compose*.yml docker-compose*.yaml compose*.yml compose*.yaml
	docker-bake.hcl docker-bake.json devcontainer.json vagrantfile mise.toml mise.*.toml devbox.json flake.nix flake.lock default.nix shell.nix
	package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lock bun.lockb bunfig.toml
	deno.json deno.jsonc deno.lock lerna.json nx.json project.json turbo.json turbo.jsonc rush.json
	tsconfig.json tsconfig.*.json tsconfig-*.json jsconfig.json biome.json biome.jsonc
	gulpfile.* gruntfile.* *.config.js *.config.cjs *.config.mjs *.config.ts *.config.cts *.config.mts jest.config.json vitest.workspace.*
	karma.conf.* protractor.conf.* wdio.conf.* nodemon.json angular.json vetur.config.*
	setup.py setup.cfg pyproject.toml conftest.py tox.ini noxfile.py pytest.ini mypy.ini pylintrc fabfile.py dodo.py pavement.py hatch_build.py
	pipfile pipfile.lock poetry.lock pdm.lock uv.lock uv.toml requirements*.txt constraints*.txt environment.yml environment.yaml
	sitecustomize.py usercustomize.py *.pth
	go.mod go.sum go.work go.work.sum magefile.go
	cargo.toml cargo.lock build.rs rust-toolchain rust-toolchain.toml
	pom.xml build.xml ivy.xml *.gradle *.gradle.kts gradle.properties gradlew gradlew.bat gradle-wrapper.* gradle.lockfile libs.versions.toml
	mvnw mvnw.cmd *.sbt build.sc
	rakefile *.rake gemfile gemfile.* gems.rb gems.locked *.gemspec guardfile capfile thorfile brewfile fastfile podfile podfile.lock dangerfile config.ru
	composer.json composer.lock phpunit.xml phpunit.xml.dist phpunit.dist.xml phpstan.neon phpstan.neon.dist
	*.csproj *.fsproj *.vbproj *.sln *.slnx *.props *.targets nuget.config global.json packages.lock.json
	mix.exs mix.lock rebar.config rebar.lock *.cabal cabal.project stack.yaml setup.hs dune dune-project *.opam
	package.swift package.resolved build.zig build.zig.zon pubspec.yaml pubspec.lock cpanfile
	*.code-workspace *.sublime-project
	*file *.config.*.js *.config.*.cjs *.config.*.mjs *.config.*.ts babel.config.json ionic.config.json tasks.py hatch.toml pixi.toml
	cdk.json firebase.json wrangler.toml wrangler.json wrangler.jsonc tauri.conf.json tauri.conf.json5 electron-builder.* goreleaser.yml goreleaser.yaml
	helmfile.yaml helmfile.yml terragrunt.hcl buf.gen.yaml sqlc.yaml sqlc.yml sqlc.json codegen.yml codegen.yaml captainhook.json grumphp.yml
	*.pbxproj *.xcscheme *.vcxproj *.proj project.clj deps.edn bb.edn build.boot build.mill shadow-cljs.edn dub.json dub.sdl shard.yml
	*.nimble config.nims cross.toml hie.yaml rust-analyzer.toml rust-project.json
	applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-checkout
	post-merge pre-push pre-receive post-receive post-update proc-receive reference-transaction push-to-checkout pre-auto-gc post-rewrite
	sendemail-validate fsmonitor-watchman
`)

// protectedCased are file names that are too common in lower case.
var protectedCased = map[string]bool{"BUILD": true, "WORKSPACE": true, "BUCK": true, "TARGETS": true}

// protectedTrees are folders without a leading dot that are protected with all below.
var protectedTrees = words("githooks git-hooks githook buildsrc magefiles")

var (
	protectedExact    = map[string]bool{}
	protectedPatterns []string
)

func init() {
	for _, n := range protectedNames {
		if strings.Contains(n, "*") {
			protectedPatterns = append(protectedPatterns, n)
		} else {
			protectedExact[n] = true
		}
	}
}

// GivesOrders reports whether programs take orders from a file of a repository later: it is a protected place, or
// in one.
func GivesOrders(rel string) bool { return protected(rel) != "" }

// protected returns a protected place that contains a path relative to the workspace, or "".
func protected(rel string) string {
	if all := protectedIn(rel); len(all) > 0 {
		return all[0]
	}
	return ""
}

// protectedIn returns every protected place that contains a path, as the path spells them.
func protectedIn(rel string) (all []string) {
	names := strings.Split(rel, "/")
	low := make([]string, len(names))
	for i, n := range names {
		names[i], low[i] = foldName(n)
	}
	for i, n := range low {
		switch {
		case strings.Trim(n, ".") == "":
		case n[0] == '.' && !harmlessDot(low[i:]), protectedTrees[n]:
			all = append(all, names[i])
		case i == len(low)-1 && len(all) == 0 && (protectedName(n) || protectedCased[names[i]]):
			all = append(all, names[i])
		}
	}
	if len(all) > 0 {
		for _, p := range protectedFolders {
			if strings.Contains("/"+strings.Join(low, "/")+"/", "/"+p+"/") {
				all = slices.Insert(all, 0, p)
			}
		}
	}
	return all
}

// foldName normalises a name as file systems may that ignore case, final dots and spaces, or the width of
// characters.
func foldName(n string) (shown, low string) {
	if t := strings.TrimRight(n, ". "); t != "" {
		n = t
	}
	for i := range len(n) {
		if n[i] >= utf8.RuneSelf {
			n = norm.NFKC.String(n)
			break
		}
	}
	return n, strings.ToLower(n)
}

// harmlessDot reports whether the first name, which begins with a dot, is harmless.
func harmlessDot(names []string) bool {
	if harmlessDots[names[0]] {
		return len(names) == 1
	}
	for _, g := range harmlessBelow {
		if head, _, _ := strings.Cut(g, "/"); head != names[0] {
			continue
		}
		if ok, err := doublestar.Match(g, strings.Join(names, "/")); err == nil && ok && len(names) > 1 {
			return true
		}
	}
	return false
}

func protectedName(low string) bool {
	return protectedExact[low] || slices.ContainsFunc(protectedPatterns, func(p string) bool { return wild(p, low) })
}

// placesOf tells which protected places a glob names: literally, in braces, or with a wildcard before or after the
// name, such as vite.config.*, .env.* or *.gradle.
func placesOf(glob string) func(place string) bool {
	var plain []string // empty for a name with a wildcard
	var wilds []string
	for n := range strings.SplitSeq(glob, "/") {
		if !strings.ContainsAny(n, "*?[{") {
			plain = append(plain, n)
			continue
		}
		plain = append(plain, "")
		wilds = append(wilds, alternatives(strings.ToLower(n))...)
	}
	spelt := protectedIn(strings.Join(plain, "/"))
	return func(place string) bool {
		return slices.ContainsFunc(spelt, func(s string) bool { return strings.EqualFold(s, place) }) ||
			slices.ContainsFunc(wilds, func(w string) bool { return namesPlace(w, strings.ToLower(place)) })
	}
}

// namesPlace reports whether a name with wildcards names a place: one that is protected by this very pattern, or
// whose first word it spells.
func namesPlace(w, place string) bool {
	if ok, err := doublestar.Match(w, place); err != nil || !ok {
		return false
	}
	if slices.Contains(protectedPatterns, w) || w == place {
		return true
	}
	head := strings.TrimRight(w[:max(strings.IndexAny(w, "*?["), 0)], ".-_")
	rest, ok := strings.CutPrefix(place, head)
	return ok && head != "" && (rest == "" || strings.IndexByte(".-_", rest[0]) >= 0)
}

// alternatives are the expansions of a name's first braces.
func alternatives(n string) []string {
	head, rest, ok := strings.Cut(n, "{")
	inner, tail, closed := strings.Cut(rest, "}")
	if !ok || !closed || strings.ContainsAny(inner+tail, "{}\\") {
		return []string{n}
	}
	var out []string
	for a := range strings.SplitSeq(inner, ",") {
		out = append(out, head+a+tail)
	}
	return out
}

// ordersFrom says why a write to a path is not covered, and which rule would cover it.
func ordersFrom(place, path string) string {
	why := "programs take orders from " + place + " later, so a rule must name it"
	before, after, ok := strings.Cut("/"+path, "/"+place)
	switch {
	case !ok || after != "" && after[0] != '/':
		return why
	case after != "":
		return why + ", such as Edit(" + globLiteral(strings.TrimPrefix(before+"/"+place, "/")) + "/**)"
	case before != "":
		return why + ", such as Edit(**/" + globLiteral(place) + ")"
	}
	return why + ", such as Edit(" + globLiteral(place) + ")"
}
