// Package gitdata works with git repositories that others have written, without obeying
// anything that stands in them. A repository's own settings can make git run programs
// (hooks, monitors, filters, transports of a promisor remote, what an include brings in)
// and reach into other repositories (alternates, links, a commondir), and no list of such
// settings is complete. So:
//
//   - Where a repository lies, what HEAD says and which commits its refs name is read
//     here, in Go: plain files of bounded size, whatever they say else.
//   - Where git itself is needed it works on a [View], a git folder of our own over the
//     objects of the other one: its configuration, its refs and its hooks are ours.
//   - Objects that an agent has made are copied out of its folder, file by file, before
//     git reads them: no link is followed, none of its alternates is heard, and what
//     arrives in the other repository has been checked as if a stranger had pushed it.
//
// [Clone] makes a working tree with a git folder of its own that borrows the objects of
// another repository, [Publication] brings a branch of it back, and [Saving] what is not
// committed. [Refresh] brings the other repository up to date with its origin.
//
// It does not read refs in the reftable format, nor repositories from which objects are
// missing (partial clones); it says so. It starts no goroutines that outlive a call.
package gitdata
