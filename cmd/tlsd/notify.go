// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	sdnotify "github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

// How long the manager may be too busy to take what it is told. It may not keep tlsd
// from acting on signals; but without the word that tlsd serves it would end it.
const (
	tellTimeout  = time.Second
	readyTimeout = 5 * time.Second
)

// manager is the service manager that started tlsd, which is told what tlsd does
// by the protocol of sd_notify(3). Without $NOTIFY_SOCKET there is none, and
// nothing happens.
type manager struct {
	log *zap.Logger

	mu    sync.Mutex
	told  bool // that tlsd is ready; guarded by mu
	quiet bool // another process has the manager's attention; guarded by mu
}

// ready says that tlsd serves at addrs. A process that takes another's place says
// too that it is the service now, before the other ends: systemd takes the end
// of the main process for the end of the service.
func (m *manager) ready(addrs []net.Addr, instead bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = true
	var where []string
	for _, a := range addrs {
		where = append(where, a.String())
	}
	state := []string{sdnotify.SdNotifyReady, "STATUS=serving on " + strings.Join(where, ", ")}
	if instead {
		state = append([]string{mainPID()}, state...)
	}
	m.tellWithin(readyTimeout, state...)
}

// stays says that the service is still this process, after another failed to
// take its place.
func (m *manager) stays() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell(mainPID(), "STATUS=serving; an upgrade failed")
}

func mainPID() string { return fmt.Sprintf("MAINPID=%d", os.Getpid()) }

// reloading says that a reload has begun; it returns what says how it ended.
// Before tlsd is ready neither says anything: it would be taken for ready.
func (m *manager) reloading() (ended func(error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.told {
		return func(error) {}
	}
	m.tell(sdnotify.SdNotifyReloading, strings.TrimSpace(sdnotify.SdNotifyMonotonicUsec()), "STATUS=reloading")
	return func(err error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		status := "serving; reloaded"
		if err != nil {
			status = "serving; reload failed: " + err.Error()
		}
		m.tell(sdnotify.SdNotifyReady, "STATUS="+logging.Printable(status))
	}
}

// stopping says that tlsd ends.
func (m *manager) stopping() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell(sdnotify.SdNotifyStopping, "STATUS=waiting for open connections to end")
}

// alive says that tlsd still acts on what it is told, unless something else is being
// said.
func (m *manager) alive() {
	if !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	m.tell(sdnotify.SdNotifyWatchdog)
}

// handOver leaves it to another process to say anything.
func (m *manager) handOver() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quiet = true
}

// watchdog returns the interval by which the manager wants to hear of this
// process, with room to be late, or 0.
func (m *manager) watchdog(instead bool) time.Duration {
	if instead { // it names the process before
		_ = os.Unsetenv("WATCHDOG_PID")
	}
	limit, err := sdnotify.SdWatchdogEnabled(false)
	if err != nil {
		m.log.Warn("watchdog", zap.Error(err))
	}
	return limit / 2
}

// tell is called with mu held.
func (m *manager) tell(state ...string) { m.tellWithin(tellTimeout, state...) }

func (m *manager) tellWithin(limit time.Duration, state ...string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if m.quiet || socket == "" {
		return
	}
	if err := send(socket, strings.Join(state, "\n"), time.Now().Add(limit)); err != nil {
		m.log.Warn("service manager not told", zap.Strings("state", state), zap.Error(err))
	}
}

// send sends a datagram to a unix socket, whose queue may be full until the deadline.
func send(socket, text string, deadline time.Time) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	_, err = conn.Write([]byte(text))
	return err
}
