// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/admin"
	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/metrics"
	"github.com/tlsd/tlsd/logging"
)

// monitor is what --metrics and --admin serve. Where neither is given it does
// nothing, and nothing is counted.
type monitor struct {
	metrics *metrics.Metrics // nil: neither is given
	admin   *admin.Admin
	sites   []site
	log     *zap.Logger

	mu     sync.Mutex // guards what follows
	closed bool
	stops  []func() // of what is served
}

// site is one address and what it serves.
type site struct {
	ln net.Listener
	h  http.Handler
}

// newMonitor listens where eff says. Nothing is answered until start.
func newMonitor(ctx context.Context, eff *config.Effective, log *logging.Logger, bind framework.BindFunc, orders admin.Config) (_ *monitor, err error) {
	m := &monitor{log: log.Zap()}
	if eff.Metrics == "" && eff.Admin == "" {
		return m, nil
	}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	m.metrics = metrics.New(buildVersion())
	orders.Metrics, orders.Levels, orders.Log, orders.Pprof = m.metrics.Handler(), log, log.Zap(), eff.Pprof
	m.admin = admin.New(orders)
	if eff.Metrics != "" {
		if err := m.listen(ctx, bind, "metrics", eff.Metrics, m.admin.Public()); err != nil {
			return nil, err
		}
	}
	if eff.Admin != "" {
		// A socket's file is its owner's from the first moment. No file is made
		// meanwhile: nothing else runs yet.
		defer syscall.Umask(syscall.Umask(0o177))
		if err := m.listen(ctx, bind, "admin", eff.Admin, m.admin.Private()); err != nil {
			return nil, err
		}
		if tcp, ok := m.sites[len(m.sites)-1].ln.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
			return nil, fmt.Errorf("admin: %q is %s, which can be reached from other machines; give an address of loopback with --admin ADDR", eff.Admin, tcp)
		}
	}
	return m, nil
}

func (m *monitor) listen(ctx context.Context, bind framework.BindFunc, what, address string, h http.Handler) error {
	ln, err := bind(ctx, address)
	var refused *framework.ListenError
	if errors.As(err, &refused) {
		err = refused.Err // the rest of it is about other flags
	}
	if err != nil {
		return &status{exitMachine, fmt.Errorf("%s: listen on %q: %w: end what uses it, or choose another with --%s ADDR", what, address, err, what)}
	}
	m.sites = append(m.sites, site{ln, h})
	return nil
}

// observer is what the server is to tell.
func (m *monitor) observer() framework.Observer {
	if m.metrics == nil {
		return framework.Observer{}
	}
	return m.metrics.Observer()
}

// follow has server told of.
func (m *monitor) follow(server *framework.Server) {
	if m.metrics != nil {
		m.metrics.Follow(server)
		m.admin.Follow(server)
	}
}

// keepLevels is told which levels of the log a reload changes.
func (m *monitor) keepLevels(changed map[string]string) {
	if m.admin != nil {
		m.admin.KeepLevels(changed)
	}
}

// start begins to answer. It is called once.
func (m *monitor) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	for _, s := range m.sites {
		m.log.Named("admin").Info("listening", zap.Stringer("address", s.ln.Addr()))
		m.stops = append(m.stops, admin.Serve(s.ln, s.h, m.log))
	}
}

// close ends it all. A second time does nothing.
func (m *monitor) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.closed = true
	for _, stop := range m.stops {
		stop()
	}
	for _, s := range m.sites {
		_ = s.ln.Close() // where it was served it is closed
	}
	if m.admin != nil {
		m.admin.Close()
	}
}

// portUnknown reports whether the port of address is chosen when tlsd starts.
func portUnknown(address string) bool {
	return !strings.HasPrefix(address, "unix:") && strings.HasSuffix(address, ":0")
}
