// Package sandbox sandboxes what runs for a session: it turns a command into a wrapped command with limits. It
// knows nothing of Slack, the database or the CLI's protocol.
//
// It is one of two boundaries. The policy decides about every call; the sandbox holds even if the policy allows
// everything. So everything inside is considered hostile from the start, including the CLI: an allowed command can
// trace it and act in its name. Nothing that decides runs inside, and no secret is there: the gateway has the
// model's key.
//
// There is no fallback. The empty kind is bwrap, a sandbox that does not work is an error with its cure, and none
// must be written explicitly.
//
// # What a session sees
//
// Every kind uses the host's own paths, so that the policy, the cards and the transcripts name the same path:
//
//   - its workspace and its home, writable, except what git obeys in the workspace's git folder (below);
//   - the project's caches, writable. All threads of the project share them;
//   - the CLI's own files, the paths under the project's see, and the objects that the workspace's repository
//     borrows, read-only;
//   - the sockets of its ways to the model, to the web and to the forge, in a folder of their own, with the program
//     that carries git's protocol
//
// to the last;
//   - a private /tmp, /proc and /dev, and a passwd and a group that name only the agent.
//
// In bwrap and gvisor the system is the host's, read-only and limited to a list of what is needed ([systemFolders],
// [systemFiles]): programs and libraries, and from /etc certificates, time and language. In a container it is the
// image's.
//
// # What it does not see
//
// Everything else. Tests check that these are hidden: the bot's data folder, configuration, binary and sockets,
// other threads' workspaces, homes and transcripts, people's homes, /run with the sockets of PostgreSQL and of
// container engines, /var, /sys, /etc/shadow and the host's keys, other processes and their environments, and
// variables that it was not given. With network off it reaches only its own loopback, where development servers and
// tests listen. The bot's own files ([Session.Hidden]) are covered even inside something visible, and a project
// that wants to show them is refused.
//
// # The forwarder
//
// A session with a way to the web ([Session.Web]) finds it on its loopback, where programs expect a proxy. This
// binary, visible as /run/deckhand/forwarder, is started inside: it listens, starts itself again to carry bytes
// between there and the socket, and becomes the session's program, which so keeps its signals, standard files and
// exit status. The forwarder ends with that program. It is not a boundary: whoever reaches it reaches the socket,
// which decides. Without a sandbox it listens on this machine's loopback, for everybody on it, and leads only to
// MCP servers, which require a token.
//
// # bwrap
//
// User, mount, pid, ipc, uts, network and, if available, cgroup namespaces, with no further user namespaces inside;
// no capability, no_new_privs; a session of its own without a controlling terminal; everything in it is killed with
// bwrap, with its init and with whoever started it. A filter allows only the system calls of syscalls.txt: no
// mount, no namespaces, no keys, no bpf, no io_uring, no files by handle, no file with a setuid or setgid bit.
// ptrace is allowed, since debuggers and leak sanitizers need it, and reaches only the same pid namespace. /proc is
// read-only as a whole: a bot that runs as root still owns /proc/sys without any capability. No core files.
//
// Package stage has the outer stage: our binary again, outside, which sets what is inherited, passes bwrap its
// arguments and the filter, and becomes it. Small files of /etc are passed as copies, in a root that becomes
// read-only: mounting each would dominate the start of every session.
//
// # gvisor
//
// runsc, one sandbox per process: its own kernel in user space answers the system calls. One filter allows that
// kernel few of this machine's calls, and one of ours covers all of runsc, which creates the files made inside. The
// view is bwrap's; /proc, /dev and user namespaces inside are that kernel's. The model's socket is reached through
// runsc's file opener (--host-uds), and loopback is the only network. Without root it needs user namespaces, and
// the only user inside is called root and is the bot's. Open files are limited inside.
//
// runsc passes no signals on: SIGTERM ends it and the session at once, like bwrap. It must be recent: Debian 12's
// is of December 2022, and ls fails in it (statx with AT_NO_AUTOMOUNT); Check refuses it.
//
// # container
//
// docker or podman, one container per process, named by the session, labelled with the bot, read-only with a
// private /tmp, no capability, no new privileges, our filter of system calls (verified by Check), no log, only
// loopback. The image is the system: nothing is pulled at the start of a process. The engine must see the same
// folders, so Check refuses a remote engine, or a bot in a container whose folders have other names. The engine's
// socket is never inside.
//
// The engine's client gets the variables that it reads itself ([launcherNames]), not the session's home, where the
// session could write plugins and settings.
//
// # command
//
// Any launcher that passes standard input, output and error on. It is responsible for its boundary, its folders,
// its network, and for ending everything with itself; only the unchanged arrival of arguments, variables and bytes
// is checked. See [Spec.HasSocket] for its way to the model.
//
// # git
//
// A commit works, and whatever git obeys is read-only in the sandbox: config and config.worktree, hooks, info
// (attributes, excludes, grafts), objects/info/alternates, modules, worktrees, remotes, commondir and gitdir; files
// that the configuration includes and its core.hooksPath, if they lie in the workspace. Each is a mount of its own,
// and so is every folder between it and the workspace, because a folder that merely contains a mount can be renamed
// away with it, and a hard link cannot cross mounts. Missing ones are created empty, so that a session cannot
// create them. Links are refused, not followed; a .git file is trusted only if its target points back.
//
// So these fail inside, with git's own errors: git config (--global works, in a temporary home), git remote add,
// git worktree add, git submodule update, a commit in a submodule of the workspace. git branch -d, git branch -m
// and git push -u work, with a complaint about the configuration.
//
// # What is not defended
//
//   - The kernel. bwrap and containers share it with the bot; gvisor puts another one in between.
//   - There is no boundary between the CLI and what it runs: an allowed command can answer in the CLI's place, in
//     its own session only.
//   - With network open: everything that listens on this machine's loopback and in its abstract unix sockets, and
//     all addresses that the machine
//
// reaches.
//   - Nested project folders: the outer project's sessions can write the inner project's folder, and replace it by
//     a link before its next session.
//   - The workspace's content is the session's: a Makefile, a package.json, a repository in a subfolder with its
//     own hooks. Whoever runs git or
//
// make there outside, or continues a rebase that it left, runs what the agent wrote.
//   - Limits without a cgroup: a [Watcher] comes up to a second late, and does not count unmapped files in memory.
//   - Time and load: a session can use what [Limits] allows, and infer from timing what else runs on the machine.
//   - As root, the user inside has root's number without its capabilities: it owns root's files where it sees them.
//     Run the bot as a user of its
//
// own.
package sandbox
