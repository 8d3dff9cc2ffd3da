package main

import (
	"io"

	"github.com/spf13/cobra"
)

// completionCommand replaces cobra's own, which answers an unknown shell with its help.
func completionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "completion",
		Short:   "Print a script that completes commands and flags in a shell",
		Long:    `Prints a script that has a shell complete commands and flags.`,
		Example: "  source <(bot completion bash)\n  source <(bot completion zsh)\n  bot completion fish | source",
	}
	return group(c,
		shellCommand("bash", "source <(bot completion bash)", func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) }),
		shellCommand("zsh", "source <(bot completion zsh)", (*cobra.Command).GenZshCompletion),
		shellCommand("fish", "bot completion fish | source", func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) }),
	)
}

func shellCommand(shell, example string, script func(root *cobra.Command, out io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use:     shell,
		Short:   "Print the script for " + shell,
		Example: "  " + example,
		Args:    knownCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return script(c.Root(), c.OutOrStdout()) },
	}
}
