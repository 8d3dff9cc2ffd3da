// Package workspace is where threads work: the clones that the bot keeps of projects'
// repositories, the working tree and the branch of each thread, and what is saved of them.
// It knows folders and git, and neither Slack, nor Postgres, nor the CLI.
//
// A [Keeper] makes a thread's workspace when it is wanted and whenever it is missing
// ([Keeper.Open]), publishes what was committed there into the project's repository
// ([Keeper.Publish]) and saves what was not ([Keeper.Save]). A branch that exists goes on
// as it stands and is never reset.
//
// Repositories are untrusted. Package gitdata reads and writes them without obeying them.
package workspace
