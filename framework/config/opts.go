// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// prop is one -D option.
type prop struct {
	name, value string
	hasValue    bool // there was a "="
}

func parseProperty(s string) (prop, error) {
	name, value, found := strings.Cut(s, "=")
	if name == "" {
		return prop{}, errors.New("-D without a name: write -D NAME=VALUE")
	}
	return prop{name, value, found}, nil
}

func parseProperties(options []string) ([]prop, error) {
	var props []prop
	for _, o := range options {
		p, err := parseProperty(o)
		if err != nil {
			return nil, err
		}
		props = append(props, p)
	}
	return props, nil
}

// parseOpts reads TLSD_OPTS, into which an operator pastes what a JVM was
// started with: -D options, and -X options, which mean nothing here and are
// noted. Properties of other programs are noted too. Anything else is refused.
func parseOpts(s string) (props []prop, notes []string, err error) {
	words, err := splitWords(s)
	if err != nil {
		return nil, nil, err
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "-D" && i+1 < len(words):
			i++
			w = "-D" + words[i]
			fallthrough
		case strings.HasPrefix(w, "-D"):
			p, err := parseProperty(w[2:])
			if err != nil {
				return nil, nil, err
			}
			if !ours(p.name) {
				notes = append(notes, fmt.Sprintf("-D %s in %s is not tlsd's and has no effect", p.name, EnvOpts))
				continue
			}
			props = append(props, p)
		case strings.HasPrefix(w, "-X"):
			notes = append(notes, fmt.Sprintf("%s in %s is a JVM's option and has no effect", w, EnvOpts))
		default:
			// The word itself is not shown: it may be the second half of a
			// password with a blank in it.
			return nil, nil, fmt.Errorf("word %d is no -D or -X option; others belong on the command line, and a value with a blank in it needs quotes", i+1)
		}
	}
	return props, notes, nil
}

// splitWords splits as a shell does: blanks part words, quotes of both kinds
// and a backslash keep them together. Nothing is expanded.
func splitWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	started, quote, escaped := false, rune(0), false
	for _, r := range s {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, started = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, started = r, true
		case unicode.IsSpace(r):
			if started {
				words = append(words, word.String())
				word.Reset()
				started = false
			}
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if started {
		words = append(words, word.String())
	}
	return words, nil
}
