package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"deckhand/internal/spelling"
)

// severalRepositories are keys that people try for several repositories in one project.
var severalRepositories = []string{"repositories", "dirs", "add_dirs", "additional_directories", "additionalDirectories"}

// furtherRepositories says how they are written.
const furtherRepositories = "a project's further repositories are under repos, a short name and an address each: repos: {lib: https://…}"

// unknownKey suggests the meant key, or lists the known ones.
func unknownKey(tree *ast.File, key *token.Token) string {
	text := fmt.Sprintf("there is no key %q here", key.Value)
	if slices.Contains(severalRepositories, key.Value) {
		return text + "; " + furtherRepositories
	}
	var known []string
	for _, doc := range tree.Docs {
		if known = keysBeside(doc.Body, reflect.TypeFor[document](), key); known != nil {
			break
		}
	}
	if near := spelling.Nearest(key.Value, known); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", text, near)
	}
	if known != nil {
		return fmt.Sprintf("%s; there are %s", text, strings.Join(known, ", "))
	}
	return text
}

// keysBeside walks a node along its Go type, and returns the keys that are possible instead of key; nil if key is
// not below the node.
func keysBeside(n ast.Node, t reflect.Type, key *token.Token) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		return keysBeside(n.Value, t, key)
	case *ast.SequenceNode:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for _, v := range n.Values {
			if known := keysBeside(v, t.Elem(), key); known != nil {
				return known
			}
		}
	case ast.MapNode:
		for i := n.MapRange(); i.Next(); {
			at := i.Key().GetToken()
			below, known := inside(t, at.Value)
			if known != nil && at.Position.Line == key.Position.Line && at.Position.Column == key.Position.Column {
				return known
			}
			if below == nil {
				continue
			}
			if known := keysBeside(i.Value(), below, key); known != nil {
				return known
			}
		}
	}
	return nil
}

// inside is the type of t's value under a key, nil if there is none, and t's keys if it is a struct.
func inside(t reflect.Type, key string) (below reflect.Type, keys []string) {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), nil
	case reflect.Struct:
		for f := range t.Fields() {
			name := f.Tag.Get("yaml")
			keys = append(keys, name)
			if name == key {
				below = f.Type
			}
		}
	}
	return below, keys
}
