// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

func (r *checkReport) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// text prints the report for people. What can't be printed is what can't be
// read, so errors of w are left to the last call.
func (r *checkReport) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range r.Settings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", v.Key, orDash(v.Value), v.Origin)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.KeyManager != "" {
		fmt.Fprintf(w, "\nkey manager %s: %s\n", r.KeyManager, map[bool]string{true: "in a process of its own", false: "not isolated"}[r.Isolated])
	}
	for _, k := range r.Keystores {
		fmt.Fprintf(w, "\nkeystore %d: %s\n", k.Builder, k.Path)
		if err := k.text(w); err != nil {
			return err
		}
	}
	for _, s := range r.TrustStores {
		fmt.Fprintf(w, "\ntrust store %s: certificates: %d\n", s.Path, s.Certificates)
	}
	return r.verdict(w)
}

func (k keystoreReport) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range k.Entries {
		state, detail := "ok", "signed with "+e.Signed
		switch {
		case e.Problem != "":
			state, detail = "BAD", e.Problem
		case e.Signed == "":
			state, detail = "-", "no key to serve with"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", state, printable(e.Alias), e.Kind, orDash(e.Key), orDash(printable(strings.Join(e.Names, ","))), until(e.NotAfter), printable(detail))
	}
	return t.Flush()
}

func (r *checkReport) verdict(w io.Writer) error {
	for _, n := range r.Notes {
		fmt.Fprintf(w, "\nnote: %s\n", printable(n))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "\nproblem: %s\n", printable(p))
	}
	word := "all is well"
	switch {
	case r.Error != "":
		word = "tlsd would not start"
	case len(r.Problems) > 0:
		word = "tlsd would start, but something is wrong"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", word)
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func until(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return "until " + t.UTC().Format(time.DateOnly)
}

func keyName(c *x509.Certificate) string {
	switch pub := c.PublicKey.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA-%d", pub.N.BitLen())
	case *ecdsa.PublicKey:
		return pub.Curve.Params().Name
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return c.PublicKeyAlgorithm.String()
}

func certNames(c *x509.Certificate) []string {
	names := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 && c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	return names
}
