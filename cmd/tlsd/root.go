// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/logging"
)

// Exit statuses. What tlsd was given wrongly is told from what the machine
// refuses or what ends later, so that a supervisor knows whether trying again
// makes sense.
const (
	exitOK      = 0
	exitMachine = 1   // an address in use, no run directory, a key process lost; check: something is wrong
	exitUsage   = 2   // usage, configuration, keystore, password, plugin
	exitSignal  = 130 // ^C while a password was asked for, as a shell has it
)

// status is an error that has been reported already, or one whose exit status
// does not show in its type.
type status struct {
	code int
	err  error // nil: reported already
}

func (s *status) Error() string { return fmt.Sprint(s.err) }

func (s *status) Unwrap() error { return s.err }

// run runs one command and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	report(stderr, err)
	return exitStatus(err)
}

// report says what went wrong, one line for each error of a joined one. Names and
// texts in it are of others, and may hold what a terminal would obey.
func report(w io.Writer, err error) {
	if s := (*status)(nil); err == nil || (errors.As(err, &s) && s.err == nil) {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(w, "tlsd: %s\n", logging.Printable(line))
	}
}

func exitStatus(err error) int {
	var (
		s      *status
		listen *framework.ListenError
		lost   *framework.LostError
		socket *plugin.SocketError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &s):
		return s.code
	case errors.As(err, &listen), errors.As(err, &lost), errors.As(err, &socket), errors.Is(err, plugin.ErrRunDir), errors.Is(err, plugin.ErrUnreachable), isShortage(err):
		return exitMachine
	}
	return exitUsage
}

// isShortage reports whether the machine has too little of something.
func isShortage(err error) bool {
	short := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ENOSPC}
	return slices.ContainsFunc(short, func(e error) bool { return errors.Is(err, e) })
}

func newRoot() *cobra.Command {
	root := newServe()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Args = unknownCommand
	root.Version = buildVersion()
	root.SetVersionTemplate(versionLine())
	// pflag writes --json[=true|false], and it is --json that people type.
	cobra.AddTemplateFunc("withoutValues", func(usages string) string {
		const values = "[=true|false]"
		return strings.ReplaceAll(usages, values, strings.Repeat(" ", len(values)))
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages |", "FlagUsages | withoutValues |"))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w (%s --help lists the flags)", config.FlagError(cmd.Flags(), err), cmd.CommandPath())
	})
	root.AddCommand(newCheck(), newExplain(), newHealth(), newKeystore(), newKeyManager(), newPlugin(), newVersion(), newDemoKeystore())
	return root
}

// unknownCommand refuses words where a command could stand.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	cmd.SuggestionsMinimumDistance = 2
	near := cmd.SuggestionsFor(args[0])
	switch ext := filepath.Ext(args[0]); {
	case slices.Contains([]string{"serve", "run", "start"}, args[0]):
		hint = "; tlsd without a command serves"
	case slices.Contains([]string{".yaml", ".yml", ".toml", ".json"}, ext):
		hint = fmt.Sprintf("; did you mean --config %s?", args[0])
	case len(near) > 0:
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return fmt.Errorf("unknown command %q%s (%s help lists the commands)", args[0], hint, cmd.Root().Name())
}

// withFlags adds the configuration's flags to a command and has f run with them.
func withFlags(cmd *cobra.Command, f func(cmd *cobra.Command, in config.Input) error) *cobra.Command {
	flags := new(config.Flags)
	cmd.Flags().SortFlags = false
	flags.Register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return f(cmd, config.Input{Flags: flags, Tiers: builtin})
	}
	return cmd
}
