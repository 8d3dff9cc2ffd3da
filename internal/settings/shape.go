package settings

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// shaped is a type with its own UnmarshalYAML. It describes its valid values.
type shaped interface{ shape() shape }

// shape describes valid values.
type shape struct {
	scalar, list, mapping bool
	item                  reflect.Type // of a list; nil: any
	wanted                string       // what to write
}

func (channelYAML) shape() shape {
	return shape{scalar: true, mapping: true, wanted: "a project's name, or project:, roles: and replies:"}
}

func (repoYAML) shape() shape {
	return shape{scalar: true, mapping: true, wanted: "a repository's address, or repo: and base:"}
}

func (names) shape() shape {
	return shape{scalar: true, list: true, item: reflect.TypeFor[string](), wanted: "a name, or a list of names such as [one, another]"}
}

func (duration) shape() shape {
	return shape{scalar: true, wanted: "a duration of at least a second and at most 2562047h, such as 24h"}
}

func (dollars) shape() shape { return shape{scalar: true, wanted: "US dollars, such as 2.50"} }

func (sandboxYAML) shape() shape {
	return shape{scalar: true, mapping: true, wanted: "the kind of a sandbox, or a mapping with kind: and what else is to be said"}
}

func (networkYAML) shape() shape {
	return shape{scalar: true, list: true, mapping: true, wanted: networkForms}
}

// shapeOf describes the valid values of a type.
func shapeOf(t reflect.Type) shape {
	if s, ok := reflect.TypeAssert[shaped](reflect.Zero(t)); ok {
		return s.shape()
	}
	switch t.Kind() {
	case reflect.Struct:
		_, keys := inside(t, "")
		return shape{mapping: true, wanted: "a mapping with some of the keys " + strings.Join(keys, ", ")}
	case reflect.Map:
		return shape{mapping: true, wanted: "a mapping: a name, a colon and what belongs to it"}
	case reflect.Slice:
		s := shape{list: true, item: t.Elem()}
		switch t.Elem().Kind() {
		case reflect.Int:
			s.wanted = "a list of whole numbers, such as [50, 80]"
		case reflect.String:
			s.wanted = "a list, such as [one, another]"
		default:
			s.wanted = "a list: each entry begins with -"
		}
		return s
	case reflect.Bool:
		return shape{scalar: true, wanted: "true or false"}
	case reflect.Int:
		return shape{scalar: true, wanted: "a whole number such as 2"}
	}
	return shape{scalar: true, wanted: "one word or one text"}
}

// maxDepth bounds the depth of a file; valid ones are shallower.
const maxDepth = 32

// shapes checks that scalars, lists and mappings are where their types want them. It repeats no values, which may
// be secret. It skips aliases.
func (v *validation) shapes(at string, n ast.Node, t reflect.Type, depth int) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if depth > maxDepth {
		return
	}
	s := shapeOf(t)
	ok := true
	switch n := n.(type) {
	case *ast.AnchorNode:
		v.shapes(at, n.Value, t, depth+1)
	case *ast.TagNode:
		ok, s.wanted = false, "it without the tag that stands before it"
	case *ast.AliasNode, *ast.NullNode, *ast.CommentGroupNode, nil:
	case *ast.SequenceNode:
		if ok = s.list; ok && s.item != nil {
			for i, item := range n.Values {
				v.shapes(fmt.Sprintf("%s[%d]", at, i), item, s.item, depth+1)
			}
		}
	case ast.MapNode:
		if ok = s.mapping; ok {
			for i := n.MapRange(); i.Next(); {
				key := i.Key().GetToken().Value
				if below, _ := inside(t, key); below != nil {
					v.shapes(at+"."+key, i.Value(), below, depth+1)
				}
			}
		}
	case ast.ScalarNode:
		switch ok = s.scalar; {
		case ok && t.Kind() == reflect.Bool:
			_, ok = n.(*ast.BoolNode)
		case ok && t == reflect.TypeFor[duration]():
			ok = new(duration).read(n.GetToken().Value) == nil
		case ok && t.Kind() == reflect.Int:
			ok = wholeNumber(n)
		}
	}
	if !ok {
		if strings.HasSuffix(at, ".repo") {
			s.wanted = "one address; " + furtherRepositories
		}
		t := n.GetToken()
		v.wrong = append(v.wrong, fmt.Sprintf("%s:%d:%d: %swrite %s", v.file, t.Position.Line, t.Position.Column, keyOf(at), s.wanted))
	}
}

// wholeNumber reports whether a number is a valid count.
func wholeNumber(n ast.ScalarNode) bool {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return false
	}
	switch value := i.Value.(type) {
	case int64:
		return value == int64(int32(value)) //nolint:gosec // that is the question
	case uint64:
		return value <= 1<<31-1
	}
	return false
}

// keyOf is a path for people, with a colon after it; empty for the file itself.
func keyOf(at string) string {
	if key := strings.TrimPrefix(strings.TrimPrefix(at, "$"), "."); key != "" {
		return key + ": "
	}
	return ""
}
