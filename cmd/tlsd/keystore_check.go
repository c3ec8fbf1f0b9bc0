// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
)

// expirySoon is how long before its end a certificate is worth a note: the default
// of expiry_warning.
const expirySoon = 21 * 24 * time.Hour

func newKeystoreCheck() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say of each entry whether it can serve, with its chain and the days left",
		Long: `Check a keystore, as far as can be seen without clients and without a
configuration: each key against its password and certificate, each chain from the
leaf to where it ends, and how long its certificates are valid. FILE is one file,
or CERT,KEY in PEM.

Problems are: a key that tlsd can't serve with, a certificate of its chain that is
not valid today or not signed by the next, and no key at all. The rest is noted:
an issuer that is not there, a root that need not be, certificates that belong to
no key, less than 21 days left.

Exit status: 0 all is well; 1 there is a problem; 2 the keystore does not open.`,
		Example: `  tlsd keystore check server.p12
  tlsd keystore check server.jks --keystore-password-file server.pass --key-password-file key.pass
  tlsd keystore check tls.crt,tls.key`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := openKeystore(cmd, &f, args[0], true)
			if err != nil {
				return err
			}
			c := examine(s, time.Now())
			if err := c.text(cmd.OutOrStdout(), args[0]); err != nil {
				return err
			}
			if len(c.problems) > 0 {
				return &status{code: exitMachine}
			}
			return nil
		},
	}
	f.register(cmd)
	return cmd
}

// examination is what check finds. Problems and notes have the entry's alias in
// front.
type examination struct {
	store    *keystore.Store
	now      time.Time
	entries  []examined
	problems []string
	notes    []string
}

type examined struct {
	*keystore.Entry
	state string
	chain []*x509.Certificate // as far as Go parses them
}

func examine(s *keystore.Store, now time.Time) *examination {
	c := &examination{store: s, now: now, notes: s.Warnings}
	keys := 0
	for _, e := range s.Entries {
		if e.Kind == keymanager.KindKey {
			keys++
		}
		c.entry(e)
	}
	if keys == 0 {
		c.problems = append(c.problems, "there is no key: tlsd cannot serve with it (client_ca takes trusted certificates)")
	}
	return c
}

func (c *examination) entry(e *keystore.Entry) {
	x := examined{Entry: e, state: "ok"}
	for _, der := range e.Chain {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			c.note(e, "a certificate of the chain can't be read: %v", err)
			break
		}
		x.chain = append(x.chain, cert)
	}
	problems := len(c.problems)
	switch {
	case e.Kind != keymanager.KindKey:
		x.state = "-"
	case !e.Usable:
		c.problem(e, "not usable: %s", e.Reason)
	default:
		c.chain(e, x.chain)
	}
	if len(c.problems) > problems {
		x.state = "BAD"
	}
	c.entries = append(c.entries, x)
}

// chain judges the certificates of a usable key.
func (c *examination) chain(e *keystore.Entry, chain []*x509.Certificate) {
	problems, notes := judgeChain(chain, c.now, expirySoon)
	for _, p := range problems {
		c.problem(e, "%s", p)
	}
	for _, note := range append(notes, e.Notes...) {
		c.note(e, "%s", note)
	}
}

func (c *examination) problem(e *keystore.Entry, format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf("%s: %s", printable(e.Alias), fmt.Sprintf(format, args...)))
}

func (c *examination) note(e *keystore.Entry, format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf("%s: %s", printable(e.Alias), fmt.Sprintf(format, args...)))
}

func (c *examination) left(cert *x509.Certificate) string {
	if c.now.After(cert.NotAfter) {
		return "expired"
	}
	return fmt.Sprintf("%d days left", daysLeft(cert, c.now))
}

// text prints what was found for people.
func (c *examination) text(w io.Writer, file string) error {
	fmt.Fprintf(w, "%s: %s, entries: %d\n", printable(file), c.store.Format, len(c.entries))
	for _, e := range c.entries {
		fmt.Fprintf(w, "\n%s: %s\n  %-6s %s, %s\n", printable(e.Alias), e.state, "is", e.Kind, orDash(e.KeyType))
		if len(e.chain) > 0 {
			fmt.Fprintf(w, "  %-6s %s\n", "names", orDash(printable(strings.Join(certNames(e.chain[0]), ","))))
		}
		label := "chain"
		for _, cert := range e.chain {
			fmt.Fprintf(w, "  %-6s %s, %s (%s)\n", label, printable(title(cert)), until(&cert.NotAfter), c.left(cert))
			label = ""
		}
	}
	for _, n := range c.notes {
		fmt.Fprintf(w, "\nnote: %s\n", printable(n))
	}
	for _, p := range c.problems {
		fmt.Fprintf(w, "\nproblem: %s\n", printable(p))
	}
	word := "all is well"
	if len(c.problems) > 0 {
		word = "something is wrong"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", word)
	return err
}
