package policy

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// secretNames match files that usually hold credentials, by lower-case base name, with * for any characters.
// Reading one is asked by default.
var secretNames = []string{
	".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "*.gpg",
	"id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".yarnrc.yml", ".pgpass", ".my.cnf",
	".git-credentials", ".htpasswd", ".dockercfg", ".dockerconfigjson", "kubeconfig", "*.kubeconfig", ".vault-token", ".terraformrc", "*.tfstate", "*.tfstate.*",
	"*.tfvars", "credentials", "credentials.*", "*credentials.json", "*credentials.yml", "*credentials.yaml", "secrets.*", "secret.*", "*.secret", "*.secrets",
	"service-account*.json", "service_account*.json", "*.mobileprovision", "master.key", "shadow", "gshadow", "*.ovpn", "wp-config.php",
}

// secretFolders hold credentials whatever the files in them are called.
var secretFolders = map[string]bool{".ssh": true, ".gnupg": true, ".aws": true, ".kube": true, ".docker": true, ".gcloud": true, ".azure": true, "secrets": true, ".secrets": true}

// publicNames look like secrets but are none.
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
	return slices.ContainsFunc(secretNames, func(s string) bool { return wild(s, base) })
}

// mostSearched bounds the files and folders that are scanned for what a search would show. Scanning costs less than
// the search.
const mostSearched = 50000

// secretBelow names a secret-looking file that a search of a folder would show, except git's own files and what the
// search's filter excludes. Like searches it follows no links. It is empty when there is none; with more than most
// files the answer is unknown.
func (t *target) secretBelow(most int) (why string) {
	if !t.folder || !t.dir || t.listed || t.source {
		return ""
	}
	seen := 0
	_ = filepath.WalkDir(t.resolved, func(p string, d fs.DirEntry, err error) error {
		seen++
		switch {
		case err != nil:
			return nil // what cannot be read is not shown
		case seen > most:
			why = "it holds more than " + strconv.Itoa(most) + " files, too many to look for secrets among them; search a smaller folder"
			return filepath.SkipAll
		case d.IsDir() && d.Name() == ".git" && p != t.resolved:
			return filepath.SkipDir
		case d.IsDir(), !t.meant(d.Name()):
			return nil
		}
		rel := path.Join(t.rel, strings.TrimPrefix(p, t.resolved))
		if secretLooking(rel) {
			why = rel + ", which it would show, looks like a secret; search another folder, or filter by names such as *.go"
			return filepath.SkipAll
		}
		return nil
	})
	return why
}

// meant reports whether a search's filter may admit a name. Only filters like *.go are understood.
func (t *target) meant(name string) bool {
	ext, ok := strings.CutPrefix(path.Base(t.filter), "*.")
	return !ok || strings.ContainsAny(t.filter, "!{}[]?, ") || strings.Contains(ext, "*") || strings.HasSuffix(strings.ToLower(name), "."+strings.ToLower(ext))
}

// sourceTypes are the values of Grep's type without secrets.
var sourceTypes = words("c cpp cs css dart elixir go html java js kotlin lua md markdown php py python ruby rust scala swift ts typescript")
