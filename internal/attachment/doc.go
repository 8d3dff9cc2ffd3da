// Package attachment prepares files that people attach to messages for a model and for its folder. It does not
// fetch them.
//
//	name.go     a given name → a safe file name
//	kind.go     bytes → their kind, by content alone
//	read.go     a file → what is kept of it, or a [Refusal]
//	helper.go   a separate, limited process reads pictures and PDFs
//	picture.go  a picture → the same pixels, encoded again
//	exif.go     the orientation of a JPEG
//	pdf.go      whether a model accepts a PDF
//	inbox.go    the files' folder in a workspace
//
// A file's name, declared type and declared size are not trusted. A picture is decoded, within bounds checked
// before, and encoded again: everything else in it, such as its location, an appended second file, or an exploit
// for another decoder, is gone. Other files stay unchanged, and are never unpacked or run.
//
// The number of pixels and pages bounds a decoder's output, not its work: a JPEG of 5000 × 5000 pixels with half a
// million scans has 20 MB, and takes hours. So each picture and PDF is read by a separate process, this binary
// again ([RunHelper]), without an environment and with the kernel's limits on time and memory, one at a time. There
// are no goroutines.
package attachment
