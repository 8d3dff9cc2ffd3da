// Package gitway is a sandbox's way to its project's repositories at a forge: a unix
// socket per session, by which the session's git fetches, and pushes to branches below
// deckhand/.
//
//	        sandbox                   │             the bot                │
//	git ─ git://git.invalid/HOST/PATH │                                    │
//	  └ core.gitProxy: git-way ─ socket ─► Session ─ upload-pack ─ mirror ─┼─ git fetch ─► forge
//	                                  │        └ commands? pack? ─ checked ┼─ git push ──►
//
// Inside, the environment makes git find the project's repositories at git://git.invalid and reach that by a
// program, which carries git's own protocol to the socket ([RunHelper]: this binary, put into the socket's folder).
// This works without a network, in every kind of sandbox, for every address of a forge, and `git remote -v` shows a
// name that leads nowhere else.
//
// # What is known of the forge inside
//
// No credential. The bot keeps a mirror of each repository, a bare clone of branches and tags that only its own
// `git fetch` writes, with the credential, before each conversation. A session's fetch is answered from the mirror,
// so none of its bytes reach the forge. What a session pushes is received in a separate folder, checked as
// untrusted, and pushed on by the bot. The credential is only in the environment of these git processes while they
// run, never in a file, argument or address.
//
// # What may be pushed
//
// Branches below deckhand/, created or fast-forwarded, while a tool use runs that was allowed as a `git push` (see
// [Session.AllowPush]). The commands are read first. Another ref, a deletion, two commands for one ref, an unusual
// name, or a branch that has moved meanwhile is refused with a sentence that git prints, and then nothing of the
// push passes. Moving a branch other than forward needs a tool use that was allowed as a forced push; where people
// have approved commits, a branch moves only to these (see [Pass]). Packs are bounded, written to disk as they
// arrive, and checked by `git index-pack --strict`; every commit must be complete.
//
// # Signatures
//
// Where commits are signed, git starts the same binary in place of ssh-keygen ([Session.SignBy]), which asks the
// socket. The key stays with the bot. It signs commits that are by whoever asks now; others stay unsigned, so that a
// rebase of somebody's work does not fail.
//
// # What is not carried
//
// Other refs than branches and tags (GitHub's refs/pull), push options, signed pushes, LFS objects, partial clones,
// `git archive --remote`.
//
// # What this does not prevent
//
// While an allowed `git push` runs, everything else in the session can also push to branches below deckhand/. What
// a branch triggers at the forge, such as a pipeline that runs its files, is up to the forge: leave "workflows" out
// of an app's permissions.
package gitway
