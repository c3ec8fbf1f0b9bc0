// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progress is one line on a terminal that says how many keys have been tried.
// It comes where that takes long, and goes when it is done.
type progress struct {
	w    io.Writer // nil: no terminal
	now  func() time.Time
	next time.Time // when to write next
	seen bool
}

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

func newProgress(w io.Writer) *progress {
	p := &progress{now: time.Now}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.w = w
	}
	p.next = p.now().Add(progressAfter)
	return p
}

func (p *progress) step(done, total int) {
	now := p.now()
	if p.w == nil || now.Before(p.next) {
		return
	}
	p.seen, p.next = true, now.Add(progressEvery)
	fmt.Fprintf(p.w, "\rdecrypting keys to see that they are good: %d of %d", done, total)
}

func (p *progress) end() {
	if p.seen {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
