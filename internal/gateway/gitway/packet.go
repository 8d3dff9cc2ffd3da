package gitway

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxPacket is the longest pkt-line, including its four digits.
const maxPacket = 65520

// errFlush is a flush packet, "0000", which ends a list.
var errFlush = errors.New("flush")

// errMalformed means that the peer does not speak git's protocol.
var errMalformed = errors.New("this is not git's protocol")

// readPacket reads exactly one pkt-line. It returns [errFlush] for a flush packet and io.EOF at the end.
func readPacket(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errMalformed
		}
		return nil, err
	}
	n, err := strconv.ParseUint(string(head[:]), 16, 16)
	switch {
	case err != nil || n > maxPacket || n > 0 && n < 4:
		return nil, errMalformed
	case n == 0:
		return nil, errFlush
	}
	body := make([]byte, n-4)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, errMalformed
	}
	return body, nil
}

func packet(text string) []byte { return fmt.Appendf(nil, "%04x%s", len(text)+4, text) }

const flush = "0000"

// request is git's first message: which service of which repository it wants.
type request struct {
	service, repository string
	version2            bool // of the protocol
}

// readRequest parses a request as git-daemon does: service SP /path NUL host=… NUL [NUL version=N NUL].
func readRequest(r io.Reader) (request, error) {
	body, err := readPacket(r)
	if err != nil {
		return request{}, errMalformed
	}
	command, extra, _ := strings.Cut(string(body), "\x00")
	service, path, ok := strings.Cut(strings.TrimSuffix(command, "\n"), " ")
	if !ok {
		return request{}, errMalformed
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	out := request{service: service, repository: path}
	for part := range strings.SplitSeq(extra, "\x00") {
		out.version2 = out.version2 || part == "version=2"
	}
	return out, nil
}

// command is what a push wants for one ref. Zeros mean none.
type command struct {
	old, new, ref string
	refused       string // a sentence; empty if it is allowed
}

func (c *command) creates() bool { return strings.Trim(c.old, "0") == "" }
func (c *command) deletes() bool { return strings.Trim(c.new, "0") == "" }

// offer is what a push sends before its pack.
type offer struct {
	commands     []*command
	sideBand     bool // the report is wrapped in bands
	reports      bool // a report is wanted
	atomic       bool // all of it, or nothing
	capabilities []string
}

const (
	// maxCommands bounds the refs of one push, and maxShallow the commits whose parents the pusher lacks.
	maxCommands = 100
	maxShallow  = 10_000
)

// knownCapability reports whether a push may ask for a capability: whether it was advertised.
func knownCapability(c string) bool {
	switch c {
	case "report-status", "side-band-64k", "quiet", "atomic", "ofs-delta":
		return true
	}
	return strings.HasPrefix(c, "agent=") || strings.HasPrefix(c, "object-format=") || strings.HasPrefix(c, "session-id=")
}

var objectName = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// readOffer reads the commands of a push, and nothing behind them.
func readOffer(r io.Reader) (offer, error) {
	var o offer
	shallow := 0
	for first := true; ; {
		body, err := readPacket(r)
		if errors.Is(err, errFlush) || errors.Is(err, io.EOF) && first {
			return o, nil
		}
		if err != nil {
			return o, errMalformed
		}
		line := string(body)
		if rest, ok := strings.CutPrefix(line, "shallow "); ok {
			if shallow++; shallow > maxShallow || !objectName.MatchString(strings.TrimSuffix(rest, "\n")) {
				return o, errMalformed
			}
			continue
		}
		if first {
			first = false
			var capabilities string
			line, capabilities, _ = strings.Cut(line, "\x00")
			o.capable(capabilities)
		}
		c, err := readCommand(line)
		if err != nil {
			return o, err
		}
		if o.commands = append(o.commands, c); len(o.commands) > maxCommands {
			return o, fmt.Errorf("a push has %d refs at most", maxCommands)
		}
	}
}

func (o *offer) capable(list string) {
	o.capabilities = strings.Fields(strings.ReplaceAll(list, "\x00", " "))
	for _, c := range o.capabilities {
		o.sideBand = o.sideBand || c == "side-band-64k"
		o.reports = o.reports || c == "report-status"
		o.atomic = o.atomic || c == "atomic"
	}
}

func readCommand(line string) (*command, error) {
	parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
	if len(parts) != 3 || !objectName.MatchString(parts[0]) || !objectName.MatchString(parts[1]) || len(parts[0]) != len(parts[1]) ||
		parts[2] == "" || strings.ContainsFunc(parts[2], func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, errMalformed
	}
	return &command{old: parts[0], new: parts[1], ref: parts[2]}, nil
}

// wants notes the objects that a fetch asks for, as its pkt-lines pass.
type wants struct {
	objects []string
	pending []byte
	over    bool // no more is noted
}

// maxWants bounds the objects noted for one fetch.
const maxWants = 100

func (w *wants) Write(p []byte) (int, error) {
	if w.over {
		return len(p), nil
	}
	w.pending = append(w.pending, p...)
	for len(w.pending) >= 4 {
		n, err := strconv.ParseUint(string(w.pending[:4]), 16, 16)
		if err != nil || n > maxPacket || len(w.objects) >= maxWants {
			w.over, w.pending = true, nil
			break
		}
		n = max(n, 4) // flush, delimiter, end of answer: no body
		if uint64(len(w.pending)) < n {
			break
		}
		if rest, ok := strings.CutPrefix(string(w.pending[4:n]), "want "); ok {
			if object, _, _ := strings.Cut(strings.TrimSuffix(rest, "\n"), " "); objectName.MatchString(object) && !slices.Contains(w.objects, object) {
				w.objects = append(w.objects, object)
			}
		}
		w.pending = w.pending[n:]
	}
	return len(p), nil
}
