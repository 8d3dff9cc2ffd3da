package slack

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// refusal is what the workspace does not take, asked for by POST /_control/refuse: a
// workspace where a type of block has not arrived, or is not shown at a place, or that has
// not got a method.
type refusal struct {
	// Block is a type of block, "*" for all of them, or "text" for texts of messages that
	// are longer than a sentence.
	Block string `json:"block,omitempty"`
	// Method is one of the Web API's, in the place of a block, and Code is what its calls are
	// refused with, "unknown_method" if it is empty.
	Method string `json:"method,omitempty"`
	Code   string `json:"code,omitempty"`
	// Place is one of refusalPlaces; "" is everywhere.
	Place string `json:"place,omitempty"`
	// Silent leaves out which block it is, as Slack does at times.
	Silent bool `json:"silent,omitempty"`
}

// refusalPlaces are where blocks are shown. A message is posted or edited; what a stream
// shows comes by its chunks or its end.
var refusalPlaces = []string{"message", "ephemeral", "modal", "home", "stream"}

// shortText is as long as a text may be where texts are refused.
const shortText = 300

func (x *refusal) check() error {
	switch {
	case x.Method != "" && (x.Block != "" || x.Place != "" || x.Silent):
		return fmt.Errorf("method %q: a method is refused as a whole; leave out block, place and silent", x.Method)
	case x.Method != "" && methods[x.Method].run == nil:
		return fmt.Errorf("method %q: the workspace has no such method", x.Method)
	case x.Method != "":
		return nil
	case x.Code != "":
		return fmt.Errorf("code %q: it goes with a method", x.Code)
	case x.Block != "*" && x.Block != "text" && blockCheck(x.Block) == nil:
		return fmt.Errorf("block %q: a type of block is needed, \"*\" for all, or \"text\"", x.Block)
	case x.Place != "" && !slices.Contains(refusalPlaces, x.Place):
		return fmt.Errorf("place %q: one of %v is needed, or none for all", x.Place, refusalPlaces)
	case x.Block == "text" && (x.Place == "modal" || x.Place == "home"):
		return fmt.Errorf("place %q: only messages have a text", x.Place)
	}
	return nil
}

// placeOf is where a method shows its blocks; a view tells by its kind.
func placeOf(method, view string) string {
	switch {
	case view != "":
		return view
	case method == "chat.postEphemeral":
		return "ephemeral"
	case strings.HasSuffix(method, "Stream"):
		return "stream"
	}
	return "message"
}

// refused looks for blocks that are refused at a place, those in others too. It returns
// them in Slack's words, and whether Slack says so.
func (s *Server) refused(list []any, place, at string) (problems []string, silent bool) {
	for i, raw := range list {
		b, ok := raw.(object)
		if !ok {
			continue
		}
		here := at + "/" + itoa(i)
		for _, x := range s.refusals {
			if (x.Place == "" || x.Place == place) && (x.Block == "*" || x.Block != "" && x.Block == text(b["type"])) {
				problems = append(problems, "unsupported type: "+text(b["type"])+" [json-pointer:"+here+"/type]")
				silent = silent || x.Silent
				break
			}
		}
		for _, inner := range []string{"child_blocks", "tasks"} {
			if list, ok := b[inner].([]any); ok {
				found, quiet := s.refused(list, place, here+"/"+inner)
				problems, silent = append(problems, found...), silent || quiet
			}
		}
	}
	return problems, silent
}

// refuseBlocks is the answer to a call with blocks that are refused; nil if none is.
func (s *Server) refuseBlocks(list []any, place, at, code string) error {
	switch problems, silent := s.refused(list, place, at); {
	case len(problems) == 0:
		return nil
	case silent:
		return fail(code)
	default:
		return failBecause(code, problems...)
	}
}

// refuseText is the answer to a call whose text is refused; nil if it is not.
func (s *Server) refuseText(said, place string) error {
	for _, x := range s.refusals {
		if x.Block == "text" && (x.Place == "" || x.Place == place) && lengthOf(said) > shortText {
			return fail("msg_too_long")
		}
	}
	return nil
}

// refuseMethod is the answer to a call of a method that is refused; nil if it is not.
func (s *Server) refuseMethod(method string) error {
	for _, x := range s.refusals {
		if x.Method == method {
			return fail(cmp.Or(x.Code, "unknown_method"))
		}
	}
	return nil
}

func (s *Server) getRefusals(http.ResponseWriter, *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return object{"refused": append([]refusal{}, s.refusals...)}, nil
}

func (s *Server) postRefusal(w http.ResponseWriter, r *http.Request) (any, error) {
	var x refusal
	if err := readControl(w, r, &x); err != nil {
		return nil, err
	}
	if err := x.check(); err != nil {
		return nil, refuse("%s", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = append(s.refusals, x)
	return object{"refused": s.refusals}, nil
}

func (s *Server) deleteRefusals(http.ResponseWriter, *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = nil
	return object{"refused": []refusal{}}, nil
}
