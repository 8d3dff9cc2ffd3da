// Package transcript is where conversations are written down: the files in which Claude
// Code keeps a thread's sessions, in a home folder of the thread's own, and their copies
// in the database, from which any replica goes on with them.
//
//	Homes.Renew    the home is made anew for each process, with its transcripts alone
//	Mirror         what a process writes is copied as it is written: beside a turn, with
//	               the transaction that ends it, and when the process has ended
//	Homes.Restore  before a process resumes a session, a file that does not begin with its
//	               copy is replaced by it
//	Recall         where there is neither, a new session is told what the database knows
//
// Whatever runs in a session can write into these files. They are found by their names,
// opened without following links, read within bounds, and believed no further than the
// session itself is. What another process may go on with of a file, lines that tell what
// was said and none that set anything, is package claude's to say.
//
// The package knows nothing of Slack, of workers or of how processes are started. Its
// types are used by one goroutine each, but for a [Mirror], whose methods may be called at
// once.
package transcript
