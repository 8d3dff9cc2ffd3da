// Package attachment makes files that people attach to their messages fit to be given to
// a model and to be laid into the folder that it works in. It is not for fetching them.
//
//	name.go     a name that somebody gave → a name that is only a name
//	kind.go     bytes → what they are, by their content alone
//	read.go     a file → what is kept of it, or a [Refusal]
//	helper.go   pictures and PDFs are read by a process of their own, within limits
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
// Pixels and pages bound what a decoder gives, and not what it takes: a JPEG of 5000 × 5000
// pixels with half a million scans is 20 MB, and hours of work. So each picture and each PDF
// is read by a process of its own, this binary once more ([RunHelper]), which has no
// environment and limits of the kernel for time and memory, one at a time. There are no
// goroutines.
package attachment
