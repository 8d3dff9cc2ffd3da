package attachment

import (
	"bytes"
	"compress/zlib"
	"io"
	"regexp"
)

var (
	pageObject   = regexp.MustCompile(`/Type\s*/Page[^s\w]`)
	objectStream = regexp.MustCompile(`/Type\s*/ObjStm[^\w]`)
)

// maxObjects bounds what is decompressed of a PDF to count its pages, in bytes.
const maxObjects = 16 << 20

// readPDF counts a PDF's pages. why says that a model would not accept it at any size: a provider refuses a whole
// conversation for one such file.
func readPDF(b []byte) (pages int, why string) {
	if !bytes.Contains(b[max(0, len(b)-2048):], []byte("%%EOF")) {
		return 0, "not shown, since it seems to be incomplete"
	}
	if bytes.Contains(b, []byte("/Encrypt")) {
		return 0, "not shown, since it is encrypted"
	}
	pages = len(pageObject.FindAllIndex(b, -1))
	left := int64(maxObjects)
	streams := append(objectStream.FindAllIndex(b, -1), []int{len(b)})
	for i, at := range streams[:len(streams)-1] {
		begin := bytes.Index(b[at[1]:streams[i+1][0]], []byte("stream"))
		if begin < 0 {
			continue
		}
		z, err := zlib.NewReader(bytes.NewReader(bytes.TrimLeft(b[at[1]+begin+len("stream"):], "\r\n")))
		if err != nil {
			continue
		}
		objects, _ := io.ReadAll(io.LimitReader(z, left)) // the readable part of a damaged one counts
		if left -= int64(len(objects)); left <= 0 {
			return 0, "not shown, since its pages cannot be counted"
		}
		pages += len(pageObject.FindAllIndex(objects, -1))
	}
	if pages == 0 {
		return 0, "not shown, since its pages cannot be counted"
	}
	return pages, ""
}
