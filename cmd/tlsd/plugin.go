// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/keymanager"
)

func newPlugin() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Look at key managers",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.Example = "  tlsd plugin list"
	cmd.AddCommand(withFlags(&cobra.Command{
		Use:   "list",
		Short: "List the tiers that are built in or left out, and the external plugins",
		Long: `List the tiers that are built into this tlsd, those that a build tag left out,
and the external plugins of the configuration. Nothing is run.`,
		Example: `  tlsd plugin list
  tlsd plugin list --config /etc/tlsd/tlsd.yaml`,
		Args: cobra.NoArgs,
	}, listPlugins))
	return cmd
}

func listPlugins(cmd *cobra.Command, in config.Input) error {
	plugins, err := config.LoadPlugins(in)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tVERSION\tPATH")
	for _, b := range config.Builtins() {
		listBuiltin(w, b.Name, b.Tag)
	}
	for _, p := range plugins {
		listExternal(w, p)
	}
	return w.Flush()
}

func listBuiltin(w io.Writer, name, tag string) {
	if !slices.ContainsFunc(builtin, func(t keymanager.Tier) bool { return t.Name == name }) {
		fmt.Fprintf(w, "%s\tleft out (%s)\t\t\n", name, tag)
		return
	}
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	fmt.Fprintf(w, "%s\tbuilt in\t%s\t%s\n", name, buildVersion(), path)
}

// listExternal tells the version that a Go executable carries in itself.
func listExternal(w io.Writer, p framework.Plugin) {
	kind, ver := "external, checksum not given", "unknown"
	if p.SHA256 != "" {
		kind = "external, checksum given"
	}
	info, err := buildinfo.ReadFile(p.Path)
	if err == nil && info.Main.Version != "" {
		ver = info.Main.Version
	}
	if _, err := os.Stat(p.Path); err != nil {
		kind = "external, missing"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Name, kind, ver, p.Path)
}
