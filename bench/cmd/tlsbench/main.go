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

	"github.com/tlsd/tlsd/bench/fleet"
	"github.com/tlsd/tlsd/bench/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tlsbench:", err)
		os.Exit(1)
	}
}

// Parts that tlsbench plays in processes of its own.
const (
	partPlain = "plain"
	partLoad  = "load"
)

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case partPlain:
			return fleet.ServePlain(ctx, args[1], args[2], args[3])
		case partLoad:
			return load.Serve(ctx, os.Stdin, os.Stdout)
		}
	}
	return servers(ctx, args)
}
