// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package admin tells over HTTP how a framework.Server is doing, and takes the
// few orders that it obeys while it runs.
//
// [New] makes an [Admin]. [Admin.Public] is what anybody may read who can
// connect: /healthz, /readyz and /metrics. [Admin.Private] is all of that and what
// shows more or changes something; it asks nobody who they are, and so belongs on
// loopback or a unix socket. [Serve] serves one of them with bounds. [Ask] is the
// other side, for health checks.
//
// What it is served over is plain HTTP. It shows no key and no password.
package admin

import (
	"context"
	"net/http"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework"
)

// Server is what is told of; *framework.Server is one.
type Server interface {
	// Ready returns nil, or why connections are not to be sent.
	Ready() error
	Keys() *framework.Keys
	// RollTickets makes all session tickets worthless that were issued so far.
	RollTickets()
}

// Levels are the levels of this process's log; *logging.Logger has them.
type Levels interface {
	Levels() map[string]string
	SetLevels(byName map[string]string) error
}

// Config says what there is to tell and to obey. What is nil is not offered.
type Config struct {
	Metrics http.Handler                // of /metrics
	Levels  Levels                      // of /log
	Reload  func(context.Context) error // of /reload; on error the old state is in use
	Pprof   bool                        // whether Private serves profiles
	Log     *zap.Logger                 // nil: none
}

// Admin is the HTTP side of one Server. It is safe for concurrent use.
type Admin struct {
	cfg    Config
	log    *zap.Logger // named admin
	server atomic.Pointer[Server]
	levels *toggle
}

// New returns the HTTP side of a Server that is not there yet: it is alive and
// not ready.
func New(cfg Config) *Admin {
	a := &Admin{cfg: cfg, log: cfg.Log}
	if a.log == nil {
		a.log = zap.NewNop()
	}
	a.log = a.log.Named("admin")
	a.levels = &toggle{set: a.setLevels, now: a.currentLevels, log: a.log}
	return a
}

// Follow has s told of from now on.
func (a *Admin) Follow(s Server) { a.server.Store(&s) }

// KeepLevels is told which levels of the log a new configuration changes, before they
// are set in this process: they stay, whatever was set for a time before.
func (a *Admin) KeepLevels(changed map[string]string) { a.levels.forget(changed) }

// Close takes back levels of the log that were set for a time.
func (a *Admin) Close() { a.levels.close() }

// Public returns what may be read by anybody.
func (a *Admin) Public() http.Handler { return newPages(a.public()) }

// Private returns everything. It refuses what a browser sends for a page of
// somebody else.
func (a *Admin) Private() http.Handler {
	return guard(newPages(append(a.public(), a.private()...)))
}

func (a *Admin) public() []page {
	pages := []page{
		{path: "/healthz", get: a.health, what: "200 while the process is alive"},
		{path: "/readyz", get: a.ready, what: "200 while connections are served, else 503 and why not"},
	}
	if a.cfg.Metrics != nil {
		pages = append(pages, page{path: "/metrics", get: a.cfg.Metrics.ServeHTTP, what: "counters for Prometheus"})
	}
	return pages
}

func (a *Admin) private() []page {
	pages := []page{
		{path: "/keystores", get: a.keystores, what: "the entries of all keystores"},
		{path: "/tickets/roll", post: a.rollTickets, what: "POST makes all session tickets worthless that were issued so far"},
	}
	if a.cfg.Levels != nil {
		pages = append(pages, page{path: "/log", get: a.showLevels, put: a.putLevels,
			what: `levels of the log; PUT {"keymanager": "debug"} sets them, ?for=10m for a time`})
	}
	if a.cfg.Reload != nil {
		pages = append(pages, page{path: "/reload", post: a.reload, what: "POST reads anew what SIGHUP does, and says how it went"})
	}
	if a.cfg.Pprof {
		pages = append(pages, profiles()...)
	}
	return pages
}

func (a *Admin) health(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") }

func (a *Admin) ready(w http.ResponseWriter, _ *http.Request) {
	server := a.server.Load()
	if server == nil {
		say(w, http.StatusServiceUnavailable, "not ready: starting")
		return
	}
	if err := (*server).Ready(); err != nil {
		say(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return
	}
	say(w, http.StatusOK, "ready")
}

// present returns the Server, or answers that there is none yet.
func (a *Admin) present(w http.ResponseWriter) Server {
	server := a.server.Load()
	if server == nil {
		say(w, http.StatusServiceUnavailable, "the key manager is not open yet: try again when /readyz says so")
		return nil
	}
	return *server
}
