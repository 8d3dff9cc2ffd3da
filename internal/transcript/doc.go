// Package transcript keeps conversations: the files in which Claude Code keeps a thread's sessions, in the thread's
// own home folder, and their copies in the database, from which any replica can continue.
//
//	Homes.Renew    the home is made anew for each process, with its transcripts alone
//	Mirror         what a process writes is copied as it is written: beside a turn, with
//	               the transaction that ends it, and when the process has ended
//	Homes.Restore  before a process resumes a session, a file that does not begin with its
//	               copy is replaced by it
//	Recall         where there is neither, a new session is told what the database knows
//
// Everything in a session can write into these files. They are found by name, opened without following links, read
// within bounds, and trusted no more than the session itself. Package claude decides which lines another process
// may continue from: those that report what was said, and none that set anything.
//
// The package knows nothing of Slack, of workers or of how processes are started. Its types are for one goroutine
// each, except [Mirror], which is safe for concurrent use.
package transcript
