// Package gitdata works with git repositories that others have written, without obeying their content. A
// repository's own settings can make git run programs (hooks, monitors, filters, transports of a promisor remote,
// includes) and reach into other repositories (alternates, links, a commondir), and no list of such settings is
// complete. So:
//
//   - Where a repository lies, what HEAD says and which commits its refs name is read here, in Go, from plain files
//     of bounded size.
//   - Where git itself is needed it works on a [View], a git folder of our own over the other one's objects:
//     configuration, refs and hooks are ours.
//   - Objects that an agent has made are copied out of its folder, file by file, before git reads them: links and
//     alternates are ignored, and what is stored in the other
//     repository was checked as untrusted.
//
// [Clone] makes a working tree with its own git folder that borrows another repository's objects, [Publication]
// brings a branch of it back, and [Saving] what is not committed. [Refresh] updates the other repository from its
// origin.
//
// It does not read refs in the reftable format, nor repositories from which objects are
// missing (partial clones); it says so. It starts no goroutines that outlive a call.
package gitdata
