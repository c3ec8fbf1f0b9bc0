// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// demoDays is how long a throw-away certificate is valid: longer than anybody
// should serve with it.
const demoDays = 90

// newDemoKeystore is the command of the child that makes a throw-away keystore.
// It ends before the front faces the network.
func newDemoKeystore() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-keystore DIR NAME...",
		Short:  "Make a throw-away CA and keystore in DIR (tlsd calls it)",
		Args:   cobra.MinimumNArgs(2),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return makeDemoKeystore(cmd.Context(), args[0], args[1:])
		},
	}
}

// makeDemoKeystore writes a CA certificate, a keystore with one entry and the
// keystore's password. The CA's key is dropped.
func makeDemoKeystore(ctx context.Context, dir string, names []string) error {
	password := rand.Text()
	c := creation{file: demoKeystore, ca: demoCA, names: names, key: "p256", alias: "throw-away", days: demoDays}
	m, err := c.build(ctx, password)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{demoCA: m.ca, demoKeystore: m.store, demoPassword: []byte(password)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
