// Package workspace manages where threads work: the bot's clones of projects' repositories, each thread's working
// tree and branch, and what is saved of them. It knows folders and git, and neither Slack, nor Postgres, nor the
// CLI.
//
// A [Keeper] makes a thread's workspace when it is needed and missing ([Keeper.Open]), publishes its commits into
// the project's repository ([Keeper.Publish]) and saves what is not committed ([Keeper.Save]). An existing branch
// continues as it is and is never reset.
//
// Repositories are untrusted. Package gitdata reads and writes them without obeying them.
package workspace
