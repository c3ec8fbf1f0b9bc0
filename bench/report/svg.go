// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// Measures of the plot, in pixels.
const (
	plotWidth = 720
	nameWidth = 170
	barHeight = 18
	barStep   = 22
	headStep  = 8  // from a group's name to its first bar
	groupGap  = 22 // after a group's last bar
	plotTop   = 44
)

// WriteSVG draws the CPU time per handshake of whole servers as a ratio to the
// reference: a bar for each candidate of names, a group for each setting. It
// needs no fonts and no scripts, and suits light and dark pages.
func WriteSVG(w io.Writer, title string, records []Record, names []string) error {
	groups := grouped(records, names)
	widest, rows := 1.0, 0
	for _, g := range groups {
		rows += len(g)
		for _, r := range g {
			widest = max(widest, r.Ratio.Median)
		}
	}
	scale := (plotWidth - nameWidth - 60) / widest
	height := plotTop + rows*barStep + len(groups)*(headStep+groupGap)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" fill="#777">`+"\n", plotWidth, height, plotWidth, height)
	fmt.Fprintf(&b, `<text x="0" y="16" font-size="14">%s</text>`+"\n", html.EscapeString(title))
	y := plotTop
	for _, g := range groups {
		fmt.Fprintf(&b, `<text x="0" y="%d" font-weight="bold">%s</text>`+"\n", y, html.EscapeString(heading(g[0].Setting)))
		y += headStep
		for _, r := range g {
			bar(&b, y, scale, r)
			y += barStep
		}
		y += groupGap
	}
	x := nameWidth + scale
	fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#777" stroke-dasharray="3 3"/>`+"\n</svg>\n", x, plotTop, x, height)
	_, err := io.WriteString(w, b.String())
	return err
}

func heading(s Setting) string {
	return fmt.Sprintf("%s, %d callers", map[string]string{"p256": "P-256", "rsa2048": "RSA-2048"}[s.Key], s.Callers)
}

// bar draws one candidate, its key process in another colour.
func bar(b *strings.Builder, y int, scale float64, r Record) {
	colour := "#8a8f98"
	if strings.HasPrefix(r.Name, "tlsd") {
		colour = "#2f6fb3"
	}
	width := r.Ratio.Median * scale
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, nameWidth-8, y+13, html.EscapeString(r.Name))
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, nameWidth, y, width, barHeight, colour)
	if strings.HasPrefix(r.Name, "tlsd") && r.CPU > 0 {
		part := width * float64(r.Helpers) / float64(r.CPU)
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#7fb0e0"/>`, nameWidth+width-part, y, part, barHeight)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d">%.2f</text>`+"\n", nameWidth+width+6, y+13, r.Ratio.Median)
}

// grouped returns the records to draw, setting by setting in their order.
func grouped(records []Record, names []string) (groups [][]Record) {
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	for _, r := range records {
		if r.Part != Servers || r.Resume || r.Version != "1.3" || r.Entries != 1 || !wanted[r.Name] {
			continue
		}
		if last := len(groups) - 1; last >= 0 && groups[last][0].Setting == r.Setting {
			groups[last] = append(groups[last], r)
		} else {
			groups = append(groups, []Record{r})
		}
	}
	return groups
}
