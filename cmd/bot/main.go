// Command bot is Deckhand: it puts Claude Code into a team's Slack.
//
// This package is wiring and configuration only; what it wires is described in
// docs/architecture.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"deckhand/internal/agent/claude"
)

// version is set by the build: -ldflags "-X main.version=v1.2.3".
var version = ""

// command is a subcommand of bot.
type command struct {
	name    string
	summary string
	run     func(ctx context.Context, args []string, out io.Writer) error
}

func commands() []command {
	return []command{
		{"run", "run the bot (the default)", runCommand},
		{"demo", "run the bot in a Slack of its own on this machine, no account needed", demoCommand},
		{"migrate", "up, down or status of the database's schema", migrateCommand},
		{"policy", "explain a policy, and replay recorded tool calls against a changed one", policyCommand},
		{"audit", "verify the audit's chain, and export it", auditCommand},
		{"report", "costs and approvals, and whether the books are right", reportCommand},
		{"doctor", "check the configuration and what the bot needs, and say what to do", doctorCommand},
		{"version", "print the version", versionCommand},
	}
}

// errUsage marks errors of the command line itself: exit code 2.
var errUsage = errors.New("usage")

func main() {
	claude.RunReaper()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A second signal ends the bot at once.
	context.AfterFunc(ctx, stop)

	name := "run"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	} else if len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
		name = "help"
	}
	if name == "help" {
		usage(out)
		return 0
	}
	for _, c := range commands() {
		if c.name != name {
			continue
		}
		err := c.run(ctx, args, out)
		switch {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return 0
		case errors.Is(err, errUsage):
			fmt.Fprintln(errOut, "bot:", strings.TrimSuffix(err.Error(), ": usage"))
			return 2
		}
		fmt.Fprintln(errOut, "bot:", err)
		return 1
	}
	fmt.Fprintf(errOut, "bot: there is no command %q\n", name)
	usage(errOut)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "Deckhand puts Claude Code into a team's Slack.\n\nusage: bot [command] [flags]")
	fmt.Fprintln(w)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-8s  %s\n", c.name, c.summary)
	}
	fmt.Fprintln(w, "\nbot COMMAND -h lists the command's flags.")
}

// parseFlags parses a command's flags and refuses what is left over, unless the
// command takes arguments.
func parseFlags(f *flag.FlagSet, args []string, out io.Writer, maxArgs int) error {
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(out)
		f.Usage()
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: see bot %s -h: %w", err, f.Name(), errUsage)
	}
	if f.NArg() > maxArgs {
		return fmt.Errorf("%s: the argument %q is one too many, see bot %s -h: %w", f.Name(), f.Arg(maxArgs), f.Name(), errUsage)
	}
	return nil
}

func versionCommand(_ context.Context, args []string, out io.Writer) error {
	if err := parseFlags(flag.NewFlagSet("version", flag.ContinueOnError), args, out, 0); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, versionString())
	return err
}

// versionString is the version, and the commit where the build knows it.
func versionString() string {
	v := version
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v == "" {
		v = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 && !strings.Contains(v, s.Value[:7]) {
			v += " (" + s.Value[:12] + ")"
		}
	}
	return strings.TrimSpace(v + " " + info.GoVersion)
}
