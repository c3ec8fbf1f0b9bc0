// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/ballast"
	"github.com/tlsd/tlsd/logging"
)

func newKeyManager() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keymanager",
		Short: "Run a key process by itself",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.Example = "  tlsd keymanager serve --keystore server.p12 --keystore-password-file server.pass --listen unix:/run/tlsd-keys/km.sock --allow-user tlsd"
	serve := &cobra.Command{
		Use:   "serve",
		Short: "Hold the keys for a tlsd of another user",
		Long: `Open keystores and let other processes choose and sign with their keys, by a unix
socket and for the users that are named only. A tlsd that faces the network is
such a process, started with --keymanager unix:PATH: as another user it can read
neither keystores nor passwords.

Of a configuration file (--config) everything about keystores and the choice of
keys is taken, allow_user, and of one listener its unix:PATH and client_ca.

The front's user has to be in the group of the socket, which is this process's,
or its directory's where that has the setgid bit. A directory that is missing is
made.

SIGHUP reads the keystores anew. SIGTERM and SIGINT end it when the calls under
way have ended.

Exit status: 0; 1 what the machine refuses: the socket is served by another
process, or it or its directory can't be made; 2 what it was given is wrong.`,
		Example: `  tlsd keymanager serve --keystore server.p12 --keystore-password-file server.pass --listen unix:/run/tlsd-keys/km.sock --allow-user tlsd
  tlsd --keymanager unix:/run/tlsd-keys/km.sock --listen 0.0.0.0:443 --backend http://127.0.0.1:8080`,
		Args: cobra.NoArgs,
	}
	flags := new(config.Flags)
	serve.Flags().SortFlags = false
	flags.RegisterEndpoint(serve.Flags())
	serve.RunE = func(cmd *cobra.Command, _ []string) error {
		return serveKeys(cmd.Context(), config.Input{Flags: flags, Tiers: builtin})
	}
	cmd.AddCommand(serve)
	return cmd
}

func serveKeys(ctx context.Context, in config.Input) error {
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	defer signal.Stop(hups)
	outliveReaders()
	cfg, err := config.LoadEndpoint(in)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log, err := logging.New(logging.Config{Level: cfg.LogLevel, Format: cfg.LogFormat, Levels: cfg.LogLevels})
	if err != nil {
		return err
	}
	for _, note := range cfg.Notes {
		log.Zap().Named("config").Warn("configuration", zap.String(logging.FieldReason, note))
	}
	if !cfg.Tier.KeepsNoKeys {
		defer ballast.Keep(os.Getenv)()
	}
	e, err := plugin.ServeEndpoint(ctx, cfg.Tier, plugin.Spec{Sources: cfg.Keystores, Options: cfg.Options}, plugin.EndpointOptions{
		Socket: cfg.Socket, Users: cfg.Users, Trust: trustFiles(cfg), Log: log,
	})
	if err != nil {
		return unlessEnding(ctx, err)
	}
	m := &manager{log: log.Zap()}
	m.ready([]net.Addr{&net.UnixAddr{Name: cfg.Socket, Net: "unix"}}, false)
	go reloadKeys(ctx, hups, e, m)
	context.AfterFunc(ctx, m.stopping)
	if err := e.Serve(ctx); err != nil {
		return &status{exitMachine, err}
	}
	return nil
}

func trustFiles(cfg *config.Endpoint) []plugin.TrustFile {
	var files []plugin.TrustFile
	for _, t := range cfg.Trust {
		files = append(files, plugin.TrustFile{Path: t.Path, Type: t.Type, Password: t.Password})
	}
	return files
}

// reloadKeys reads the keystores anew for each signal, until ctx ends.
func reloadKeys(ctx context.Context, hups <-chan os.Signal, e *plugin.EndpointServer, m *manager) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hups:
		}
		ended := m.reloading()
		generation, changed, err := e.Reload(ctx)
		ended(err)
		if err != nil {
			m.log.Error("reload failed: the old state stays in use", zap.Error(err))
			continue
		}
		m.log.Info("reloaded", zap.Bool("keystores_changed", changed), zap.Uint64(logging.FieldGeneration, generation))
	}
}
