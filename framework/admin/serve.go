// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/netutil"
)

// Bounds on who asks. What takes longer on purpose, a reload or a profile,
// has its own time.
const (
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 30 * time.Second
	maxHeader    = 16 << 10 // bytes
	maxConns     = 256      // open at once; more wait
	lastWords    = time.Second
)

// Serve serves h on ln until the function that it returns is called, which closes
// ln and gives answers under way a second. log may be nil.
func Serve(ln net.Listener, h http.Handler, log *zap.Logger) (stop func()) {
	if log == nil {
		log = zap.NewNop()
	}
	server := &http.Server{
		Handler:     h,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}
	if l, err := zap.NewStdLogAt(log.Named("admin"), zap.DebugLevel); err == nil { // it knows the level
		server.ErrorLog = l
	}
	var serving, open sync.WaitGroup
	server.ConnState = func(_ net.Conn, now http.ConnState) {
		switch now {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Done()
		}
	}
	serving.Go(func() { _ = server.Serve(netutil.LimitListener(ln, maxConns)) }) // ends when ln is closed
	return sync.OnceFunc(func() {
		// Shutdown would hang up on whoever connected just now.
		server.SetKeepAlivesEnabled(false)
		_ = ln.Close()
		serving.Wait()
		late := time.AfterFunc(lastWords, func() { _ = server.Close() })
		open.Wait()
		late.Stop()
		_ = server.Close()
	})
}
