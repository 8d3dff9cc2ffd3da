package mrkdwn

import (
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// fenceState tracks fenced code blocks over the lines of a text, by CommonMark: the quotes and list items around a
// fence decide where it ends, and what looks like a fence may be code or text.
type fenceState struct {
	notes []fenceNote // for the following lines, in order
	at    int         // where the next line begins

	mark   byte   // of the open fence, or 0
	length int    // of its run
	opener string // the opening line, to be repeated on a further page
	begin  int    // where the fence stands in it
}

// fenceNote classifies a line: a fence, or its content.
type fenceNote struct {
	at   int // in the text: somewhere in the line; for an opening one, the fence
	kind fenceKind
}

type fenceKind byte

const (
	opens fenceKind = iota
	isCode
	closes
)

// fencesOf finds the fences of a text, whose lines must then be passed to line in order. A text with extremely deep
// quotes and lists is treated as without fences: parsing takes time quadratic in the depth, and text outside code
// is cleaned more strictly.
func fencesOf(s string) fenceState {
	if !strings.Contains(s, "```") && !strings.Contains(s, "~~~") {
		return fenceState{}
	}
	for line := range strings.Lines(s) {
		if tooDeep(line) {
			return fenceState{}
		}
	}
	pc := parser.NewContext()
	blocksAlone.Parse(text.NewReader([]byte(s)), parser.WithContext(pc))
	notes, _ := pc.Get(notesKey).([]fenceNote)
	return fenceState{notes: notes}
}

// markersMax and blanksMax bound the beginning of a line.
const markersMax, blanksMax = 40, 400

func tooDeep(line string) bool {
	markers, blanks := 0, 0
	for i := 0; i < len(line) && markers <= markersMax && blanks <= blanksMax; i++ {
		switch c := line[i]; {
		case c == '>':
			markers++
		case c == ' ' || c == '\t':
			blanks++
		case listMarker(line[i:]) > 0:
			markers++
			i += listMarker(line[i:]) - 2
		default:
			return false
		}
	}
	return markers > markersMax || blanks > blanksMax
}

// line takes the next line and reports whether it is code or a fence.
func (f *fenceState) line(line string) bool {
	from := f.at
	f.at += len(line)
	if len(f.notes) == 0 || f.notes[0].at >= f.at {
		f.mark = 0
		return false
	}
	note := f.notes[0]
	f.notes = f.notes[1:]
	switch note.kind {
	case opens:
		f.begin, f.opener = max(0, note.at-from), strings.TrimRight(line, "\n")
		f.mark, f.length = f.opener[f.begin], runLength(f.opener[f.begin:])
	case closes:
		f.mark = 0
	}
	return true
}

// blocksAlone parses CommonMark's blocks without their content. Cleaned text has no HTML. It is safe for concurrent
// use.
var blocksAlone = parser.NewParser(parser.WithBlockParsers(blockParsers(fenceNotes{parser.NewFencedCodeBlockParser()})...))

// blockParsers are CommonMark's without HTML, with the given one for fenced code.
func blockParsers(fenced parser.BlockParser) []util.PrioritizedValue {
	blocks := slices.DeleteFunc(parser.DefaultBlockParsers(), func(v util.PrioritizedValue) bool {
		return v.Value == parser.NewHTMLBlockParser()
	})
	for i, v := range blocks {
		if v.Value == parser.NewFencedCodeBlockParser() {
			blocks[i].Value = fenced
		}
	}
	return blocks
}

var notesKey = parser.NewContextKey()

// fenceNotes parses fenced code, and notes its lines in the context.
type fenceNotes struct{ parser.BlockParser }

// Open notes an opening fence.
func (p fenceNotes) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	_, segment := r.PeekLine()
	at := segment.Start - segment.Padding + pc.BlockOffset()
	node, state := p.BlockParser.Open(parent, r, pc)
	if node != nil {
		note(pc, at, opens)
	}
	return node, state
}

// Continue notes a line of code, or a closing fence.
func (p fenceNotes) Continue(node ast.Node, r text.Reader, pc parser.Context) parser.State {
	_, segment := r.PeekLine()
	state := p.BlockParser.Continue(node, r, pc)
	kind := isCode
	if state&parser.Close != 0 {
		kind = closes
	}
	note(pc, segment.Start, kind)
	return state
}

func note(pc parser.Context, at int, kind fenceKind) {
	notes, _ := pc.Get(notesKey).([]fenceNote)
	pc.Set(notesKey, append(notes, fenceNote{at, kind}))
}
