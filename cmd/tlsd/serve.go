// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/term"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/admin"
	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/internal/ballast"
	"github.com/tlsd/tlsd/logging"
)

func newServe() *cobra.Command {
	return withFlags(&cobra.Command{
		Use:   "tlsd",
		Short: "Terminate TLS with your keystore, its keys in another process",
		Long: `tlsd terminates TLS with the keystores that people have (PKCS#12, JKS, JCEKS,
PEM) and forwards to a backend. The process that faces the network never holds a
private key: a key manager, another process, does.

What is not given falls back by itself: 127.0.0.1:8443, a built-in page, and a
throw-away keystore where only this machine can connect. The environment holds
TLSD_KEYMANAGER, TLSD_KEYSTORE_PASSWORD and TLSD_OPTS (-D and -X options).

SIGHUP reads everything anew: configuration, keystores, trust stores and
revocation lists; each is taken in when its file changes, too. SIGUSR2 has the
executable that lies at tlsd's path now take over, without a connection lost.
SIGTERM and SIGINT end tlsd when the open connections have ended; a second one
ends it at once.

Exit status: 0; 1 what the machine refuses, or a key process that is lost; 2
what tlsd was given is wrong.`,
		Example: `  tlsd
  tlsd --keystore server.p12 --keystore-password-file server.pass --backend http://127.0.0.1:8080
  tlsd --keystore tls.crt,tls.key --listen 0.0.0.0:443 --backend tcp://127.0.0.1:5432
  tlsd -Dssl.KeyManagerFactory.algorithm=PKIX -Djavax.net.ssl.keyStore=server.jks --keystore-password-file server.pass
  tlsd --config /etc/tlsd/tlsd.yaml`,
	}, serve)
}

func serve(cmd *cobra.Command, in config.Input) (err error) {
	defer ballast.Keep(os.Getenv)()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR2)
	defer signal.Stop(signals)
	outliveReaders()

	read := digestOf(in.File()) // before it is loaded: one that is replaced meanwhile is another
	eff, err := config.Load(in) // may wait for a pipe, and leaves nothing behind if it is killed
	if err != nil {
		return err
	}
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	levels, err := logger(eff)
	if err != nil {
		return err
	}
	log := levels.Zap()
	eff.Log = log
	// net/http's client writes what it thinks of a backend's bytes there.
	defer redirectStdLog(log)()
	sockets, err := newSockets()
	if err != nil {
		return err
	}
	defer sockets.stop()
	eff.Bind = sockets.Bind
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	d := &daemon{
		log: log, cancel: cancel, sockets: sockets, manager: &manager{log: log},
		server: make(chan *framework.Server, 1), hups: make(chan struct{}, 1),
		reloader: newReloader(in, eff, read, levels),
	}
	d.monitor, err = newMonitor(ctx, eff, levels, sockets.Bind, admin.Config{Reload: d.reload})
	if err != nil {
		return err
	}
	defer d.monitor.close()
	d.reloader.keep = d.monitor.keepLevels
	eff.Observer = d.monitor.observer()
	if !sockets.flip.HasParent() { // else that one answers until this one serves
		d.monitor.start()
	}
	go d.obey(signals)
	go d.reloadOnDemand(ctx)

	caFile, remove, err := provideKeystore(ctx, eff)
	if err != nil {
		return unlessEnding(ctx, err)
	}
	defer remove()
	if caFile != "" {
		log.Info("serving a throw-away certificate: give --keystore PATH for one of your own", zap.String("ca", caFile))
	}
	eff.Self = confine(eff)
	given := anyPassword(eff.Keystores)
	var server *framework.Server
	err = openAsking(ctx, eff, cmd.ErrOrStderr(), func() (err error) {
		server, err = framework.NewServer(ctx, eff.Config)
		return err
	})
	if err != nil {
		return unlessEnding(ctx, err)
	}
	if err := sockets.allTaken(); err != nil {
		return errors.Join(err, server.Close())
	}
	d.refusal = noUpgrade(eff, !given && anyPassword(eff.Keystores))
	d.follow(ctx, server, eff)
	if caFile != "" { // serving doesn't wait for somebody to read it
		go tellHowToConnect(ctx, cmd.OutOrStdout(), server, caFile)
	}
	if err := server.Run(ctx); err != nil {
		return &status{exitMachine, err}
	}
	return nil
}

// follow has signals, the configuration file and who watches this process act on
// server, or hear of it.
func (d *daemon) follow(ctx context.Context, server *framework.Server, eff *config.Effective) {
	d.server <- server
	d.monitor.follow(server)
	go d.watchConfig(ctx, eff)
	go d.takeOver(ctx, server)
}

// tellHowToConnect prints a command line below what is logged of the start.
func tellHowToConnect(ctx context.Context, out io.Writer, server *framework.Server, caFile string) {
	select {
	case <-server.Serving():
	case <-ctx.Done():
		return
	}
	line := curlLine(caFile, server.Addrs()[0]) + "\n"
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		line = "\n" + line + "\n"
	}
	_, _ = io.WriteString(out, line)
}

// outliveReaders makes writing to a standard output or error whose reader is gone
// fail, where it would end the process, and with it everybody's connections.
// Unlike an ignored signal, a noticed one is not inherited by key processes.
func outliveReaders() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// unlessEnding drops an error of starting if tlsd was told to end meanwhile:
// that is what it comes from.
func unlessEnding(ctx context.Context, err error) error {
	if ctx.Err() != nil && !interrupted(err) {
		return nil
	}
	return err
}

// logger makes the log that a configuration asks for and writes down what
// would surprise its author.
func logger(eff *config.Effective) (*logging.Logger, error) {
	l, err := logging.New(logging.Config{Level: eff.LogLevel, Format: eff.LogFormat, Levels: eff.LogLevels})
	if err != nil {
		return nil, err
	}
	logNotes(l.Zap(), eff.Notes)
	return l, nil
}

func logNotes(log *zap.Logger, notes []string) {
	for _, note := range notes {
		log.Named("config").Warn("configuration", zap.String(logging.FieldReason, note))
	}
}

// redirectStdLog has the standard library's log go to log at debug, and returns
// what undoes it.
func redirectStdLog(log *zap.Logger) func() {
	undo, err := zap.RedirectStdLogAt(log.Named("std"), zap.DebugLevel)
	if err != nil { // only for levels that zap doesn't know
		panic(err)
	}
	return undo
}

// daemon is what signals act on.
type daemon struct {
	log     *zap.Logger
	cancel  context.CancelCauseFunc // ends serving, when open connections have ended
	sockets *sockets
	manager *manager
	monitor *monitor
	refusal error                  // why an upgrade is refused; set before server is
	server  chan *framework.Server // holds the server once there is one
	hups    chan struct{}          // holds one while a reload is asked for

	reloader  *reloader
	upgrading sync.Mutex // held during an upgrade
}

// obey acts on signals: SIGHUP reloads, SIGUSR2 upgrades, the first of the others
// ends gracefully and the second at once. One that comes after it kills, as if
// nobody listened. Meanwhile it tells the service manager that it still does so.
func (d *daemon) obey(signals chan os.Signal) {
	watchdog := d.manager.watchdog(d.sockets.flip.HasParent())
	ending := false
	for {
		sig := d.next(signals, watchdog)
		switch {
		case sig == syscall.SIGHUP && !ending:
			d.askReload()
		case sig == syscall.SIGUSR2 && !ending:
			go d.upgrade()
		case sig == syscall.SIGHUP, sig == syscall.SIGUSR2:
		case !ending:
			ending = true
			d.end(sig)
		default:
			d.log.Warn("second signal: ending at once", zap.Stringer("signal", sig))
			signal.Stop(signals)
			_ = (<-d.server).Close() // Run returns what it gives
			return
		}
	}
}

// next waits for a signal.
func (d *daemon) next(signals chan os.Signal, watchdog time.Duration) os.Signal {
	var tick <-chan time.Time // none, without a watchdog
	if watchdog > 0 {
		ticker := time.NewTicker(watchdog)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case sig := <-signals:
			return sig
		case <-tick:
			d.manager.alive()
		}
	}
}

// end says why serving ends. Before there is a server nothing ends that anybody
// knows of, and the cursor may stand behind a question.
func (d *daemon) end(sig os.Signal) {
	select {
	case server := <-d.server:
		d.server <- server
		d.log.Info("signal: ending", zap.Stringer("signal", sig))
	default:
	}
	d.manager.stopping()
	d.sockets.stop()
	d.cancel(nil)
}
