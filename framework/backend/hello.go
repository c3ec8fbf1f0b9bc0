// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"crypto/sha256"
	_ "embed" // for the templates
	"encoding/base64"
	htmltemplate "html/template"
	"io"
	"net/http"
	"strings"
	texttemplate "text/template"
)

//go:embed hello.html
var helloHTML string

//go:embed hello.css
var helloCSS string

//go:embed hello.txt
var helloText string

// hello is the built-in page.
type hello struct {
	html   *htmltemplate.Template
	text   *texttemplate.Template
	policy string // Content-Security-Policy
}

// NewHello returns the built-in page, which shows the reader's own connection
// and what served it: HTML for browsers, text for everybody else. It answers GET
// and HEAD at any path, loads nothing and runs no script.
func NewHello() http.Handler {
	digest := sha256.Sum256([]byte(helloCSS))
	return &hello{
		html: htmltemplate.Must(htmltemplate.New("hello.html").Parse(helloHTML)),
		text: texttemplate.Must(texttemplate.New("hello.txt").Parse(helloText)),
		policy: "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}

// page is what the templates show.
type page struct {
	Groups []group
	CSS    htmltemplate.CSS
}

func (p *hello) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD here", http.StatusMethodNotAllowed)
		return
	}
	p.write(w, r, page{Groups: connectionFacts(r), CSS: htmltemplate.CSS(helloCSS)})
}

// write writes the page, whole or not at all: a template that fails is a bug.
func (p *hello) write(w http.ResponseWriter, r *http.Request, data page) {
	var body strings.Builder
	kind, execute := "text/plain", func() error { return p.text.Execute(&body, data) }
	if wantsHTML(r.Header["Accept"]) {
		kind, execute = "text/html", func() error { return p.html.Execute(&body, data) }
		w.Header().Set("Content-Security-Policy", p.policy)
	}
	if err := execute(); err != nil {
		plainError(w, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	if r.Method == http.MethodHead {
		return
	}
	_, _ = io.WriteString(w, body.String()) // fails only if the client is gone
}

// wantsHTML reports whether an Accept field names HTML and does not refuse it,
// which browsers do and command line clients don't.
func wantsHTML(accept []string) bool {
	for _, item := range strings.Split(strings.Join(accept, ","), ",") {
		kind, params, _ := strings.Cut(strings.ToLower(item), ";")
		if strings.TrimSpace(kind) != "text/html" {
			continue
		}
		q := strings.ReplaceAll(params, " ", "")
		return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
	}
	return false
}
