// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// node is one value of a configuration file and where it stands. Beside viper,
// which decodes values, the tree is what knows lines, repeated keys and the
// keys' own case.
type node struct {
	line   int // from 1; 0: not known
	kind   kind
	fields []field // of a mapping, in file order
	items  []*node // of a list
	scalar any     // of the other kinds, as encoding/json would have it
}

type field struct {
	key   string
	line  int
	value *node
}

type kind string

const (
	kindMapping kind = "a mapping"
	kindList    kind = "a list"
	kindText    kind = "text"
	kindNumber  kind = "a number"
	kindBool    kind = "true or false"
	kindNull    kind = "nothing"
)

// parse reads a document in one of the formats of formatOf.
func parse(format string, raw []byte) (*node, error) {
	switch format {
	case "json":
		return parseJSON(raw)
	case "toml":
		return parseTOML(raw)
	}
	return parseYAML(raw)
}

func parseYAML(raw []byte) (*node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return &node{kind: kindNull}, nil
		}
		return nil, explainYAML(err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("line %d: a second document; only one can be read", second.Line)
	case !errors.Is(err, io.EOF):
		return nil, explainYAML(err)
	}
	// Decoding once refuses anchors that contain themselves and runaway
	// aliases. What it says of repeated keys, the checker says better.
	var v any
	var repeated *yaml.TypeError
	if err := doc.Decode(&v); err != nil && !errors.As(err, &repeated) {
		return nil, err
	}
	return fromYAML(&doc)
}

// explainYAML adds what is behind the parser's commonest complaint.
func explainYAML(err error) error {
	if strings.Contains(err.Error(), "cannot start any token") {
		return fmt.Errorf("%w: YAML is indented with blanks, never with tabs, and a value that begins with @, %% or ` needs quotes", err)
	}
	return err
}

func fromYAML(y *yaml.Node) (*node, error) {
	switch y.Kind {
	case yaml.DocumentNode:
		return fromYAML(y.Content[0])
	case yaml.AliasNode:
		return fromYAML(y.Alias)
	case yaml.MappingNode:
		return yamlMapping(y)
	case yaml.SequenceNode:
		n := &node{line: y.Line, kind: kindList}
		for _, c := range y.Content {
			item, err := fromYAML(c)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		return n, nil
	}
	return yamlScalar(y)
}

func yamlMapping(y *yaml.Node) (*node, error) {
	n := &node{line: y.Line, kind: kindMapping}
	var merged []field
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		value, err := fromYAML(y.Content[i+1])
		if err != nil {
			return nil, err
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, mergedFields(value)...)
			continue
		}
		n.fields = append(n.fields, field{key: key.Value, line: key.Line, value: value})
	}
	for _, f := range merged {
		if n.child(f.key) == nil {
			n.fields = append(n.fields, f)
		}
	}
	return n, nil
}

// mergedFields returns what "<<" brings in: the fields of a mapping, or of a
// list of them.
func mergedFields(n *node) []field {
	fields := slices.Clone(n.fields)
	for _, item := range n.items {
		fields = append(fields, item.fields...)
	}
	return fields
}

func yamlScalar(y *yaml.Node) (*node, error) {
	n := &node{line: y.Line}
	switch y.ShortTag() {
	case "!!null":
		n.kind = kindNull
		return n, nil
	case "!!bool":
		n.kind = kindBool
	case "!!int", "!!float":
		n.kind = kindNumber
	default:
		n.kind, n.scalar = kindText, y.Value
		return n, nil
	}
	if err := y.Decode(&n.scalar); err != nil {
		return nil, err
	}
	return n, nil
}

// parseTOML goes through viper's decoder, which keeps the keys' case.
func parseTOML(raw []byte) (*node, error) {
	dec, err := viper.NewCodecRegistry().Decoder("toml")
	if err != nil {
		return nil, err
	}
	m := map[string]any{}
	err = dec.Decode(raw, m)
	if at, ok := err.(interface{ Position() (line, column int) }); ok {
		line, _ := at.Position()
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	if err != nil {
		return nil, err
	}
	return fromValue(m), nil
}

func fromValue(v any) *node {
	switch v := v.(type) {
	case map[string]any:
		n := &node{kind: kindMapping}
		for key, value := range v {
			n.fields = append(n.fields, field{key: key, value: fromValue(value)})
		}
		slices.SortFunc(n.fields, func(a, b field) int { return strings.Compare(a.key, b.key) })
		return n
	case []any:
		n := &node{kind: kindList}
		for _, item := range v {
			n.items = append(n.items, fromValue(item))
		}
		return n
	case bool:
		return &node{kind: kindBool, scalar: v}
	case int64, float64:
		return &node{kind: kindNumber, scalar: v}
	case string:
		return &node{kind: kindText, scalar: v}
	}
	return &node{kind: kindText, scalar: fmt.Sprint(v)} // TOML's dates and times
}

// at returns the value at a path such as listeners[0].tls, or nil.
func (n *node) at(path string) *node {
	for _, step := range steps(path) {
		if n == nil {
			return nil
		}
		n = n.child(step)
	}
	return n
}

func (n *node) child(step string) *node {
	for i, item := range n.items {
		if step == fmt.Sprintf("[%d]", i) {
			return item
		}
	}
	for _, f := range n.fields {
		if f.key == step {
			return f.value
		}
	}
	return nil
}

// steps splits a.b[0].c into a, b, [0], c.
func steps(path string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(path, "[", ".["), func(r rune) bool { return r == '.' })
}

// value returns the tree as encoding/json would decode it, keys in their own
// case.
func (n *node) value() any {
	switch n.kind {
	case kindMapping:
		m := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			m[f.key] = f.value.value()
		}
		return m
	case kindList:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.value()
		}
		return list
	}
	return n.scalar
}
