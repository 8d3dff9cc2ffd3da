package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// step is one model call: what is thought, said and called in it.
type step struct {
	Thinking string
	Say      string
	Tools    []toolCall
	Pace     int             // characters a second; 0 = the default
	Usage    json.RawMessage // overrides the counted usage, nil = counted
	Errors   []int           // statuses to answer first, once each
}

func (st *step) empty() bool {
	return st.Thinking == "" && st.Say == "" && len(st.Tools) == 0 && st.Usage == nil && len(st.Errors) == 0
}

// toolCall is a tool_use block before it has an id.
type toolCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

var (
	directive = regexp.MustCompile(`(?:^|[^\pL\pN_])(tools|tool|say_json|say|slow|think|usage|error|fill):[ \t]*`)
	toolName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:-]*`)
)

// parseDirectives reads the directive lines of a prompt into steps, in order.
// ok is false when there is none. There are directives but no steps when all
// they do is set a pace; paceOnly reads those. Lines that are no directive are ignored: a
// prompt may carry them inside a longer note. A directive whose argument
// cannot be read becomes a sentence that says so, never an error.
func parseDirectives(text string) (steps []step, ok bool) {
	p := directiveParser{}
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		word, at := findDirective(line)
		if word == "" {
			text = rest
			continue
		}
		ok = true
		text = p.apply(word, text[at:])
	}
	if !ok {
		return nil, false
	}
	if !p.cur.empty() {
		p.steps = append(p.steps, p.cur)
	}
	for i := range p.steps {
		if p.steps[i].Pace == 0 {
			p.steps[i].Pace = p.firstPace
		}
	}
	return p.steps, true
}

// hasDirectives reports whether any line of text is a directive.
func hasDirectives(text string) bool {
	for line := range strings.Lines(text) {
		if word, _ := findDirective(line); word != "" {
			return true
		}
	}
	return false
}

// paceOnly splits a prompt whose only directives are paces into the first pace
// and the other lines, which are then answered at that pace.
func paceOnly(text string) (pace int, rest string) {
	var lines []string
	for line := range strings.Lines(text) {
		if word, at := findDirective(line); word == "" {
			lines = append(lines, line)
		} else if n, err := strconv.Atoi(strings.TrimSpace(line[at:])); err == nil && pace == 0 {
			pace = n
		}
	}
	return pace, strings.TrimSpace(strings.Join(lines, ""))
}

// findDirective finds the directive word of a line and the offset of its
// argument. Before it may stand what chat programs put there: quote marks, a
// speaker ("[Alice in #general]: "), a mention ("@deckhand ", "<@U1> "). A line that is an
// object is a record of what somebody said, and has none.
func findDirective(line string) (word string, at int) {
	if strings.HasPrefix(strings.TrimSpace(line), `{"`) {
		return "", 0
	}
	for _, m := range directive.FindAllStringSubmatchIndex(line, -1) {
		word, at = line[m[2]:m[3]], m[1]
		before := strings.TrimSpace(line[:m[2]])
		if before == "" || strings.ContainsAny(before[len(before)-1:], "]:>\"'`*-,") || strings.HasSuffix(before, "“") {
			return word, at
		}
		fields := strings.Fields(before)
		if strings.HasPrefix(fields[len(fields)-1], "@") {
			return word, at
		}
		if word == "tool" {
			arg := line[at:]
			if n := toolName.FindString(arg); n != "" && strings.HasPrefix(strings.TrimSpace(arg[len(n):]), "{") {
				return word, at
			}
		}
	}
	return "", 0
}

type directiveParser struct {
	steps     []step
	cur       step
	pace      int
	firstPace int
}

func (p *directiveParser) say(text string) {
	if p.cur.Say != "" {
		p.cur.Say += "\n"
	}
	p.cur.Say += text
}

// closeStep ends the current step with its tools.
func (p *directiveParser) closeStep(tools ...toolCall) {
	p.cur.Tools = tools
	p.cur.Pace = p.pace
	p.steps = append(p.steps, p.cur)
	p.cur = step{Pace: p.pace}
}

// apply takes one directive with the text that starts at its argument and
// returns the text after it.
func (p *directiveParser) apply(word, text string) (rest string) {
	line, rest, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(line)
	switch word {
	case "say":
		p.say(line)
	case "say_json":
		var s string
		raw, after, err := cutJSON(text)
		if err == nil {
			err = json.Unmarshal(raw, &s)
		}
		if err != nil {
			p.say(fmt.Sprintf("I could not read the text to say: %v.", err))
			return rest
		}
		p.say(s)
		return after
	case "fill":
		n, err := strconv.Atoi(line)
		if err != nil || n < 0 || n > maxFill-len(p.cur.Say) {
			p.say(fmt.Sprintf("I can fill 0 to %d characters, not %q.", maxFill, line))
			return rest
		}
		p.say(filler(n))
	case "think":
		if p.cur.Thinking != "" {
			p.cur.Thinking += "\n"
		}
		p.cur.Thinking += line
	case "slow":
		n, err := strconv.Atoi(line)
		if err != nil || n <= 0 {
			p.say(fmt.Sprintf("I cannot stream at %q characters a second.", line))
			return rest
		}
		p.pace, p.cur.Pace = n, n
		if p.firstPace == 0 {
			p.firstPace = n
		}
	case "error":
		n, err := strconv.Atoi(line)
		if err != nil || n < 400 || n > 599 {
			p.say(fmt.Sprintf("I cannot answer with status %q.", line))
			return rest
		}
		p.cur.Errors = append(p.cur.Errors, n)
	case "usage":
		raw, after, err := cutJSON(text)
		if err == nil && json.Unmarshal(raw, &usage{}) != nil {
			err = fmt.Errorf("not a usage object: %s", raw)
		}
		if err != nil {
			p.say(fmt.Sprintf("I could not read the usage: %v.", err))
			return rest
		}
		p.cur.Usage = raw
		return after
	case "tool":
		return p.tool(text, rest)
	case "tools":
		raw, after, err := cutJSON(text)
		var calls []toolCall
		if err == nil {
			err = json.Unmarshal(raw, &calls)
		}
		if err != nil || len(calls) == 0 {
			p.say(fmt.Sprintf("I could not read the list of tools (%v).", err))
			return rest
		}
		for i := range calls {
			if len(calls[i].Input) == 0 || string(calls[i].Input) == "null" {
				calls[i].Input = json.RawMessage("{}")
			}
		}
		p.closeStep(calls...)
		return after
	}
	return rest
}

// tool reads "NAME {json}"; the JSON may go on over several lines, or lack.
func (p *directiveParser) tool(text, rest string) string {
	name := toolName.FindString(text)
	if name == "" {
		p.say("I was asked to call a tool without a name.")
		return rest
	}
	arg := strings.TrimLeft(text[len(name):], " \t")
	if !strings.HasPrefix(arg, "{") {
		p.closeStep(toolCall{Name: name, Input: json.RawMessage("{}")})
		return rest
	}
	raw, after, err := cutJSON(arg)
	if err != nil {
		p.say(fmt.Sprintf("I could not read the input of %s: %v.", name, err))
		return rest
	}
	p.closeStep(toolCall{Name: name, Input: raw})
	return after
}

// cutJSON takes one JSON value from the start of text and returns the lines
// after the one on which it ends.
func cutJSON(text string) (raw json.RawMessage, rest string, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&raw); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, "", fmt.Errorf("decode JSON: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, "", fmt.Errorf("compact JSON: %w", err)
	}
	_, rest, _ = strings.Cut(text[dec.InputOffset():], "\n")
	return out.Bytes(), rest, nil
}

// maxFill bounds the text of one call that "fill:" makes.
const maxFill = 1 << 20

// filler is n characters of readable text.
func filler(n int) string {
	const sentence = "The tide comes in, the tide goes out, and the deck is scrubbed again. "
	return strings.Repeat(sentence, n/len(sentence)+1)[:n]
}
