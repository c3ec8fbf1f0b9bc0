// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Command tlsbench measures tlsd beside plain crypto/tls. See docs/performance.md.
//
//	go run ./bench/cmd/tlsbench -only pkixcached -key p256 -callers 4,32 -rounds 6
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tlsd/tlsd/bench/load"
	"github.com/tlsd/tlsd/framework/plugin"
)

func main() {
	plugin.Main(tiers()...)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tlsbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == partLoad {
		return load.Serve(ctx, os.Stdin, os.Stdout)
	}
	if len(args) == partArgs {
		return serve(ctx, args)
	}
	return servers(ctx, args)
}
