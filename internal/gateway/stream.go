package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
)

// maxEvent bounds an event that is kept until it can be parsed: those about costs have a few hundred bytes.
const maxEvent = 1 << 20

// lines reads a stream of server-sent events. It keeps and parses only those that tell of costs, and skips most by
// their names.
type lines struct {
	to *reading

	line  []byte // an incomplete line
	long  bool   // it is too long to be kept
	cr    bool   // the last byte was \r
	begun bool   // the first line has been read

	name string // of the event
	data []byte
	lost bool // the data was too long
}

// tells reports whether an event of that name may tell of costs. Streams may omit names.
func tells(name string) bool {
	switch name {
	case "", "message", "message_start", "message_delta", "message_stop", "error":
		return true
	}
	return false
}

func (d *lines) write(p []byte) {
	for len(p) > 0 {
		if d.cr && p[0] == '\n' {
			p, d.cr = p[1:], false
			continue
		}
		d.cr = false
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			i = len(p)
		}
		if j := bytes.IndexByte(p[:i], '\r'); j >= 0 {
			i, d.cr = j, true
		}
		switch {
		case i == len(p):
			d.keep(p)
			return
		case len(d.line) == 0 && !d.long:
			d.endLine(p[:i])
		default:
			d.keep(p[:i])
			d.endLine(d.line)
			d.line = d.line[:0]
		}
		p = p[i+1:]
	}
}

// keep keeps a part of a line, up to the limit.
func (d *lines) keep(part []byte) {
	most := maxEvent
	if !tells(d.name) {
		most = 64 // for the name of the field
	}
	if n := most - len(d.line); len(part) > n {
		d.long, part = true, part[:max(n, 0)]
	}
	d.line = append(d.line, part...)
}

func (d *lines) endLine(line []byte) {
	if !d.begun {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		d.begun = true
	}
	long := d.long
	d.long = false
	if len(line) == 0 {
		d.endEvent()
		return
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		d.name = string(value[:min(len(value), 64)])
	case "data":
		if !tells(d.name) {
			return
		}
		if d.lost = d.lost || long || len(d.data)+len(value) >= maxEvent; d.lost {
			return
		}
		if len(d.data) > 0 {
			d.data = append(d.data, '\n')
		}
		d.data = append(d.data, value...)
	}
}

func (d *lines) endEvent() {
	switch {
	case d.lost:
		d.to.unread = true
	case len(d.data) > 0:
		d.to.read(d.name, d.data)
	}
	d.name, d.data, d.lost = "", d.data[:0], false
}

func (d *lines) close() {
	// An unfinished event does not count.
	d.line, d.data = nil, nil
}

// frames reads a stream of Amazon's frames, each with one event.
type frames struct {
	to    *reading
	frame []byte
	skip  int // bytes of a frame that is too long to keep
	dead  bool
}

const (
	preludeLen = 12       // of a frame: two lengths and their checksum
	shortest   = 16       // a frame without headers and payload
	longest    = 24 << 20 // what Amazon's own decoders take
)

func (d *frames) write(p []byte) {
	for len(p) > 0 && !d.dead {
		if d.skip > 0 {
			n := min(d.skip, len(p))
			d.skip, p = d.skip-n, p[n:]
			continue
		}
		n := min(d.wanted()-len(d.frame), len(p))
		d.frame, p = append(d.frame, p[:n]...), p[n:]
		d.advance()
	}
}

// wanted is the frame's length, as far as it is known.
func (d *frames) wanted() int {
	if len(d.frame) < preludeLen {
		return preludeLen
	}
	return int(binary.BigEndian.Uint32(d.frame))
}

// advance reads the frame if it is complete.
func (d *frames) advance() {
	if len(d.frame) < preludeLen {
		return
	}
	length := binary.BigEndian.Uint32(d.frame)
	switch {
	case length < shortest || length > longest:
		d.dead, d.to.unread, d.frame = true, true, nil // the next frame cannot be found
	case length > maxEvent:
		d.skip, d.to.unread, d.frame = int(length)-len(d.frame), true, d.frame[:0]
	case len(d.frame) == int(length):
		d.read()
		d.frame = d.frame[:0]
	}
}

func (d *frames) read() {
	m, err := eventstream.NewDecoder().Decode(bytes.NewReader(d.frame), nil)
	if err != nil {
		d.to.unread = true
		return
	}
	if kind := m.Headers.Get(eventstreamapi.MessageTypeHeader); kind != nil && kind.String() != eventstreamapi.EventMessageType {
		d.to.read("error", []byte(`{"type":"error"}`))
		return
	}
	var chunk struct {
		Bytes string `json:"bytes"`
	}
	if json.Unmarshal(m.Payload, &chunk) != nil {
		d.to.unread = true
		return
	}
	text, err := base64.StdEncoding.DecodeString(chunk.Bytes)
	if err != nil {
		d.to.unread = true
		return
	}
	// Nearly all are pieces of text.
	if !bytes.HasPrefix(text, []byte(`{"type":"content_block_`)) {
		d.to.read("", text)
	}
}

func (d *frames) close() { d.frame = nil }
