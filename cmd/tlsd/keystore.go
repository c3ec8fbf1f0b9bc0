// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
)

// newKeystore holds the commands on keystore files. They run without a key
// manager, in every build: the process sees keys, but no network, and ends.
func newKeystore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keystore",
		Short: "Look into keystores, or make one",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Example: `  tlsd keystore list server.p12
  tlsd keystore check server.p12 --keystore-password-file server.pass
  tlsd keystore create test.p12 --name localhost`,
	}
	cmd.AddCommand(newKeystoreList(), newKeystoreCheck(), newKeystoreCreate())
	return cmd
}

// storeFlags say how a keystore is opened.
type storeFlags struct{ typ, password, keyPassword string }

func (f *storeFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.typ, "keystore-type", "auto", "auto, pkcs12, jks, jceks or pem: the `TYPE` of the keystore")
	registerPassword(cmd, &f.password)
	fs.StringVar(&f.keyPassword, "key-password-file", "", "`PATH` of a file with the keys' password, where it is not the keystore's")
}

func registerPassword(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "keystore-password-file", "", "`PATH` of a file with the keystore's password")
}

// source returns the keystore that file names: one path, or PEM files that
// belong together with commas between. Password files are read once, so that
// they may be pipes.
func (f *storeFlags) source(cmd *cobra.Command, file string) (src keymanager.Source, err error) {
	if err := refuseEmpty(cmd, "keystore-type", "keystore-password-file", "key-password-file"); err != nil {
		return src, err
	}
	for path := range strings.SplitSeq(file, ",") {
		if path = strings.TrimSpace(path); path != "" {
			src.Paths = append(src.Paths, path)
		}
	}
	src.Type = strings.ToLower(f.typ)
	if src.Store, err = storePassword(f.password); err != nil {
		return src, err
	}
	src.Key, err = passwordOf(f.keyPassword)
	return src, err
}

// refuseEmpty returns nil if none of the flags was given an empty value, such as
// that of a variable that is not set.
func refuseEmpty(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flag(name); f.Changed && f.Value.String() == "" {
			return fmt.Errorf("flag --%s: it is empty", name)
		}
	}
	return nil
}

// storePassword is the one in the file at path, else the environment's, else
// none.
func storePassword(path string) (keymanager.PasswordRef, error) {
	if env, set := os.LookupEnv(config.EnvKeystorePassword); path == "" && set {
		secret := keymanager.Secret(env)
		return keymanager.PasswordRef{Value: &secret}, nil
	}
	return passwordOf(path)
}

func passwordOf(path string) (keymanager.PasswordRef, error) {
	if path == "" {
		return keymanager.PasswordRef{}, nil
	}
	spellings, err := keymanager.PasswordRef{File: path}.Read()
	if err != nil {
		return keymanager.PasswordRef{}, err
	}
	exact := keymanager.Secret(spellings[len(spellings)-1])
	return keymanager.PasswordRef{Value: &exact}, nil
}

// openKeystore opens a keystore and, unless only its claims are wanted, proves
// it. It asks for a password that is missing, where there is a terminal.
func openKeystore(cmd *cobra.Command, f *storeFlags, file string, prove bool) (*keystore.Store, error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	src, err := f.source(cmd, file)
	if err != nil {
		return nil, err
	}
	s, err := openOnce(ctx, src, prove, cmd.ErrOrStderr())
	if lacksPassword(s, err) && src.Store.IsZero() && term.IsTerminal(int(os.Stdin.Fd())) {
		password, askErr := ask(ctx, cmd.ErrOrStderr(), []keymanager.Source{src})
		if errors.Is(askErr, errInterrupted) {
			return nil, &status{code: exitSignal}
		}
		if askErr != nil {
			return nil, &status{exitMachine, askErr}
		}
		src.Store.Value = &password
		s, err = openOnce(ctx, src, prove, cmd.ErrOrStderr())
	}
	if err != nil && ctx.Err() != nil {
		return nil, &status{exitMachine, err}
	}
	return s, err
}

func openOnce(ctx context.Context, src keymanager.Source, prove bool, stderr io.Writer) (*keystore.Store, error) {
	s, err := keystore.Open(ctx, src, keystore.Limits{})
	if err != nil || !prove {
		return s, err
	}
	p := newProgress(stderr)
	defer p.end()
	if err := s.Prove(ctx, keystore.ProveOptions{Progress: p.step}); err != nil {
		return nil, fmt.Errorf("prove keystore %q: %w", src.Name(), err)
	}
	return s, nil
}

// lacksPassword reports whether the store, or a key of it, only wants a
// password that nobody gave.
func lacksPassword(s *keystore.Store, err error) bool {
	missing := func(err error) bool {
		var p *keystore.PasswordError
		return errors.As(err, &p) && p.Missing
	}
	if err != nil {
		return missing(err)
	}
	return slices.ContainsFunc(s.Entries, func(e *keystore.Entry) bool { return missing(e.Err) })
}

// printable returns text from a file as a terminal may show it: quoted, where it
// holds more than letters, digits, signs and single spaces.
func printable(s string) string {
	plain := s == strings.Join(strings.Fields(s), " ") && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
	if plain {
		return s
	}
	return fmt.Sprintf("%q", s)
}

// printWarnings tells what an operator should know of the store.
func printWarnings(w io.Writer, s *keystore.Store) {
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "tlsd: warning: %s\n", warning)
	}
}
