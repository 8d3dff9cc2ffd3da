package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deckhand/internal/report"
	"deckhand/internal/spelling"
)

var (
	// errUsage marks errors of the command line itself: exit code 2.
	errUsage = errors.New("usage")
	// errTold is an error that the command has already printed: exit code 1.
	errTold = errors.New("told")
)

const exitCodes = `
Exit code: 0 done, 1 failed or something is not right, 2 the command line is wrong.
`

// newRoot is the command line. Without a command it runs the bot, as a container image does.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "bot",
		Short: "Deckhand puts Claude Code into a team's Slack",
		Long: `Deckhand puts Claude Code into a team's Slack. Without a command it runs the bot.

Colours are for terminals, and for none of them when NO_COLOR is set.`,
		Example: `  bot demo                        try it, no account needed
  bot doctor                      check the configuration and what the bot needs
  bot run                         run the bot
  bot report last month by user   what was spent
  bot help policy check           what a command does`,
		Args:          knownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	showVersion := root.Flags().Bool("version", false, "print the version")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if *showVersion {
			_, err := fmt.Fprintln(c.OutOrStdout(), versionString())
			return err
		}
		return runBot(c.Context())
	}
	// Not cobra's templates: with text/template the linker keeps every method, 10 MB.
	usage := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		err := usage(c)
		fmt.Fprint(c.OutOrStderr(), exitCodes)
		return err
	})
	root.SetFlagErrorFunc(flagError)
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Run it", []*cobra.Command{runCommand(), demoCommand()}},
		{"Check it", []*cobra.Command{doctorCommand(), policyCommand()}},
		{"Ask it", []*cobra.Command{reportCommand(), auditCommand()}},
		{"Look after it", []*cobra.Command{migrateCommand(), completionCommand(), versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.SetHelpCommand(helpCommand())
	root.SetHelpCommandGroupID("Look after it")
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// group is a command with subcommands only. Without one it lists them.
func group(c *cobra.Command, below ...*cobra.Command) *cobra.Command {
	c.AddCommand(below...)
	c.Args = knownCommand
	c.RunE = func(c *cobra.Command, _ []string) error {
		var names []string
		for _, b := range below {
			names = append(names, b.Name())
		}
		last := len(names) - 1
		return fmt.Errorf("write %s %s or %s: %w", c.CommandPath(), strings.Join(names[:last], ", "), names[last], errUsage)
	}
	return c
}

// knownCommand refuses arguments; for a group they are unknown commands.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !c.HasAvailableSubCommands() {
		return fmt.Errorf("%s: the argument %q is one too many, see %s -h: %w", c.CommandPath(), args[0], c.CommandPath(), errUsage)
	}
	return fmt.Errorf("there is no command %q%s %s -h lists them: %w",
		c.CommandPath()+" "+args[0], cmp.Or(didYouMean(c.CommandPath()+" ", args[0], commandNames(c)), ";"), c.CommandPath(), errUsage)
}

func commandNames(c *cobra.Command) []string {
	var names []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	return names
}

func didYouMean(before, word string, known []string) string {
	if near := spelling.Nearest(word, known); near != "" {
		return "; did you mean " + before + near + "?"
	}
	return ""
}

// flagError suggests the flag that was meant.
func flagError(c *cobra.Command, err error) error {
	meant := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		name := unknown.GetSpecifiedName()
		if in := unknown.GetSpecifiedShortnames(); len(in) > len(name) { // -format
			name = in
		}
		meant = didYouMean("--", name, known)
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		// The cause is in the words of Go's parsers.
		flag := wrong.GetFlag()
		want := map[string]string{"bool": "--" + flag.Name + " alone, or with =true or =false", "int": "a whole number", "stringSlice": "values with commas between them, and no quotes"}[flag.Value.Type()]
		err = fmt.Errorf("--%s: %q is not what it takes; write %s", flag.Name, wrong.GetValue(), cmp.Or(want, flag.Usage))
	}
	return fmt.Errorf("%w%s see %s -h: %w", err, cmp.Or(meant, ";"), c.CommandPath(), errUsage)
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]...",
		Short:   "Say what a command does",
		Example: "  bot help\n  bot help audit verify",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			about, _, err := c.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return commandNames(about), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			if err := knownCommand(about, rest); err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			about.SetOut(c.OutOrStdout())
			return about.Help()
		},
	}
}

// jsonFlag is the flag of commands that scripts read.
func jsonFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "print JSON, for scripts")
}

// choiceFlag is a flag with a few values, which a shell completes; empty by default.
func choiceFlag(c *cobra.Command, into *string, name, usage string, choices ...string) {
	c.Flags().StringVar(into, name, "", usage+": "+strings.Join(choices, ", "))
	complete := cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
	if err := c.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // there is no such flag
	}
}

// writeJSON is how every command prints JSON.
func writeJSON(c *cobra.Command, v any) error { return report.WriteJSON(c.OutOrStdout(), v) }
