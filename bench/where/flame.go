// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"maps"
	"slices"
	"strings"
)

// Measures of a flame graph, in pixels.
const (
	flameWidth = 1200
	flameTop   = 24
	frameStep  = 17
	charWidth  = 6.5
	leastShare = 0.004 // of all samples; what is less is left out
)

// node is a function with what it called, and in how many samples it was.
type node struct {
	samples int
	calls   map[string]*node
}

func (n *node) add(s Stack) {
	n.samples++
	if len(s) == 0 {
		return
	}
	if n.calls == nil {
		n.calls = map[string]*node{}
	}
	if n.calls[s[0]] == nil {
		n.calls[s[0]] = &node{}
	}
	n.calls[s[0]].add(s[1:])
}

func (n *node) depth(least int) int {
	deepest := 0
	for _, c := range n.calls {
		if c.samples >= least {
			deepest = max(deepest, 1+c.depth(least))
		}
	}
	return deepest
}

// WriteFlame draws the stacks as a flame graph, callers above what they call:
// widths are shares of the samples, and a tooltip has the whole name.
func WriteFlame(w io.Writer, title string, stacks []Stack) error {
	var root node
	for _, s := range stacks {
		root.add(s)
	}
	f := flame{least: max(1, int(leastShare*float64(root.samples))), scale: flameWidth / float64(max(1, root.samples))}
	height := flameTop + frameStep*root.depth(f.least)
	fmt.Fprintf(&f.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="monospace" font-size="11">`+"\n", flameWidth, height, flameWidth, height)
	fmt.Fprintf(&f.b, `<text x="0" y="15" font-size="14" font-family="sans-serif" fill="#777">%s</text>`+"\n", html.EscapeString(title))
	f.draw(&root, 0, flameTop)
	f.b.WriteString("</svg>\n")
	_, err := io.WriteString(w, f.b.String())
	return err
}

type flame struct {
	b     strings.Builder
	least int
	scale float64 // pixels of a sample
}

// draw draws what n called, from x on.
func (f *flame) draw(n *node, x float64, y int) {
	for _, name := range slices.Sorted(maps.Keys(n.calls)) {
		c := n.calls[name]
		if c.samples < f.least {
			continue
		}
		width := float64(c.samples) * f.scale
		fmt.Fprintf(&f.b, `<g><title>%s: %.1f %%</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`,
			html.EscapeString(name), width/flameWidth*100, x, y, width-0.3, frameStep-1, colourOf(name))
		if fits := int(width/charWidth) - 1; fits >= 3 {
			fmt.Fprintf(&f.b, `<text x="%.1f" y="%d">%s</text>`, x+3, y+12, html.EscapeString(name[:min(fits, len(name))]))
		}
		f.b.WriteString("</g>\n")
		f.draw(c, x, y+frameStep)
		x += width
	}
}

// colourOf gives the functions of one package one colour.
func colourOf(name string) string {
	pkg, _, _ := strings.Cut(name, ".")
	h := fnv.New32a()
	h.Write([]byte(pkg))
	return fmt.Sprintf("hsl(%d,55%%,70%%)", h.Sum32()%360)
}
