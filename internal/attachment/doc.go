// Package attachment makes files that people attach to their messages fit to be given to
// a model and to be laid into the folder that it works in. It is not for fetching them.
//
//	name.go     a name that somebody gave → a name that is only a name
//	kind.go     bytes → what they are, by their content alone
//	read.go     a file → what is kept of it, or a [Refusal]
//	picture.go  a picture → the same picture made anew: its pixels, and nothing else
//	exif.go     which way up a JPEG is meant to be seen
//	pdf.go      whether a model takes a PDF
//	inbox.go    the folder of a workspace where files lie
//
// Nobody's word about a file is believed: not its name's, not its declared type's, not its
// declared size's. A picture is decoded, within bounds that are checked before, and encoded
// again: what was beside its pixels, such as the place where it was taken, a second file
// behind it, or what a flaw of another decoder waits for, is gone. Other files stay as they
// are, and are never unpacked or run.
//
// Pictures are decoded one at a time in a process, since each may take some hundred
// megabytes. There are no goroutines.
package attachment
