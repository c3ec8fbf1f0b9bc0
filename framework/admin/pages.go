// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/tlsd/tlsd/logging"
)

// page is one path and what it takes.
type page struct {
	path, what     string // what: for the index; empty: not listed
	below          bool   // takes all paths below too
	get, put, post http.HandlerFunc
}

// pages finds the page of a path. What is wrong is answered with what is right.
type pages []page

func newPages(all []page) http.Handler { return pages(all) }

func (all pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.URL.Path == "/" {
		page{path: "/", get: all.index}.ServeHTTP(w, r)
		return
	}
	for _, p := range all {
		if r.URL.Path == p.path || p.below && strings.HasPrefix(r.URL.Path, p.path) {
			p.ServeHTTP(w, r)
			return
		}
	}
	say(w, http.StatusNotFound, "there is no "+r.URL.Path+" here; there are:\n"+all.list())
}

func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handlers := map[string]http.HandlerFunc{
		http.MethodGet: p.get, http.MethodHead: p.get, http.MethodPut: p.put, http.MethodPost: p.post,
	}
	if h := handlers[r.Method]; h != nil {
		h(w, r)
		return
	}
	var takes []string
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost} {
		if handlers[m] != nil {
			takes = append(takes, m)
		}
	}
	w.Header().Set("Allow", strings.Join(takes, ", "))
	say(w, http.StatusMethodNotAllowed, p.path+" takes "+strings.Join(takes, ", ")+" and not "+r.Method)
}

func (all pages) index(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, all.list()) }

func (all pages) list() string {
	var text strings.Builder
	for _, p := range all {
		if p.what != "" {
			fmt.Fprintf(&text, "%-15s %s\n", p.path, p.what)
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// say answers in words, which may hold what others have said.
func say(w http.ResponseWriter, code int, text string) {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = logging.Printable(lines[i])
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, strings.Join(lines, "\n")+"\n") // who asked may be gone
}

// tell answers with a value as JSON.
func tell(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(value) // who asked may be gone
}

// profiles are what go tool pprof asks. The command line is left out: a -D may hold
// a password.
func profiles() []page {
	return []page{
		{path: "/debug/pprof/profile", get: pprof.Profile},
		{path: "/debug/pprof/symbol", get: pprof.Symbol, post: pprof.Symbol},
		{path: "/debug/pprof/trace", get: pprof.Trace},
		{path: "/debug/pprof/", get: pprof.Index, below: true, what: "profiles, for go tool pprof"},
	}
}
