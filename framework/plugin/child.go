// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/ballast"
	"github.com/tlsd/tlsd/logging"
)

// runChild makes this process the key process for tier and returns its exit
// status when the front is gone or has asked for the end.
func runChild(tier keymanager.Tier, name string) (status int) {
	if os.Getenv(cookieName) != cookieValue {
		fmt.Fprintf(os.Stderr, "%s is set, but no front has started this process: unset it\n", childMarker)
		return exitUsage
	}
	log, err := logging.New(logging.Config{Format: logging.FormatJSON, Output: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	defer func() {
		if p := recover(); p != nil {
			logPanic(log.Zap(), "serve", p)
			status = exitUsage
		}
	}()
	return serveChild(tier, name, log)
}

func serveChild(tier keymanager.Tier, name string, log *logging.Logger) int {
	stdio, err := takeStdio()
	if err != nil {
		log.Zap().Error("standard streams could not be set up", zap.Error(err))
		return exitUsage
	}
	line, err := openLifeLine()
	if err != nil {
		log.Zap().Error("no life line", zap.Error(err))
		return exitUsage
	}
	lanes, err := inheritLanes()
	if err != nil {
		log.Zap().Error("no lanes", zap.Error(err))
		return exitUsage
	}
	ignoreSignals()
	for _, err := range harden() {
		log.Zap().Warn("hardening failed", zap.Error(err))
	}
	if !tier.KeepsNoKeys {
		defer ballast.Keep(os.Getenv)()
	}
	confined := newConfinement(false)
	s := &server{tier: tier, name: name, log: log, lanes: lanes, confined: confined, beforeOpen: func(spec Spec) {
		stdio.settle()
		forgetEnvironment()
		confined.restrict(tier, spec, ownDirs()...)
	}}
	if os.Getenv(inheritMarker) != "" {
		if err := serveInherited(s, stdio.handshake, line); err != nil {
			log.Zap().Error("inherited connection not served", zap.Error(err))
			return exitUsage
		}
		return 0
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{ContractVersion: {pluginName: &servedPlugin{server: s}}},
		Logger:           protocolLog(log.Zap()),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			g := grpc.NewServer(opts...)
			go line.stopAtEnd(g)
			return g
		},
	})
	return 0
}

// ownDirs returns where this process writes: the directory that its front made for
// it, if there is one. The system's own is anybody's.
func ownDirs() []string {
	if dir := os.Getenv("TMPDIR"); dir != "" {
		return []string{dir}
	}
	return nil
}

// ignoreSignals leaves the end of this process to its front: a terminal sends
// SIGINT, and a service manager SIGTERM, to both, and the front may still have
// handshakes to finish. SIGHUP and the user's signals are meant for the front
// too and would kill. They are caught, not ignored: programs that a tier starts
// inherit what is ignored.
func ignoreSignals() {
	signal.Notify(make(chan os.Signal, 1),
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
}

// forgetEnvironment removes what was meant for this process alone, before a
// tier can hand it on.
func forgetEnvironment() {
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if name == childMarker || name == cookieName || name == lanesName || name == inheritMarker || strings.HasPrefix(name, "PLUGIN_") {
			os.Unsetenv(name)
		}
	}
}

// protocolLog carries what go-plugin has to say, which is little, into the log.
func protocolLog(log *zap.Logger) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Level:       hclog.Warn,
		Output:      textLog{log},
		DisableTime: true,
	})
}

type textLog struct{ log *zap.Logger }

func (t textLog) Write(p []byte) (int, error) {
	t.log.Warn("plugin protocol", zap.String(logging.FieldText, strings.TrimSpace(string(p))))
	return len(p), nil
}
