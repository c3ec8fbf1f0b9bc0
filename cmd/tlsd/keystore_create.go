// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// creation is what create was asked for.
type creation struct {
	file, ca     string
	names        []string
	key, alias   string
	days         int
	passwordFile string
}

func newKeystoreCreate() *cobra.Command {
	var c creation
	cmd := &cobra.Command{
		Use:   "create FILE",
		Short: "Make a keystore to try things out with",
		Long: `Make a PKCS#12 keystore with one key: self-signed or, with --ca, issued by a CA
that is made for it. The CA's certificate is what clients are to trust; its key is
not kept. It is for trying out and for tests: nobody else trusts such a
certificate.

The store is PKCS#12 as keytool and openssl write and read it, whatever FILE is
called. A file that is already there is never overwritten. The password comes
from --keystore-password-file or TLSD_KEYSTORE_PASSWORD, or is asked for twice on
a terminal; keytool wants six characters at least.

Exit status: 0; 1 the files can't be written; 2 what was asked for is wrong.`,
		Example: `  tlsd keystore create test.p12
  tlsd keystore create test.p12 --name web.test --name 10.0.0.7 --key rsa2048 --days 30
  tlsd keystore create test.p12 --name web.test --ca ca.pem --keystore-password-file test.pass
  curl --cacert ca.pem https://web.test:8443/`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.file = args[0]
			return c.run(cmd)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&c.names, "name", []string{"localhost"}, "DNS `NAME` or IP address that the certificate is for; repeatable")
	fs.StringVar(&c.key, "key", "p256", "`TYPE` of the key: "+strings.Join(keyTypes(), ", "))
	fs.IntVar(&c.days, "days", 90, "how many `DAYS` the certificate is valid")
	fs.StringVar(&c.alias, "alias", "", "`NAME` of the entry (default the first name)")
	fs.StringVar(&c.ca, "ca", "", "have a CA issue the certificate, and write the CA's to `FILE` (PEM)")
	registerPassword(cmd, &c.passwordFile)
	return cmd
}

func (c *creation) run(cmd *cobra.Command) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := refuseEmpty(cmd, "key", "alias", "ca", "keystore-password-file"); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	password, err := c.password(ctx, cmd)
	if err != nil {
		return err
	}
	m, err := c.build(ctx, password)
	if err != nil {
		return err
	}
	if err := c.write(m); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s: key %s (%s) for %s, %s\n", c.file, printable(c.alias), keyName(m.leaf), strings.Join(certNames(m.leaf), ", "), until(&m.leaf.NotAfter))
	if c.ca != "" {
		fmt.Fprintf(out, "%s: the CA that clients are to trust; its key is not kept\n", c.ca)
	}
	return nil
}

// maxDays keeps dates within four digits of a year.
const maxDays = 36500

// check finds what is wrong before anything is asked or made.
func (c *creation) check() error {
	for _, name := range c.names {
		if err := checkName(name); err != nil {
			return err
		}
	}
	if c.alias == "" {
		c.alias = c.names[0]
	}
	if _, ok := keyMaker(c.key); !ok {
		return fmt.Errorf("flag --key: %q is no type of key; there are %s", c.key, strings.Join(keyTypes(), ", "))
	}
	if c.days < 1 || c.days > maxDays {
		return fmt.Errorf("flag --days: %d is not between 1 and %d", c.days, maxDays)
	}
	if printable(c.alias) != c.alias || len(c.alias) > 255 {
		return fmt.Errorf("flag --alias: %q: an alias is of at most 255 bytes and of characters that can be seen", c.alias)
	}
	if c.ca != "" && filepath.Clean(c.ca) == filepath.Clean(c.file) {
		return fmt.Errorf("flag --ca: %q is the keystore itself", c.ca)
	}
	for _, path := range c.paths() {
		if _, err := os.Lstat(path); err == nil {
			return alreadyThere(path)
		}
	}
	return nil
}

func (c *creation) paths() []string {
	if c.ca == "" {
		return []string{c.file}
	}
	return []string{c.file, c.ca}
}

// password returns the one that was given, or asks for a new one twice.
func (c *creation) password(ctx context.Context, cmd *cobra.Command) (string, error) {
	given, err := storePassword(c.passwordFile)
	if err != nil {
		return "", err
	}
	var password string
	switch {
	case !given.IsZero():
		spellings, err := given.Read()
		if err != nil {
			return "", err
		}
		password = string(spellings[0])
	case !term.IsTerminal(int(os.Stdin.Fd())):
		return "", fmt.Errorf("keystore %q needs a password: give one with --keystore-password-file or TLSD_KEYSTORE_PASSWORD", c.file)
	default:
		if password, err = askTwice(ctx, cmd, c.file); err != nil {
			return "", err
		}
	}
	switch {
	case password == "":
		return "", fmt.Errorf("keystore %q: the password is empty", c.file)
	case !utf8.ValidString(password):
		return "", fmt.Errorf("keystore %q: the password is no text in UTF-8", c.file)
	case strings.ContainsFunc(password, func(r rune) bool { return r > 0xffff }):
		return "", fmt.Errorf("keystore %q: the password has a character (an emoji?) that can be read in keystores, but not written", c.file)
	}
	return password, nil
}

func askTwice(ctx context.Context, cmd *cobra.Command, file string) (string, error) {
	var answers [2]string
	for i, question := range []string{"new password of " + file, "the same again"} {
		answer, err := readPassword(ctx, cmd.ErrOrStderr(), question)
		if errors.Is(err, errInterrupted) {
			return "", &status{code: exitSignal}
		}
		if err != nil {
			return "", &status{exitMachine, err}
		}
		answers[i] = string(answer)
	}
	if answers[0] != answers[1] {
		return "", errors.New("the two passwords are not the same; nothing was written")
	}
	return answers[0], nil
}

// write writes all files or none.
func (c *creation) write(m *made) error {
	if c.ca != "" {
		if err := writeNew(c.ca, m.ca, 0o644); err != nil {
			return err
		}
	}
	err := writeNew(c.file, m.store, 0o600)
	if err != nil && c.ca != "" {
		err = errors.Join(err, os.Remove(c.ca))
	}
	return err
}

// writeNew writes a file that is not there yet, whole or not at all. A link, and
// not a rename, gives the file its name, since that never replaces another.
func writeNew(path string, data []byte, mode fs.FileMode) (err error) {
	defer func() {
		if errors.Is(err, fs.ErrExist) {
			err = alreadyThere(path)
		} else if err != nil {
			err = &status{exitMachine, fmt.Errorf("write %q: %w", path, err)}
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(path), ".tlsd-*")
	if err != nil {
		return pathCause(err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return pathCause(os.Link(f.Name(), path))
}

func alreadyThere(path string) error {
	return fmt.Errorf("write %q: it is already there; name another file, or remove it", path)
}

// pathCause drops operation and paths, which the caller names.
func pathCause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}
