package policy

import (
	"path"
	"strings"
)

// protectedPlaces are files and folders from which programs outside the agent
// later take orders: hooks, tasks of editors, settings of shells and build tools.
// Writing them is asked whatever a wide rule allows. A place with a slash is the
// end of a path or a folder in it.
var protectedPlaces = []string{
	".git", ".claude", ".mcp.json", ".claude.json", ".vscode", ".idea", ".fleet", ".zed", ".husky", ".githooks",
	".envrc", ".direnv", ".devcontainer", ".devcontainer.json", ".github/workflows", ".github/actions",
	".gitlab-ci.yml", ".circleci", ".buildkite", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml",
	".gitconfig", ".gitmodules", ".gitattributes", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".yarn",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
	".zprofile", ".zlogin", ".zlogout", ".inputrc", ".vimrc", ".exrc", ".nvimrc", ".lldbinit", ".gdbinit",
	".ripgreprc", ".curlrc", ".wgetrc", ".netrc", ".pypirc", ".cargo/config", ".cargo/config.toml", ".mise.toml",
	"mise.toml", ".tool-versions", ".ssh", ".gnupg", ".aws", ".kube", ".docker", ".config/git", ".config/fish",
	"sitecustomize.py", "usercustomize.py",
}

var (
	protectedNames = map[string]bool{}
	protectedPaths [][]string
)

func init() {
	for _, p := range protectedPlaces {
		if strings.Contains(p, "/") {
			protectedPaths = append(protectedPaths, strings.Split(p, "/"))
		} else {
			protectedNames[strings.ToLower(p)] = true
		}
	}
}

// protected returns a protected place that a path relative to the workspace lies
// in, or "".
func protected(rel string) string {
	if all := protectedIn(rel); len(all) > 0 {
		return all[0]
	}
	return ""
}

// protectedIn returns every protected place that a path lies in.
func protectedIn(rel string) (all []string) {
	if !strings.Contains(rel, ".") {
		return nil // every place has a dot in it
	}
	names := strings.Split(strings.ToLower(rel), "/")
	for i, n := range names {
		// Case-insensitive file systems, and those that drop trailing dots and spaces.
		names[i] = strings.TrimRight(n, ". ")
		if protectedNames[names[i]] {
			all = append(all, names[i])
		}
	}
	for _, p := range protectedPaths {
		if indexRun(names, p) >= 0 {
			all = append(all, strings.Join(p, "/"))
		}
	}
	return all
}

func indexRun(names, run []string) int {
	for i := 0; i+len(run) <= len(names); i++ {
		match := true
		for j := range run {
			if names[i+j] != run[j] {
				match = false
				break
			}
		}
		if match {
			return i
		}
	}
	return -1
}

// secretNames are files that usually hold credentials, by their base name in
// lower case, with * for any characters. Reading one is asked by default.
var secretNames = []string{
	".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "*.gpg",
	"id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".yarnrc.yml", ".pgpass", ".my.cnf",
	".git-credentials", ".htpasswd", ".dockercfg", ".dockerconfigjson", "kubeconfig", "*.kubeconfig", ".vault-token", ".terraformrc", "*.tfstate", "*.tfstate.*",
	"*.tfvars", "credentials", "credentials.*", "*credentials.json", "*credentials.yml", "*credentials.yaml", "secrets.*", "secret.*", "*.secret", "*.secrets",
	"service-account*.json", "service_account*.json", "*.mobileprovision", "master.key", "shadow", "gshadow", "*.ovpn", "wp-config.php",
}

// secretFolders hold credentials whatever the files in them are called.
var secretFolders = map[string]bool{".ssh": true, ".gnupg": true, ".aws": true, ".kube": true, ".docker": true, ".gcloud": true, ".azure": true, "secrets": true, ".secrets": true}

// publicNames look like secrets and are none.
var publicNames = map[string]bool{".env.example": true, ".env.sample": true, ".env.template": true, ".env.dist": true, ".env.defaults": true}

// secretLooking reports whether a path looks as if it held credentials.
func secretLooking(p string) bool {
	p = strings.ToLower(strings.TrimSuffix(p, "/"))
	dir, base := path.Split(p)
	if publicNames[base] || strings.HasPrefix(base, "id_") && strings.HasSuffix(base, ".pub") {
		return false
	}
	for n := range strings.SplitSeq(dir, "/") {
		if secretFolders[n] {
			return true
		}
	}
	if secretFolders[base] || strings.HasSuffix(p, ".git/config") {
		return true
	}
	for _, s := range secretNames {
		if wild(s, base) {
			return true
		}
	}
	return false
}
