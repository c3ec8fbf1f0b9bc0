// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
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
// started with. -D options of ours count; everything else means nothing here and
// is noted.
func parseOpts(s string) (props []prop, notes []string, err error) {
	words, err := splitWords(s)
	if err != nil {
		return nil, nil, err
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "-D" && i+1 < len(words) {
			i++
			w += words[i]
		}
		if !strings.HasPrefix(w, "-D") {
			notes = append(notes, idleWord(w, i))
			if takesValue(w) && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				i++
			}
			continue
		}
		p, err := parseProperty(w[2:])
		if err != nil {
			return nil, nil, err
		}
		if !ours(p.name) {
			notes = append(notes, fmt.Sprintf("-D %s in %s is not tlsd's and has no effect", p.name, EnvOpts))
			continue
		}
		props = append(props, p)
	}
	return props, notes, nil
}

// idleWord notes a word that has no effect. One that is not known is not shown:
// it may be the second half of a password with a blank in it.
func idleWord(w string, i int) string {
	name := w
	if n := strings.IndexAny(w, ":="); n > 0 && !strings.HasPrefix(w, "-X") {
		name = w[:n]
	}
	switch {
	case strings.HasPrefix(w, "-X"), takesValue(w), slices.Contains(jvmOptions(), name):
		return fmt.Sprintf("%s in %s is a JVM's option and has no effect", name, EnvOpts)
	case slices.ContainsFunc(flagDefs(), func(f flagDef) bool { return "--"+f.name == name }):
		return fmt.Sprintf("%s in %s has no effect: it belongs on the command line", name, EnvOpts)
	}
	return fmt.Sprintf("word %d in %s has no effect: it is no option that is known; a value with a blank in it needs quotes", i+1, EnvOpts)
}

// takesValue reports whether the word after w is w's value, as java(1) has it.
func takesValue(w string) bool {
	return slices.Contains([]string{
		"-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "-jar", "-m", "--module",
		"-d", "--describe-module", "--add-modules", "--add-opens", "--add-exports", "--add-reads", "--limit-modules",
		"--patch-module", "--enable-native-access", "--source",
	}, w)
}

// jvmOptions lists what java(1) knows beside -D, -X and the options that take a
// value after a blank or "=".
func jvmOptions() []string {
	return []string{
		"-server", "-client", "-ea", "-enableassertions", "-da", "-disableassertions", "-esa", "-enablesystemassertions",
		"-dsa", "-disablesystemassertions", "-javaagent", "-agentlib", "-agentpath", "-splash", "-verbose", "-version",
		"-showversion", "--show-version", "-d32", "-d64", "--enable-preview", "--illegal-access", "--illegal-native-access",
		"--finalization", "--sun-misc-unsafe-memory-access", "--validate-modules", "--module-path", "--upgrade-module-path",
		"--class-path", "--module", "--add-modules", "--add-opens", "--add-exports", "--add-reads", "--limit-modules",
		"--patch-module", "--enable-native-access",
	}
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
