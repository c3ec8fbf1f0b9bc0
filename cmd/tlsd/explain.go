// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// explainFlags say which client is meant.
type explainFlags struct {
	sni, client, version, listener string
	asJSON                         bool
}

func newExplain() *cobra.Command {
	var f explainFlags
	cmd := withFlags(&cobra.Command{
		Use:   "explain",
		Short: "Say which certificate a client would get, and why, without a handshake",
		Long: `Say which certificate a client would get that asks for a server name, and why
none of the others: the table that the log shows of one handshake at debug. The
key manager is opened over the keystores as serving would and is asked what a
handshake would ask it; nothing is signed, and no port is bound. Then the other
tiers of this build are asked the same, one after the other.

Clients:
` + clientHelp() + `
Exit status: 0 a certificate is served; 1 none is, or an endpoint can't be reached;
2 tlsd would not start.`,
		Example: `  tlsd explain --sni www.example.com --keystore server.p12 --keystore-password-file server.pass
  tlsd explain --sni www.example.com --client java8 --config /etc/tlsd/tlsd.yaml --listener 0.0.0.0:443
  tlsd explain --client rsa-only --keystore server.p12 --keystore-password-file server.pass --json`,
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, in config.Input) error { return explain(cmd, in, &f) })
	fs := cmd.Flags()
	fs.StringVar(&f.sni, "sni", "", "the server `NAME` that the client asks for; without it the client names none")
	fs.StringVar(&f.client, "client", clientNames()[0], "the `PROFILE` of the client: "+strings.Join(clientNames(), ", "))
	fs.StringVar(&f.version, "tls", "", "the one `VERSION` of TLS that the client speaks: 1.2 or 1.3")
	fs.StringVar(&f.listener, "listener", "", "the `ADDR` of the listener that it connects to, where there are several; default: the first")
	fs.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

// question is what all tiers are asked.
type question struct {
	listener framework.Listener
	hello    []byte
}

func explain(cmd *cobra.Command, in config.Input, f *explainFlags) error {
	eff, err := config.Load(in)
	if err != nil {
		return err
	}
	r := &explainReport{Client: f.client, Candidates: []candidateReport{}, OtherTiers: []tierReport{}, Notes: []string{}}
	q, err := r.question(eff, f)
	if err != nil {
		return err
	}
	if err := r.ask(cmd.Context(), eff, q, cmd.ErrOrStderr()); err != nil {
		return err
	}
	write := r.text
	if f.asJSON {
		write = r.json
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if !r.serves() {
		return &status{code: exitMachine}
	}
	return nil
}

// question makes the hello, and finds the listener that it is for.
func (r *explainReport) question(eff *config.Effective, f *explainFlags) (q question, err error) {
	client, err := findClient(f.client, f.version)
	if err != nil {
		return q, err
	}
	if q.listener, err = findListener(eff.Listeners, f.listener); err != nil {
		return q, err
	}
	r.Listener, r.what = q.listener.Listen, client.what
	if r.ServerName, err = serverName(f.sni); err != nil {
		return q, err
	}
	if _, err := netip.ParseAddr(r.ServerName); err == nil {
		r.Notes = append(r.Notes, "clients that connect to an address name no server: leave out --sni to ask as they do")
	}
	q.hello, err = client.hello(r.ServerName)
	return q, err
}

// serverName returns what a client sends for a name.
func serverName(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	sent, err := framework.ParseHostName(name)
	if err == nil && strings.HasPrefix(sent, "*.") {
		err = fmt.Errorf("%q: a client asks for one name, not for a wildcard", name)
	}
	if err != nil {
		return "", fmt.Errorf("--sni %w", err)
	}
	return sent, nil
}

func findListener(all []framework.Listener, address string) (framework.Listener, error) {
	if address == "" {
		return all[0], nil
	}
	var known []string
	for _, l := range all {
		if l.Listen == address {
			return l, nil
		}
		known = append(known, l.Listen)
	}
	return framework.Listener{}, fmt.Errorf("--listener %q: there is %s", address, strings.Join(known, ", "))
}

// ask asks the key manager that is configured, and then the other tiers.
func (r *explainReport) ask(ctx context.Context, eff *config.Effective, q question, prompt io.Writer) error {
	log, err := checkLog(eff)
	if err != nil {
		return err
	}
	eff.Log = log
	_, remove, err := provideKeystore(ctx, eff)
	if err != nil {
		return err
	}
	defer remove()
	for _, s := range eff.Keystores {
		r.keystores = append(r.keystores, s.Name())
	}
	var x *framework.Explanation
	err = openAsking(ctx, eff, prompt, func() (err error) {
		x, r.KeyManager, err = explained(ctx, eff.Config, q)
		return err
	})
	if err != nil {
		return err
	}
	r.answer(x)
	if len(eff.Keystores) > 0 {
		r.others(ctx, eff.Config, q)
	}
	return nil
}

// explained opens the key manager of cfg for one question.
func explained(ctx context.Context, cfg framework.Config, q question) (x *framework.Explanation, tier string, err error) {
	keys, err := framework.Open(ctx, cfg)
	if err != nil {
		return nil, "", err
	}
	x, err = keys.Explain(ctx, q.listener, q.hello)
	return x, keys.Tier(), errors.Join(err, keys.Close())
}

// others asks the tiers of this build that were not asked yet. They are quiet:
// what they would log was said already, or is about a tier that nobody runs.
func (r *explainReport) others(ctx context.Context, cfg framework.Config, q question) {
	cfg.Plugins, cfg.Log, cfg.LogLevels = nil, zap.NewNop(), map[string]string{"": "off"}
	for _, b := range config.Builtins() {
		if b.Name == r.KeyManager || !slices.ContainsFunc(cfg.Tiers, func(t keymanager.Tier) bool { return t.Name == b.Name }) {
			continue
		}
		cfg.KeyManager = b.Name
		x, _, err := explained(ctx, cfg, q)
		r.OtherTiers = append(r.OtherTiers, r.other(b.Name, x, err))
	}
}
