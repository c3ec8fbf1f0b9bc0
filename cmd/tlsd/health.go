// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/tlsd/tlsd/framework/admin"
	"github.com/tlsd/tlsd/framework/config"
)

// healthTimeout is what an answer may take.
const healthTimeout = 4 * time.Second

func newHealth() *cobra.Command {
	ready := false
	cmd := withFlags(&cobra.Command{
		Use:   "health",
		Short: "Ask a running tlsd whether it is alive, or ready",
		Long: `Ask the tlsd that runs with the same flags and file whether it is alive: at the
address of --metrics, or else of --admin. It is for where no curl is, such as
the health check of a container. One that is asked again and again should name the
address by flag: then no file is read, and a mistake in it, which a running tlsd
puts up with, fails no check.

Exit status: 0 it is; 1 it isn't, or doesn't answer; 2 no address is given.`,
		Example: `  tlsd health --metrics 127.0.0.1:9100
  tlsd health --ready --config /etc/tlsd/tlsd.yaml`,
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, in config.Input) error {
		address, err := config.HealthAddress(in)
		if err != nil {
			return err
		}
		return health(cmd.Context(), cmd.OutOrStdout(), address, ready)
	})
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether connections are served, not only whether the process is alive")
	return cmd
}

func health(ctx context.Context, out io.Writer, address string, ready bool) error {
	path := "/healthz"
	if ready {
		path = "/readyz"
	}
	switch {
	case address == "":
		return errors.New("health: there is no address to ask: give --metrics or --admin as the running tlsd has them")
	case portUnknown(address):
		return fmt.Errorf("health: the port of %q was chosen when tlsd started: give it another", address)
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	code, text, err := admin.Ask(ctx, address, path)
	switch {
	case err != nil:
		return &status{exitMachine, fmt.Errorf("health: ask %s at %s: %w", path, address, err)}
	case code != http.StatusOK:
		return &status{exitMachine, fmt.Errorf("health: %s", text)}
	}
	_, err = fmt.Fprintln(out, text)
	return err
}
