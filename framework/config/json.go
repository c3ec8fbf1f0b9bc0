// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// parseJSON goes by tokens, since encoding/json drops all but the last of
// repeated keys and tells no lines.
func parseJSON(raw []byte) (*node, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return &node{kind: kindNull}, nil
	}
	p := jsonParser{raw: raw, dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	n, err := p.value()
	if err == nil && p.dec.More() {
		err = errors.New("a second document; only one can be read")
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", p.line(), err)
	}
	return n, nil
}

type jsonParser struct {
	raw []byte
	dec *json.Decoder
}

// line returns the line of the token that was read last.
func (p *jsonParser) line() int {
	return 1 + bytes.Count(p.raw[:p.dec.InputOffset()], []byte("\n"))
}

func (p *jsonParser) value() (*node, error) {
	tok, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &node{line: p.line()}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			n.kind = kindMapping
			return n, p.members(n)
		}
		n.kind = kindList
		return n, p.elements(n)
	case string:
		n.kind, n.scalar = kindText, tok
	case json.Number:
		n.kind, n.scalar = kindNumber, tok
	case bool:
		n.kind, n.scalar = kindBool, tok
	default:
		n.kind = kindNull
	}
	return n, nil
}

func (p *jsonParser) members(n *node) error {
	for p.dec.More() {
		key, err := p.dec.Token()
		if err != nil {
			return err
		}
		line := p.line()
		value, err := p.value()
		if err != nil {
			return err
		}
		n.fields = append(n.fields, field{key: key.(string), line: line, value: value})
	}
	_, err := p.dec.Token()
	return err
}

func (p *jsonParser) elements(n *node) error {
	for p.dec.More() {
		item, err := p.value()
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := p.dec.Token()
	return err
}
