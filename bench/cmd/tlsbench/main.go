// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Command tlsbench measures tlsd beside plain crypto/tls; docs/performance.md
// says what its figures mean.
//
//	tlsbench servers -only pkixcached -key p256 -callers 4,32 -rounds 6
//	tlsbench memory -only pkixcached,sunx509 -entries 1,1000
//	tlsbench scale -entries 1,100 -connections 1000
//	tlsbench where
//	tlsbench all
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/tlsd/tlsd/framework/plugin"
)

func main() {
	plugin.Main(tiers()...)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "tlsbench:", err)
		os.Exit(1)
	}
}

// run runs the command that args name. Without one it measures servers.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	name := "servers"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	switch name {
	case "servers":
		_, err := servers(ctx, args, stdout)
		return err
	case "memory":
		_, err := inMemory(ctx, args, stdout)
		return err
	case "scale":
		_, err := growth(ctx, args, stdout)
		return err
	case "where":
		_, err := whereTo(ctx, args, stdout)
		return err
	case "all":
		return everything(ctx, args, stdout)
	}
	return play(ctx, name, args)
}

// lists are the flags of a command whose values are lists.
type lists struct{ *flag.FlagSet }

func flags(name string) lists { return lists{flag.NewFlagSet("tlsbench "+name, flag.ContinueOnError)} }

// list defines a flag with values that commas part.
func (l lists) list(p *[]string, name, def, usage string) {
	parts := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	*p = parts(def)
	l.Func(name, usage+" (default "+def+")", func(s string) error {
		*p = parts(s)
		return nil
	})
}

// each defines a flag that may be given more than once.
func (l lists) each(p *[]string, name, usage string) {
	l.Func(name, usage+"; may be repeated", func(s string) error {
		*p = append(*p, s)
		return nil
	})
}
