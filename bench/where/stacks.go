// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package where reads what perf and strace saw of servers: stacks, which become
// shares and flame graphs, and counts of system calls.
package where

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Stack is one sample: functions from the outermost to the one that ran.
type Stack []string

// ReadStacks reads what "perf script -F pid,ip,sym" writes, and returns the
// samples of each process.
func ReadStacks(r io.Reader) (map[int][]Stack, error) {
	all := map[int][]Stack{}
	var stack Stack // innermost first
	pid := 0
	flush := func() {
		if len(stack) > 0 {
			all[pid] = append(all[pid], outermostFirst(stack))
		}
		stack = nil
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		_, symbol, isFrame := strings.Cut(line, " ")
		switch {
		case line == "":
			flush()
		case isFrame:
			stack = append(stack, shorten(symbol))
		default:
			flush()
			var err error
			if pid, err = strconv.Atoi(line); err != nil {
				return nil, fmt.Errorf("read stacks: %q is no process id", line)
			}
		}
	}
	flush()
	return all, lines.Err()
}

func outermostFirst(s Stack) Stack {
	turned := make(Stack, len(s))
	for i, f := range s {
		turned[len(s)-1-i] = f
	}
	return turned
}

// shorten drops what says nothing to a reader: the ABI of assembly, type
// parameters, and all of a package's path but its end.
func shorten(symbol string) string {
	symbol, _, _ = strings.Cut(symbol, "[go.shape")
	symbol = strings.TrimSuffix(symbol, ".abi0")
	prefix, name := "", symbol
	if i := strings.IndexByte(symbol, '('); i >= 0 { // a receiver may name packages too
		prefix, name = symbol[:i], symbol[i:]
	} else {
		prefix, name = symbol, ""
	}
	return prefix[strings.LastIndexByte(prefix, '/')+1:] + name
}
