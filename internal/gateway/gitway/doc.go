// Package gitway is a sandbox's way to its project's repositories at a forge: a unix
// socket per session, by which the session's git fetches, and pushes to branches below
// deckhand/.
//
//	        sandbox                   │             the bot                │
//	git ─ git://git.invalid/HOST/PATH │                                    │
//	  └ core.gitProxy: git-way ─ socket ─► Session ─ upload-pack ─ mirror ─┼─ git fetch ─► forge
//	                                  │        └ commands? pack? ─ checked ┼─ git push ──►
//
// Inside, git is told by its environment to find the project's repositories at
// git://git.invalid and to reach that by a program, which carries the bytes of git's own
// protocol to the socket ([RunHelper]: this binary once more, put into the socket's
// folder). So it works with no network, in every kind of sandbox, for every address that a
// forge has, and `git remote -v` shows a name that leads nowhere else.
//
// # What is known of the forge inside
//
// Nothing that opens it. The bot keeps a mirror of each repository, a bare clone of
// branches and tags that only its own `git fetch` writes, with the credential, before
// each conversation. A session's fetch is answered from there, so that not one byte of its
// making reaches the forge. What it pushes is received in a folder of its own, checked as a
// stranger's, and pushed on by the bot. The credential is in the environment of these git
// processes, for as long as they run, and in no file, argument or address.
//
// # What may be pushed
//
// Branches below deckhand/, made or moved forward, while a tool use runs that was allowed
// as a `git push` (see [Session.AllowPush]). The commands are read before anything else is:
// another ref, a deletion, two commands for one ref, a name that is not plain, and a branch
// that has moved meanwhile are refused with a sentence that git prints, and then nothing of
// the push passes. A branch moves other than forward only if the tool use was allowed as a
// forced push, and where people have approved its commits only to these (see [Pass]). Packs are bounded, written to disk as they come, and checked by
// `git index-pack --strict`; every commit must be whole.
//
// # What is not carried
//
// Other refs than branches and tags (GitHub's refs/pull), push options, signed pushes, LFS
// objects, partial clones, `git archive --remote`.
//
// # Not held here
//
// While a `git push` runs that a rule or a grant allowed, everything else in the session can
// push, too, to branches below deckhand/. What a branch sets off at the forge, such as a pipeline that
// runs its files, is the forge's: leave "workflows" out of an app's permissions.
package gitway
