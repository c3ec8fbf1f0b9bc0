// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
)

// notProven is the reason of a key that list --claimed has not tried.
const notProven = "not proven: listed as claimed"

func newKeystoreList() *cobra.Command {
	var f storeFlags
	asJSON, claimed := false, false
	cmd := &cobra.Command{
		Use:   "list FILE",
		Short: "List the entries of a keystore, and whether tlsd can serve with them",
		Long: `List the entries of a keystore in their order: PKCS#12, JKS, JCEKS or PEM,
recognised by content. FILE is one file, or CERT,KEY in PEM.

Each key is decrypted once and paired with its certificate; --claimed goes by what
the file says and decrypts no key. An entry is usable if password, key and
certificate are good and TLS can use the kind of key; whether the certificate is
valid today is for "tlsd keystore check" to say.

Exit status: 0 the keystore opens; 2 it does not.`,
		Example: `  tlsd keystore list server.p12
  tlsd keystore list server.jks --keystore-password-file server.pass --json
  tlsd keystore list tls.crt,tls.key`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := openKeystore(cmd, &f, args[0], !claimed)
			if err != nil {
				return err
			}
			printWarnings(cmd.ErrOrStderr(), s)
			list := describe(s, claimed)
			if asJSON {
				return list.json(cmd.OutOrStdout())
			}
			return list.text(cmd.OutOrStdout())
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&claimed, "claimed", false, "decrypt no key: list what the keystore claims")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return fmt.Errorf("name one keystore: %s", cmd.UseLine())
}

// listing is what list prints. Its form is fixed.
type listing struct {
	Format  keystore.Format `json:"format"`
	Entries []listed        `json:"entries"`
}

type listed struct {
	Builder   int        `json:"builder_index"`
	Alias     string     `json:"alias"`
	Kind      string     `json:"kind"`
	Key       string     `json:"key"`
	Names     []string   `json:"names"`
	NotBefore *time.Time `json:"not_before"`
	NotAfter  *time.Time `json:"not_after"`
	Usable    bool       `json:"usable"`
	Reason    string     `json:"reason"`
}

func describe(s *keystore.Store, claimed bool) listing {
	l := listing{Format: s.Format, Entries: []listed{}}
	for _, e := range s.Entries {
		out := listed{Alias: e.Alias, Kind: e.Kind, Key: e.KeyType, Names: []string{}, Usable: e.Usable, Reason: e.Reason}
		if leaf := e.Leaf(); leaf != nil {
			out.Names = certNames(leaf)
			out.NotBefore, out.NotAfter = &leaf.NotBefore, &leaf.NotAfter
		}
		if claimed && e.Kind == keymanager.KindKey && e.Err == nil {
			out.Reason = notProven
		}
		l.Entries = append(l.Entries, out)
	}
	return l
}

func (l listing) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(l)
}

func (l listing) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ALIAS\tKIND\tKEY\tNAMES\tVALID\tUSABLE")
	for _, e := range l.Entries {
		names := printable(strings.Join(e.Names, ","))
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", printable(e.Alias), e.Kind, orDash(e.Key), orDash(names), until(e.NotAfter), e.verdict())
	}
	return t.Flush()
}

func (e listed) verdict() string {
	switch {
	case e.Usable:
		return "yes"
	case e.Reason == notProven:
		return notProven
	case e.Kind != keymanager.KindKey:
		return "-"
	}
	return "no: " + printable(e.Reason)
}
