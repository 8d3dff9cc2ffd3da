package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"deckhand/internal/doctor"
)

// version is set by the build: -ldflags "-X main.version=v1.2.3".
var version = ""

func versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  bot version\n  bot version --json",
		Args:    knownCommand,
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !*asJSON {
			_, err := fmt.Fprintln(c.OutOrStdout(), versionString())
			return err
		}
		v, commit := build()
		return writeJSON(c, struct {
			Version    string `json:"version"`
			Commit     string `json:"commit"`
			Go         string `json:"go"`
			Platform   string `json:"platform"`
			LeastAgent string `json:"least_claude_code"`
		}{v, commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, doctor.LeastCLI})
	}
	return c
}

// build is the version, and the commit where the build knows it.
func build() (v, commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	v = cmp.Or(version, info.Main.Version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return v, commit
}

func versionString() string {
	v, commit := build()
	if len(commit) >= 12 && !strings.Contains(v, commit[:7]) {
		v += " (" + commit[:12] + ")"
	}
	return strings.TrimSpace(v + " " + runtime.Version())
}
