// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Serve is the main of an executable that is nothing but a plugin for one tier.
// Started by a front it serves the tier, as Main does, by whatever name the
// front knows it. Started by hand it says what it is and how it is run, and
// exits with status 2, or 0 if it was asked by --help or --version. It never
// returns.
func Serve(tier keymanager.Tier) {
	if name, ok := os.LookupEnv(childMarker); ok {
		os.Exit(runChild(tier, name))
	}
	os.Exit(byHand(tier, os.Args[1:], os.Stdout, os.Stderr))
}

func byHand(tier keymanager.Tier, args []string, stdout, stderr io.Writer) int {
	asked := func(names ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(names, a) })
	}
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	switch {
	case asked("-h", "-help", "--help"):
		explain(stdout, tier.Name, path)
		return 0
	case asked("-version", "--version"):
		fmt.Fprintf(stdout, "%s %s (contract %d)\n", filepath.Base(path), version(), ContractVersion)
		return 0
	}
	explain(stderr, tier.Name, path)
	return exitUsage
}

func explain(w io.Writer, tier, path string) {
	// Not by the tier's own name, which tlsd may know as one of its own. Whether
	// there is a keystore, and of what kind, is the plugin's affair.
	fmt.Fprintf(w, `%s is the key manager %q for tlsd. It is not run by hand; tlsd runs it:

  tlsd --plugin my-%[2]s=%[3]s --keymanager my-%[2]s --keystore PATH
`, filepath.Base(path), tier, path)
}
