package main

import (
	"cmp"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"deckhand/internal/settings"
)

func policyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "policy",
		Short:   "Explain a policy, and replay recorded tool calls against a changed one",
		Example: "  bot policy check --tool Bash --input 'git push'\n  bot policy test --config new.yaml --since 30d",
	}
	return group(c, policyCheckCommand(), policyTestCommand())
}

// configFlag names deckhand.yaml for commands that do not need the environment.
func configFlag(c *cobra.Command) *string {
	return c.Flags().String("config", "", "the configuration (default: DECKHAND_CONFIG, else "+settings.DefaultFile+")")
}

func configFile(flag string) string {
	return cmp.Or(flag, os.Getenv("DECKHAND_CONFIG"), settings.DefaultFile)
}

// graphic makes a text one line without terminal control characters: the model's text is shown here.
func graphic(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
}
