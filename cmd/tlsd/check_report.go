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
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tlsd/tlsd/framework/config"
)

func (r *checkReport) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// text prints the report for people. What can't be printed is what can't be
// read, so errors of w are left to the last call.
func (r *checkReport) text(w io.Writer, all bool) error {
	r.settings(w, all)
	if r.KeyManager != "" {
		fmt.Fprintf(w, "\nkey manager %s: %s\n", r.KeyManager, map[bool]string{true: "in a process of its own", false: "not isolated"}[r.Isolated])
	}
	if err := r.isolationText(w); err != nil {
		return err
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

// isolationText prints what keeps the key process apart, a line each.
func (r *checkReport) isolationText(w io.Writer) error {
	if len(r.Isolation) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nisolation")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range r.Isolation {
		state, detail := "ok", p.Value
		if !p.OK {
			state, detail = "NO", p.Value+"; "+p.Remedy
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", state, printable(p.Name), printable(detail))
	}
	return t.Flush()
}

// settings prints what was given, or all values.
func (r *checkReport) settings(w io.Writer, all bool) {
	const widest = 40 // of a value that others are lined up with
	var shown []config.Value
	keys, values := 0, 0
	for _, v := range r.Settings {
		if all || v.Origin != config.OriginDefault && !replaced(v) {
			shown = append(shown, v)
			keys, values = max(keys, len(v.Key)), max(values, min(len(v.Value), widest))
		}
	}
	for _, v := range shown {
		fmt.Fprintf(w, "%-*s  %-*s  %s\n", keys, v.Key, values, orDash(v.Value), v.Origin)
	}
	switch {
	case len(r.Settings) == 0 || all:
	case len(shown) == 0:
		fmt.Fprintln(w, "everything: defaults (--all lists them)")
	default:
		fmt.Fprintln(w, "everything else: defaults (--all lists them)")
	}
}

// replaced reports whether a password that was given elsewhere has taken the
// place of a file's name.
func replaced(v config.Value) bool {
	return v.Value == "" && strings.HasSuffix(v.Key, "password_file")
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
		fmt.Fprintf(w, "\nerror: %s\n", strings.ReplaceAll(r.Error, "\n", "\nerror: "))
		word = "tlsd would not start"
	case len(r.Problems) > 0:
		word = "tlsd would start, but something is wrong"
	case slices.ContainsFunc(r.Isolation, func(p isolationPart) bool { return !p.OK }):
		word += ", but for what isolation says NO to, which is not required here"
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

// certNames returns the names that c is chosen for: the common name is one where
// there is no host name besides.
func certNames(c *x509.Certificate) []string {
	names := append([]string{}, c.DNSNames...)
	if len(names) == 0 && c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}
