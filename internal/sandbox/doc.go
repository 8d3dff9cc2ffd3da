// Package sandbox shuts in what runs for a session: a command in, a wrapped command and
// its limits out. It knows nothing of Slack, of the database or of the CLI's protocol.
//
// It is one of two walls. The other is the policy, which decides about every call; this
// one holds even if the policy allows everything. So whatever is inside is taken to be
// hostile from the first moment, the CLI included: an allowed command can trace it and
// speak in its name. Nothing that decides runs inside, and nothing secret is there: the key
// of the model is the gateway's.
//
// There is no falling back. The empty kind is bwrap, a sandbox that does not work is an
// error that says what to do, and none has to be written out.
//
// # What a session sees
//
// By every kind at the host's own paths, so that the policy, the cards and the
// transcripts name one path:
//
//   - its workspace and its home, writable. Of the workspace's git folder what git obeys
//     is read-only (below);
//   - the caches that the project names, writable. They are the project's: a cache is a
//     way from one thread of it to another;
//   - the CLI's own files, what the project's see names, and the objects that the
//     workspace's repository borrows, read-only;
//   - the sockets of its ways to the model, to the web and to the forge, in a folder of their
//     own, with the program that carries git's words to the last;
//   - a /tmp, a /proc and a /dev of its own, and a passwd and a group that name nobody but
//     the agent.
//
// In bwrap and gvisor the system is the host's, read-only and by a list of what is known
// to be needed ([systemFolders], [systemFiles]): programs and libraries, and of /etc
// certificates, time and language. In a container it is the image's.
//
// # What it does not see
//
// Everything else. Known by name, and tried by tests: the bot's data folder,
// configuration, binary and sockets, other threads' workspaces, homes and transcripts,
// people's homes, /run with the sockets of PostgreSQL and of container engines, /var, /sys,
// /etc/shadow and the host's keys, other processes and their environments, variables that
// it was not given, and with network off every address but its own loopback: development
// servers and tests listen there, and nobody outside is reached or reaches them. The bot's
// own ([Session.Hidden]) is covered even where it lies in something that is shown, and a
// project that wants to show it is refused.
//
// # The forwarder
//
// A session with a way to the web ([Session.Web]) finds it on its loopback, where programs
// look for a proxy. This binary, shown as /run/deckhand/forwarder, is what is started
// inside: it listens, starts itself once more to carry bytes between there and the socket,
// and becomes the session's program, which so has its signals, its standard files and its
// own status. The forwarder ends with that program. It holds nothing back: who reaches it
// reaches the socket, which decides. Without a sandbox it listens on this machine's
// loopback, for everybody on it, and leads to MCP servers only, which take a token.
//
// # bwrap
//
// User, mount, pid, ipc, uts, network and, where there are any, cgroup namespaces, with no
// further user namespaces inside; no capability, no_new_privs; a session of its own
// without a controlling terminal; everything in it is killed with bwrap, with its init and
// with whoever started it. A filter lets through the system calls of syscalls.txt and no
// others: no mount, no namespaces, no keys, no bpf, no io_uring, no files by handle, no
// file with a setuid or setgid bit.
// ptrace is allowed, since debuggers and leak sanitizers need it, and reaches nothing but
// what is in the same pid namespace. /proc is read-only as a whole: as root, a bot without
// any capability still owns /proc/sys. No core files.
//
// Package stage has the outer stage: our binary once more, outside, which sets what is
// inherited, hands bwrap its arguments and the filter, and becomes it. Small files of /etc
// are handed over as copies of this moment, in a root that is read-only once it is whole:
// a mount of each would cost the start of every session more than the rest of it.
//
// # gvisor
//
// runsc, one sandbox a process: a kernel of its own in user space answers the system calls,
// with a filter around it that leaves it few of this machine's, and one of ours around all
// of runsc, which makes the files that are made inside. The view is bwrap's; /proc,
// /dev and the user namespaces that can be made inside are that kernel's. The model's
// socket is reached through runsc's own opener of files (--host-uds), and no other
// network than loopback is there. Without root it takes user namespaces, and the one user
// inside is called root and is the bot's. Open files are limited inside.
//
// runsc passes no signals on: SIGTERM ends it and the session at once, as it ends bwrap.
// It has to be a current one. Debian 12's is of December 2022, and ls fails in it (statx
// with AT_NO_AUTOMOUNT): Check refuses it.
//
// # container
//
// docker or podman, one container a process, named by the session, labelled with the bot,
// read-only with a /tmp of its own, no capability, no new privileges, our filter
// of system calls (Check looks for it), no log, no other network than loopback. The image
// is the system: nothing is fetched at the start of a process. The folders have to be the
// same for the engine, so an engine elsewhere, or a bot in a container whose folders have
// other names, does not pass Check. The engine's socket is never inside.
//
// The client of the engine gets the variables that it reads itself ([launcherNames]), not
// the session's home: plugins and settings there are the session's to write.
//
// # command
//
// Any launcher that passes standard input, output and error on. Its walls, its folders,
// its network and that nothing outlives it are its own duty; what is checked is that
// words, variables and bytes arrive unchanged. See [Spec.HasSocket] for how it reaches the
// model.
//
// # git
//
// A commit works, and whatever git obeys is read-only in the sandbox: config and
// config.worktree, hooks, info (attributes, excludes, grafts), objects/info/alternates,
// modules, worktrees, remotes, commondir and gitdir; files that the configuration includes
// and its core.hooksPath, where they lie in the workspace. Each is a mount of its own, and
// so is every folder between it and the workspace, because a folder that merely contains a
// mount can be renamed away with it, and a hard link cannot lead from mount to mount. What
// is missing is made first, empty, so that it cannot be made by a session. Links are
// refused, not followed; a .git that is a file is believed if what it names points back.
//
// So these fail inside, with git's own words: git config (--global works, in a home that
// is thrown away), git remote add, git worktree add, git submodule update, a commit in a
// submodule of the workspace. git branch -d, git branch -m and git push -u do their work and
// complain of the configuration.
//
// # What is not defended
//
//   - The kernel. bwrap and containers share it with the bot; gvisor is for those who want
//     another one between.
//   - Between the CLI and what it runs there is no wall: a command that was allowed can
//     answer in the CLI's place, in its own session. It gets no further than the sandbox.
//   - With network open: everything that listens on this machine's loopback and in its
//     abstract unix sockets, and all addresses that the machine reaches.
//   - Projects whose folders lie in one another: the outer one's sessions write the inner
//     one's folder, and can exchange it for a link before the next session of the inner one.
//   - What is written to the workspace is the session's word: a Makefile, a package.json,
//     a repository in a subfolder with hooks of its own. Whoever runs git or make there
//     outside runs what the agent wrote. So does whoever continues a rebase that it left.
//   - Limits without a cgroup: a [Watcher] comes up to a second late, and does not see files
//     in memory that nobody maps.
//   - Time and load: a session can use what [Limits] leaves it, and tell by timing what else
//     runs on the machine.
//   - As root, the user inside is root's number without root's rights: it owns root's
//     files where it sees them. Run the bot as a user of its own.
package sandbox
