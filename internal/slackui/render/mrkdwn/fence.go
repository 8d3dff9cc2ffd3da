package mrkdwn

import (
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// fenceState follows fenced code blocks over the lines of a text, as CommonMark has them: in
// which quotes and list items a fence stands decides where it ends, and what looks like one
// may be code, or words.
type fenceState struct {
	notes []fenceNote // of the lines that come, in their order
	at    int         // where the next line begins

	mark   byte   // of the open fence, or 0
	length int    // of its run
	opener string // the opening line, to open it anew on a further page
	begin  int    // where the fence stands in it
}

// fenceNote is what a line is: one of a fence, or of what is in it.
type fenceNote struct {
	at   int // in the text: somewhere in the line; of an opening one, where the fence stands
	kind fenceKind
}

type fenceKind byte

const (
	opens fenceKind = iota
	isCode
	closes
)

// fencesOf reads the fences of a text. Each of its lines must be given to line then, in order.
// A text that stands in more quotes and lists than anybody writes has none: to read them takes
// time by the square of their depth, and what is no code is cleaned of more.
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

// markersMax and blanksMax bound what stands in front of a line.
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

// line takes the next line in and reports whether it is code or a fence.
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
	case isCode:
	}
	return true
}

// blocksAlone parses the blocks of CommonMark and nothing in them. What is cleaned has no
// HTML. It is safe for concurrent use.
var blocksAlone = parser.NewParser(parser.WithBlockParsers(blockParsers(fenceNotes{parser.NewFencedCodeBlockParser()})...))

// blockParsers are those of CommonMark without HTML, with one of fenced code.
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

// fenceNotes is the parser of fenced code, and notes its lines in the context.
type fenceNotes struct{ parser.BlockParser }

// Open notes the line of a fence that opens.
func (p fenceNotes) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	_, segment := r.PeekLine()
	at := segment.Start - segment.Padding + pc.BlockOffset()
	node, state := p.BlockParser.Open(parent, r, pc)
	if node != nil {
		note(pc, at, opens)
	}
	return node, state
}

// Continue notes a line of code, or of the fence that closes.
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
